"""The fingerprint: one changed character anywhere in a definition is seen, another order of keys is not."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolscout import Server, Settings
from toolscout.indexing.normalize import canonical_json, normalize_tool

SERVER = Server(key="server", title="server")

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | st.text(max_size=8)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
schemas = st.dictionaries(st.text(max_size=6), values, max_size=4)
definitions = st.fixed_dictionaries(
    {"name": st.from_regex(r"[a-z]{1,8}(_[a-z0-9]{1,5})?", fullmatch=True)},
    optional={
        "description": st.text(max_size=30),
        "inputSchema": schemas,
        "output_schema": schemas,
        "annotations": schemas,
        "_meta": schemas,
        "tags": st.lists(st.text(max_size=6), max_size=3),
        "anything_else": values,
    },
)


def _fingerprint(raw: dict[str, Any]) -> str:
    return normalize_tool(raw, SERVER, Settings()).fingerprint


def _strings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Walk the places of all texts: values by their path, keys by a path that ends in "key"."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, child in value.items():
            if path:
                yield (*path, key, "key")
            yield from _strings(child, (*path, key))
    elif isinstance(value, list):
        for place, child in enumerate(value):
            yield from _strings(child, (*path, place))


def _changed(raw: dict[str, Any], path: tuple[Any, ...], at: int, character: str) -> dict[str, Any]:
    copy = json.loads(json.dumps(raw))
    *way, last = path[:-1] if path[-1] == "key" else path
    holder = copy
    for step in way:
        holder = holder[step]
    text = last if path[-1] == "key" else holder[last]
    other = text[:at] + character + text[at + 1 :]
    if path[-1] == "key":
        assume(other not in holder)
        holder[other] = holder.pop(last)
    else:
        holder[last] = other
    return copy


@pytest.mark.fuzz
@settings(max_examples=200, deadline=None)
@given(raw=definitions, data=st.data())
def test_one_changed_character_anywhere_changes_the_fingerprint(raw: dict[str, Any], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(_strings(raw))))
    character = data.draw(st.sampled_from("abcxyz_019é漢"))
    other = _changed(raw, path, data.draw(st.integers(0, 8)), character)
    assume(unicodedata.normalize("NFC", json.dumps(other, ensure_ascii=False)) != json.dumps(raw, ensure_ascii=False))
    assume(unicodedata.is_normalized("NFC", json.dumps(raw, ensure_ascii=False)))
    assert _fingerprint(other) != _fingerprint(raw)


@settings(max_examples=100, deadline=None)
@given(raw=definitions, seed=st.integers(0, 1_000))
def test_another_order_of_keys_is_the_same_definition(raw: dict[str, Any], seed: int) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, shuffled(child)) for key, child in value.items()]
            random.Random(seed).shuffle(items)
            return dict(items)
        return [shuffled(child) for child in value] if isinstance(value, list) else value

    assert _fingerprint(shuffled(raw)) == _fingerprint(raw)
    assert canonical_json(shuffled(raw)) == canonical_json(raw)


BASE = {
    "name": "send",
    "description": "Send it.",
    "inputSchema": {"type": "object", "properties": {"to": {"type": "string", "description": "Who"}}},
    "annotations": {"readOnlyHint": False},
    "_meta": {"vendor": {"x": [1, 2]}},
}


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Send it!"},
        {"description": "Send it. "},
        {"name": "sent"},
        {"title": "Send"},
        {"inputSchema": {"type": "object", "properties": {"to": {"type": "string", "description": "who"}}}},
        {"inputSchema": {"type": "object", "properties": {"too": {"type": "string", "description": "Who"}}}},
        {"outputSchema": {}},
        {"annotations": {"readOnlyHint": True}},
        {"_meta": {"vendor": {"x": [2, 1]}}},
        {"icons": ["https://example.org/i.png"]},
        {"description": "Send it.\x00"},
        {"description": "Send it.\ud800"},
    ],
)
def test_every_part_of_a_definition_counts(change: dict[str, Any]) -> None:
    assert _fingerprint({**BASE, **change}) != _fingerprint(BASE)


def test_half_surrogates_count_though_they_cannot_be_shown() -> None:
    texts = ["it \ud800", "it \ud801", "it ?"]
    assert len({_fingerprint({"name": "a", "description": text}) for text in texts}) == 3


def test_one_text_in_two_unicode_forms_is_one_definition() -> None:
    composed, decomposed = ({"name": "a", "description": text} for text in ("caf\u00e9", "cafe\u0301"))
    assert _fingerprint(composed) == _fingerprint(decomposed)


def test_the_version_is_the_beginning_of_the_fingerprint() -> None:
    tool = normalize_tool(BASE, SERVER, Settings())
    assert len(tool.fingerprint) == 64
    assert tool.version == tool.fingerprint[:12]


def test_one_and_one_point_nothing_and_true_are_three_things() -> None:
    assert len({_fingerprint({"name": "a", "_meta": {"x": value}}) for value in (1, 1.0, True, "1")}) == 4
