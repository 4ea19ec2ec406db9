"""Answers as text for a language model: what it needs to choose a tool and to call it, and nothing else.

Times, token counts, categories and scores are for programs. They stay in the structured answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolscout.models.answers import Answer, ToolMatch
from toolscout.models.signature import example_arguments, signature
from toolscout.text import shorten, tokens_of

SCHEMA_TOKENS = 260
"""The longest schema that is written out for the best hit. Of a longer one, the signature says enough to begin."""
_DESCRIPTION_CHARACTERS = 150
_PARAMETERS, _WEAK_PARAMETERS = 16, 5


def answer_text(answer: Answer, max_tokens: int | None = None, *, title: str = "") -> str:
    """Write an answer: one entry per hit, the schema of the best one if it fits, and what to try if none is sure."""
    lines = [f"For {json.dumps(title, ensure_ascii=False)}:"] if title else []
    lines += [_entry(match) for match in answer]
    lines += answer.suggestions
    if answer.metadata.degraded:
        lines.append(f"Degraded: {answer.metadata.degraded}.")
    text = "\n".join(lines)
    for more in (_best_schema(answer), _next_call(answer)):
        if more and (max_tokens is None or tokens_of(len(text) + len(more) + 1) <= max_tokens):
            text = f"{text}\n{more}"
    return text


def answers_text(answers: Sequence[Answer], queries: Sequence[str], max_tokens: int | None = None) -> str:
    """Write the answers to several queries, each under its query."""
    each = None if max_tokens is None else max(max_tokens // max(len(answers), 1), 1)
    pairs = zip(answers, queries, strict=True)
    return "\n\n".join(answer_text(answer, each, title=query[:200]) for answer, query in pairs)


def _entry(match: ToolMatch) -> str:
    """Write the key, how sure it is, how to call it, what it does and its parameters."""
    tool = match.tool
    facts = [
        match.call_with,
        *([f"{match.fit} fit"] if match.fit else ()),
        *([] if match.available else [match.hint or "down now"]),
    ]
    if match.relationship:
        facts.append(match.relationship)
    if match.detail == "minimal":
        return f"- {tool.key} ({', '.join(facts)})"
    limit = None if match.detail == "full" else _DESCRIPTION_CHARACTERS
    description = tool.description if limit is None else shorten(tool.description, limit)
    most = _WEAK_PARAMETERS if match.fit == "weak" else _PARAMETERS
    parameters = signature(tool.input_schema, most) if match.detail != "full" else ""
    lines = [f"- {tool.key} ({', '.join(facts)}): {' '.join(description.split())}"]
    lines += [f"  arguments: {parameters}"] if parameters else []
    lines += [f"  input_schema: {_compact(tool.input_schema)}"] if match.detail == "full" else []
    return "\n".join(lines)


def _best_schema(answer: Answer) -> str:
    """Return the schema of the best hit, unless it is shown already, unlikely to be the one, or long."""
    if not answer or answer[0].detail != "brief" or answer[0].fit == "weak":
        return ""
    schema = _compact(answer[0].tool.input_schema)
    return f"input_schema of {answer[0].tool.key}: {schema}" if tokens_of(len(schema)) <= SCHEMA_TOKENS else ""


def _next_call(answer: Answer) -> str:
    """Write the call of the best hit. Small models copy it; without it they search for the same thing again."""
    if not answer or answer[0].score is None or not answer[0].available:
        return ""
    best = answer[0].tool
    call = f"{answer[0].call_with} {_compact({'name': best.key, 'arguments': example_arguments(best.input_schema)})}"
    return f"To call the first: {call}" if answer[0].fit == "weak" else f"Next: {call}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
