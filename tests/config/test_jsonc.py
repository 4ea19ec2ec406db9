"""JSON with comments: plain JSON keeps its meaning, and one value is replaced without other changes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscout.config.jsonc import find_value, plain_json, read_jsonc, replace_value, to_json

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text() | st.sampled_from(["//", "/* */", ",]", ", }", '"', "\\", "\\\\"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("//"), inner),
    max_leaves=20,
)
LAYOUTS = st.sampled_from([None, 0, 2, "\t"])


@given(VALUES, LAYOUTS, st.booleans())
def test_json_without_comments_is_read_as_json_reads_it(value: Any, indent: Any, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert plain_json(text) == text
    assert read_jsonc(text) == json.loads(text)


@given(VALUES, st.sampled_from([2, "\t"]), st.sampled_from(["// c", "/* c */", '// "c", }', '/* "\n" */']))
def test_comments_and_trailing_commas_change_nothing(value: Any, indent: Any, comment: str) -> None:
    text = json.dumps({"a": [value, [value]], "b": value}, indent=indent)
    noisy = re.sub(r"\n(\s*[}\]])", r",\n\1", text).replace("\n", f" {comment}\n")
    assert read_jsonc(f"{comment}\n{noisy}\n{comment}") == json.loads(text)


@given(st.text(alphabet='{}[]",:/*\\\n 1a'))
def test_what_json_accepts_is_accepted_and_means_the_same(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        return
    assert read_jsonc(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2,]", [1, 2]),
        ('{"a": 1,\n}', {"a": 1}),
        ('[{"a": [],},]', [{"a": []}]),
        ("[1 /* , */ , // x\n ]", [1]),
        ('{"a": "// no, }"}', {"a": "// no, }"}),
        ('"\\"// no"', '"// no'),
    ],
)
def test_what_editors_write_is_read(text: str, value: Any) -> None:
    assert read_jsonc(text) == value


@pytest.mark.parametrize("text", ["[,]", "{,}", "[1,,]", '{"a":,}', "[1 2]", "/* open", "[1] x", "", "{'a': 1}"])
def test_what_is_wrong_stays_wrong(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        read_jsonc(text)


def test_an_error_names_the_line_of_the_original() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        read_jsonc('{\n  // one\n  /* two\n  three */\n  "a" 1\n}')
    assert (caught.value.lineno, caught.value.colno) == (5, 7)


@pytest.mark.fuzz
@given(st.dictionaries(st.text(), VALUES, min_size=1), VALUES, st.data(), LAYOUTS)
def test_replacing_a_value_changes_that_value_alone(old: dict[str, Any], new: Any, data: Any, indent: Any) -> None:
    key = data.draw(st.sampled_from(sorted(old)))
    values = {"x": {"y": old}, "z": 1}
    text = replace_value(json.dumps(values, indent=indent), ("x", "y", key), new)
    assert json.loads(text) == json.loads(json.dumps({"x": {"y": {**old, key: new}}, "z": 1}))


def test_comments_and_layout_around_a_replaced_value_stay() -> None:
    text = '{\r\n\t// mine\r\n\t"a": {"b": 1}, // and this\r\n\t"c": [1,],\r\n}\r\n'
    assert replace_value(text, ("a",), {"d": 2}) == (
        '{\r\n\t// mine\r\n\t"a": {\r\n\t\t"d": 2\r\n\t}, // and this\r\n\t"c": [1,],\r\n}\r\n'
    )


def test_of_two_members_with_one_name_the_last_is_found() -> None:
    text = '{"a": 1, "a": 2}'
    assert find_value(text, ("a",)) == (14, 15)
    assert find_value(text, ("b",)) is None
    assert find_value(text, ("a", "b")) is None
    with pytest.raises(KeyError):
        replace_value(text, ("b",), 1)


def test_only_what_utf8_cannot_hold_is_escaped() -> None:
    assert to_json(["é"]) == '[\n  "é"\n]'
    assert to_json(["é\ud800"]).encode("utf-8") == b'[\n  "\\u00e9\\ud800"\n]'


@pytest.mark.parametrize(
    "text",
    ['"' + '\\"' * 400_000, "/*" * 400_000, '{"a": 1' + ", " * 400_000, "[" + " ," * 400_000],
    ids=["text", "comment", "commas", "spaces"],
)
def test_a_text_that_does_not_end_is_refused_in_one_pass(text: str) -> None:
    with pytest.raises(ValueError, match="line 1 column"):
        read_jsonc(text)


def test_a_comment_that_does_not_end_is_refused() -> None:
    with pytest.raises(ValueError, match="Extra data"):
        read_jsonc('{"a": 1} /* and so on')
