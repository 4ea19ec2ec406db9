"""Answers as text for a model: one entry per hit, the arguments in one line, the schema of the best hit if short."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolscout import Scout
from toolscout.models import answer_text, answers_text, signature
from toolscout.text import tokens_of


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({}, ""),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, "a: string"),
        (
            {"properties": {"head": {"type": "number"}, "path": {"type": "string"}}, "required": ["path"]},
            "path: string, head?: number",
        ),
        ({"properties": {"order": {"enum": ["asc", "desc"]}}}, 'order?: "asc" | "desc"'),
        ({"properties": {"ids": {"type": "array", "items": {"type": "integer"}}}}, "ids?: integer[]"),
        ({"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, "x?: string"),
        ({"properties": {"x": {"type": ["string", "number"]}}}, "x?: string | number"),
        (
            {"properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}},
            "at?: {x: number}",
        ),
        ({"properties": {"x": True, "y": {"type": 7}, "z": {"const": 1}}}, "x?: any, y?: any, z?: 1"),
        ({"properties": 5, "required": "a"}, ""),
    ],
)
def test_a_signature_says_what_a_call_needs(schema: dict[str, Any], line: str) -> None:
    assert signature(schema) == line


def test_a_signature_is_bounded() -> None:
    many = {"properties": {f"p{number}": {"enum": ["v" * 900] * 90} for number in range(900)}}
    assert len(signature(many)) < 10_000
    assert signature(many).endswith("884 more")


async def test_an_entry_has_key_call_fit_description_and_arguments(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("create an issue in github", top_k=5)
    text = answer_text(answer)
    first, arguments = text.splitlines()[:2]
    assert first.startswith("- github__create_issue (call_tool, strong fit): ")
    assert arguments.startswith("  arguments: ")
    assert (
        f"input_schema of github__create_issue: {json.dumps(answer[0].tool.input_schema, separators=(',', ':'))}"
        in text
    )
    assert "took_ms" not in text
    assert all(match.tool.key in text for match in answer)


async def test_an_answer_ends_with_the_call_of_the_best_hit(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("create an issue in github", top_k=5)
    last = answer_text(answer).splitlines()[-1]
    start = "Next: call_tool "
    assert last.startswith(start)
    call = json.loads(last.removeprefix(start))
    assert call["name"] == "github__create_issue"
    assert list(call["arguments"]) == answer[0].tool.input_schema["required"]
    assert set(call["arguments"].values()) == {"<string>"}


async def test_a_weak_answer_says_so_and_shows_no_schema(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("tune my grand piano", servers=["weather"])
    text = answer_text(answer)
    assert "weak fit" in text
    assert "None of these clearly fits" in text
    assert "input_schema" not in text


async def test_the_text_stays_within_a_budget(sample_scout: Scout) -> None:
    for budget in (100, 200, 400):
        answer = await sample_scout.search_tools("create an issue in github", top_k=5, max_tokens=budget)
        assert tokens_of(len(answer_text(answer, budget))) <= budget


async def test_several_answers_stand_under_their_queries(sample_scout: Scout) -> None:
    queries = ["create an issue in github", "send an email"]
    text = answers_text(await sample_scout.search_tools(queries, limit=2), queries)
    assert text.index('For "create an issue in github":') < text.index('For "send an email":')
