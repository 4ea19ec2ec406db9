"""Results over the byte limit are cut, with a notice."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantees import guarantee
from toolscout.compact_json import byte_size, result_json, result_size
from toolscout.gateway.result_store import cut_result as cut

pytestmark = guarantee("fault:huge")

URI = "toolscout://results/x"


def cut_result(result: dict[str, Any], cap: int, uri: str) -> dict[str, Any]:
    return cut(result, byte_size(result), cap, uri)


def test_a_long_text_is_cut_with_a_notice_and_a_link_to_the_rest() -> None:
    result = {"content": [{"type": "text", "text": "x" * 10_000}], "structuredContent": {"a": 1}, "_meta": {"m": 1}}
    shaped = cut_result(result, 2_000, URI)
    text, notice, link = shaped["content"]
    assert 0 < len(text["text"]) < 2_000
    assert "10,0" in notice["text"]
    assert URI in notice["text"]
    assert link == {"type": "resource_link", "uri": URI, "name": "whole result", "mimeType": "application/json"}
    assert shaped["_meta"] == {"m": 1}
    assert "structuredContent" not in shaped


def test_an_image_that_does_not_fit_is_left_out_whole() -> None:
    image = {"type": "image", "data": "A" * 10_000, "mimeType": "image/png"}
    shaped = cut_result({"content": [{"type": "text", "text": "see"}, image]}, 1_000, URI)
    assert [item["type"] for item in shaped["content"]] == ["text", "text", "resource_link"]


@pytest.mark.parametrize(
    "result",
    [
        {"content": [], "_meta": {"m": "x" * 10_000}},
        {"content": [{"type": "text", "text": "y", "_meta": {"m": "x" * 10_000}}]},
        {"content": [{"type": "text", "text": "y" * 5_000}], "vendor": ["x" * 5_000], "isError": True},
        {"content": [{"type": "text", "text": "y"}], **{f"v{number}": "x" * 100 for number in range(100)}},
    ],
)
def test_what_stands_beside_the_text_does_not_pass_the_cap(result: dict[str, Any]) -> None:
    shaped = cut_result(result, 2_000, URI)
    assert byte_size(shaped) <= 2_000
    assert shaped["content"][-1]["uri"] == URI
    assert shaped.get("isError") == result.get("isError")


@given(
    st.lists(st.text(max_size=400).map(lambda text: {"type": "text", "text": text}), max_size=8),
    st.integers(min_value=700, max_value=3_000),
)
def test_a_cut_result_is_never_over_the_cap_and_always_json(content: list[Any], cap: int) -> None:
    shaped = cut_result({"content": content}, cap, URI)
    assert byte_size(shaped) <= cap
    json.loads(json.dumps(shaped))


@given(st.text(max_size=60), st.integers(min_value=1_500, max_value=5_000), st.integers(min_value=0, max_value=2))
def test_a_result_with_long_texts_is_written_as_any_other(part: str, repeats: int, items: int) -> None:
    long = {"type": "text", "text": part * repeats + "\n", "annotations": {"a": part}}
    result = {"isError": False, "content": [{"type": "text", "text": part}] * items + [long, long], "_meta": {"m": [1]}}
    assert json.loads(result_json(result)) == result
    assert result_size(result) == len(result_json(result))


def test_a_result_of_a_custom_source_may_hold_any_value() -> None:
    assert result_size({"structuredContent": {"value": object()}}) > 0
