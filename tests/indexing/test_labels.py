"""Precedence of labels: the overlay of the config, then the author's labels, then inference."""

from __future__ import annotations

from typing import Any

import pytest

from toolscout import Server, Settings, Tool
from toolscout.indexing.enrich import enrich_tool, parameters, stamp_of
from toolscout.indexing.normalize import normalize_tool
from toolscout.models import Overlay
from toolscout.text import query_terms

RAW: dict[str, Any] = {
    "name": "send_email",
    "description": "Send an email.",
    "category": "author",
    "tags": ["a"],
    "keywords": ["ka"],
    "related": ["ra"],
    "examples": ["xa"],
}
WHOLE = Overlay(category="server", tags=("s",), keywords=("ks",), related=("rs",))
ONE = Overlay(
    description="Better said.", category="tool", tags=("t",), keywords=("kt",), related=("rt",), examples=("xt",)
)


def _tool(raw: dict[str, Any], whole: Overlay | None = None, one: Overlay | None = None, **server: Any) -> Tool:
    overlays = {raw["name"]: one} if one else {}
    place = Server(key="s", title="s", overlay=whole or Overlay(), tool_overlays=overlays, **server)
    return normalize_tool(raw, place, Settings())


@pytest.mark.parametrize(
    ("whole", "one", "category"),
    [(None, None, "author"), (WHOLE, None, "server"), (None, ONE, "tool"), (WHOLE, ONE, "tool")],
)
def test_the_category_of_the_tools_overlay_wins_over_the_servers_over_the_authors(
    whole: Overlay | None, one: Overlay | None, category: str
) -> None:
    assert _tool(RAW, whole, one).category == category


def test_tags_keywords_and_relations_add_up() -> None:
    tool = _tool(RAW, WHOLE, ONE)
    assert tool.tags == ("a", "s", "t")
    assert tool.keywords == ("ka", "ks", "kt")
    assert tool.related == ("ra", "rs", "rt")


def test_description_and_examples_of_the_overlay_replace_the_authors() -> None:
    tool = _tool(RAW, WHOLE, ONE)
    assert (tool.description, tool.examples) == ("Better said.", ("xt",))
    assert _tool(RAW, WHOLE).examples == ("xa",)


def test_an_overlay_of_another_tool_changes_nothing() -> None:
    place = Server(key="s", title="s", tool_overlays={"other": ONE})
    assert normalize_tool(RAW, place, Settings()) == _tool(RAW)


@pytest.mark.parametrize(
    ("raw", "whole", "one", "enabled"),
    [
        (None, None, None, True),
        (False, None, None, False),
        (False, True, None, True),
        (None, False, None, False),
        (None, False, True, True),
        (True, True, False, False),
    ],
)
def test_the_most_specific_setting_decides_whether_a_tool_is_enabled(
    raw: bool | None, whole: bool | None, one: bool | None, enabled: bool
) -> None:
    definition = RAW if raw is None else {**RAW, "enabled": raw}
    assert _tool(definition, Overlay(enabled=whole), Overlay(enabled=one)).enabled is enabled


@pytest.mark.parametrize(
    ("server", "whole", "one", "trusted"),
    [
        (True, None, None, True),
        (False, None, None, False),
        (False, True, None, True),
        (True, True, False, False),
        (False, None, True, True),
    ],
)
def test_only_the_operator_can_declare_trust(server: bool, whole: bool | None, one: bool | None, trusted: bool) -> None:
    tool = _tool(
        {**RAW, "trusted": True, "annotations": {"readOnlyHint": True}},
        Overlay(trusted=whole),
        Overlay(trusted=one),
        trusted=server,
    )
    assert tool.trusted is trusted
    assert tool.read_only is trusted


def test_an_overlay_leaves_the_fingerprint_and_changes_the_stamp() -> None:
    plain, overlaid = _tool(RAW), _tool(RAW, WHOLE, ONE)
    assert plain.fingerprint == overlaid.fingerprint
    assert stamp_of(plain) != stamp_of(overlaid)


def test_inference_fills_only_missing_labels() -> None:
    bare = {"name": "send_email", "description": "Send an email."}
    inferred = enrich_tool(_tool(bare)).tool
    assert (inferred.category, inferred.tags) == ("communication", ("email",))
    own = enrich_tool(_tool({**bare, "category": "Mine"})).tool
    assert (own.category, own.tags) == ("Mine", ("email",))
    tagged = enrich_tool(_tool({**bare, "_meta": {"tags": ["post"]}})).tool
    assert (tagged.category, tagged.tags) == ("communication", ("post",))
    overlaid = enrich_tool(_tool(bare, Overlay(category="Ours", tags=("ours",)))).tool
    assert (overlaid.category, overlaid.tags) == ("Ours", ("ours",))


def test_a_tool_is_found_by_every_word_that_describes_it() -> None:
    raw = {
        "name": "pushReport_v2",
        "title": "Deliver paperwork",
        "description": "Sends it.",
        "input_schema": {
            "properties": {
                "recipientAddress": {"description": "Mailbox of the addressee", "enum": ["courier", "pigeon"]},
                "options": {"properties": {"urgency": {"type": "string"}}},
            }
        },
        "tags": ["logistics"],
        "keywords": ["dispatch"],
        "examples": ["forward the invoice"],
    }
    entry = enrich_tool(_tool(raw))
    request = "push report v2 paperwork recipient address mailbox courier pigeon urgency logistics dispatch invoice"
    assert set(query_terms(request)) <= set(entry.terms.words)


def test_the_text_that_is_embedded_says_name_server_labels_description_and_parameters() -> None:
    raw = {"name": "listS3Buckets", "description": "List them.", "input_schema": {"properties": {"maxKeys": {}}}}
    place = Server(key="aws", title="AWS Cloud")
    text = enrich_tool(normalize_tool(raw, place, Settings())).document.text()
    assert text == "list s3 buckets (aws cloud), also aws, list: List them. Parameters: max keys"


def test_parameters_are_read_to_a_bound_and_odd_schemas_break_nothing() -> None:
    many = {"properties": {f"parameter{number}": {"description": "x"} for number in range(100)}}
    assert len(list(parameters(many))) == 60
    nested: dict[str, Any] = {
        "properties": {"a": {"items": {"properties": {"b": {"properties": {"c": {"properties": {"d": {}}}}}}}}}
    }
    assert [name for name, _ in parameters(nested)] == ["a", "b", "c"]
    odds: list[Any] = [[], {"a": True}, {"a": {"enum": 5, "items": []}}]
    for odd in ({"properties": value} for value in odds):
        assert all(text == "" for _, text in parameters(odd))
