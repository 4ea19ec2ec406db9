"""The bundled sample: rows that any `tools.jsonl` reader accepts, with enough siblings to give search some work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolscout import sample

FIELDS = {
    "id",
    "server",
    "name",
    "description",
    "input_schema",
    "output_schema",
    "annotations",
    "category",
    "tags",
    "keywords",
    "examples",
    "related",
}
HINTS = {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Read the catalogue as its users do: one JSON object a line."""
    return [json.loads(line) for line in sample.path().read_text(encoding="utf-8").splitlines()]


def _key(row: dict[str, Any]) -> str:
    return f"{row['server']}__{row['name']}"


def test_the_sample_has_at_least_a_hundred_tools_on_a_dozen_servers(rows: list[dict[str, Any]]) -> None:
    assert len(rows) >= 100
    assert len({row["server"] for row in rows}) >= 12


def test_every_row_has_only_the_documented_fields(rows: list[dict[str, Any]]) -> None:
    assert {field for row in rows for field in row} <= FIELDS


def test_every_row_has_a_server_a_name_and_a_description(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["server"]
        assert row["name"]
        assert row["description"].endswith("."), _key(row)


def test_no_server_holds_the_separator_of_keys(rows: list[dict[str, Any]]) -> None:
    assert not [row["server"] for row in rows if "__" in row["server"]]


def test_keys_are_unique(rows: list[dict[str, Any]]) -> None:
    keys = [_key(row) for row in rows]
    assert len(keys) == len(set(keys))


def test_related_keys_are_those_of_other_tools_in_the_sample(rows: list[dict[str, Any]]) -> None:
    keys = {_key(row) for row in rows}
    for row in rows:
        assert set(row.get("related", [])) <= keys - {_key(row)}, _key(row)


def test_every_parameter_is_typed_and_described(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        schema = row["input_schema"]
        assert schema["type"] == "object"
        assert set(schema.get("required", [])) <= set(schema["properties"]), _key(row)
        for name, parameter in schema["properties"].items():
            assert parameter["type"], (_key(row), name)
            assert parameter["description"], (_key(row), name)


def test_examples_of_arguments_give_the_required_ones_and_no_unknown_ones(rows: list[dict[str, Any]]) -> None:
    examples = [(row["input_schema"], example) for row in rows for example in row.get("examples", [])]
    calls = [(schema, example) for schema, example in examples if isinstance(example, dict)]
    assert 0 < len(calls) < len(examples)
    for schema, arguments in calls:
        assert set(schema.get("required", [])) <= set(arguments) <= set(schema["properties"])


def test_annotations_are_those_of_the_protocol_and_do_not_contradict_themselves(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        annotations = row.get("annotations", {})
        assert set(annotations) <= HINTS
        assert not (annotations.get("readOnlyHint") and annotations.get("destructiveHint")), _key(row)


def test_few_rows_carry_what_live_servers_rarely_send(rows: list[dict[str, Any]]) -> None:
    generous = [row for row in rows if {"category", "tags", "keywords"} & set(row)]
    assert 0 < len(generous) < len(rows) / 10
