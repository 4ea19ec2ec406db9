"""One JSON shape everywhere, exactly as DESIGN section 4 gives it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolscout import Scout, ToolNotFoundError
from toolscout.errors import to_wire
from toolscout.text import shorten

MINIMAL = {"key", "call_with", "score"}
BRIEF = MINIMAL | {"version", "server", "name", "description", "signature", "category", "tags", "matched_tags"}
METADATA = {
    "total",
    "matched",
    "returned",
    "took_ms",
    "tokens",
    "tokens_saved",
    "ranker",
    "detail",
    "categories_available",
    "degraded",
    "stale",
}
PAGINATION = {"page", "page_size", "total_tools", "total_pages", "has_next", "has_prev"}


@pytest.mark.parametrize(
    ("detail", "fields"), [("minimal", MINIMAL), ("brief", BRIEF), ("full", BRIEF | {"input_schema"})]
)
async def test_a_search_has_the_documented_fields(sample_scout: Scout, detail: Any, fields: set[str]) -> None:
    shown = (await sample_scout.search_tools("list pull requests", detail=detail, top_k=3)).to_dict()
    assert set(shown) == {"tools", "metadata"}
    assert set(shown["metadata"]) == METADATA
    assert all(set(tool) == fields | {"fit"} for tool in shown["tools"])
    json.dumps(shown)


async def test_examples_relationship_explain_and_suggestions_come_only_where_they_belong(sample_scout: Scout) -> None:
    full = (await sample_scout.get_tool_details(["gmail__send_email", "maps__maps_geocode"])).to_dict()
    assert all(set(tool) - BRIEF - {"input_schema"} <= {"examples"} for tool in full["tools"])
    assert all("score" not in tool for tool in full["tools"])
    related = (await sample_scout.get_related_tools("gmail__send_email")).to_dict()
    assert all(set(tool) == BRIEF | {"relationship"} for tool in related["tools"])
    explained = (await sample_scout.search_tools("mail", ranker="keyword", explain=True)).to_dict()
    assert all(set(tool) == BRIEF | {"explain"} for tool in explained["tools"])
    nothing = (await sample_scout.search_tools("zqxj", ranker="keyword")).to_dict()
    assert set(nothing) == {"tools", "metadata", "suggestions"}


async def test_a_listing_has_pages(sample_scout: Scout) -> None:
    shown = (await sample_scout.list_tools()).to_dict()
    assert set(shown) == {"tools", "metadata", "pagination"}
    assert set(shown["pagination"]) == PAGINATION
    assert all(set(tool) == {"key", "call_with"} for tool in shown["tools"])


async def test_several_queries_are_several_results(sample_scout: Scout) -> None:
    answers = await sample_scout.search_tools(["mail", "calendar"])
    shown = {"results": [answer.to_dict() for answer in answers]}
    assert set(shown) == {"results"}
    assert shown["results"] == [answer.to_dict() for answer in answers]


async def test_metadata_counts_what_it_says(sample_scout: Scout, sample_rows: list[dict[str, Any]]) -> None:
    answer = await sample_scout.search_tools("send an email", ranker="keyword", top_k=2)
    shown = answer.to_dict()
    metadata = shown["metadata"]
    text = json.dumps(shown["tools"], separators=(",", ":"), ensure_ascii=False)
    assert metadata["total"] == len(sample_rows)
    assert metadata["matched"] > metadata["returned"] == 2
    assert metadata["tokens"] == -(-len(text) // 4)
    everything = metadata["tokens"] + metadata["tokens_saved"]
    assert everything > 50 * len(sample_rows)
    assert metadata["ranker"] == "keyword"
    assert metadata["detail"] == "brief"
    assert metadata["took_ms"] > 0
    assert metadata["degraded"] is None
    assert metadata["stale"] is False
    assert metadata["categories_available"] == sorted(set(metadata["categories_available"]))


async def test_only_tools_that_declare_it_may_be_called_as_reading(sample_scout: Scout) -> None:
    answer = await sample_scout.get_tool_details(["github__list_issues", "github__create_issue", "gmail__delete_email"])
    shown = [tool["call_with"] for tool in answer.to_dict()["tools"]]
    assert shown == ["call_read_tool", "call_tool", "call_tool"]


async def test_categories_and_tags_have_a_shape_too(sample_scout: Scout) -> None:
    categories = {"categories": [item.to_dict() for item in await sample_scout.list_categories()]}
    assert all(set(item) == {"name", "count", "description"} for item in categories["categories"])
    tags = {"tags": [item.to_dict() for item in await sample_scout.list_tags()]}
    assert all(set(item) == {"name", "count"} for item in tags["tags"])


async def test_an_error_has_one_shape(sample_scout: Scout) -> None:
    with pytest.raises(ToolNotFoundError) as raised:
        await sample_scout.get_tool_details("gmail__send_emial")
    shown = to_wire(raised.value)["error"]
    assert set(shown) == {"code", "message", "hint", "suggestions"}
    assert shown["code"] == "tool_not_found"
    assert "gmail__send_email" in shown["suggestions"]


def test_an_error_that_is_not_ours_tells_nothing_of_itself() -> None:
    shown = to_wire(RuntimeError("password=hunter2"))["error"]
    assert set(shown) == {"code", "message", "hint", "suggestions"}
    assert "hunter2" not in json.dumps(shown)


def test_a_brief_description_ends_at_a_sentence_or_a_word() -> None:
    assert shorten("Short  and\nflat.") == "Short and flat."
    sentences = "This is the first sentence of many. " * 20
    assert shorten(sentences) == ("This is the first sentence of many. " * 5).strip()
    words = "word " * 100
    assert shorten(words).endswith("word…")
    assert len(shorten("x" * 1_000)) <= 201
