"""One JSON shape for every answer: the command line, REST and structured content all show it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolscout.models import Answer, Category, Detail, Tag, ToolMatch

_BRIEF_CHARS = 200


def count_tokens(value: Any) -> int:
    """Count tokens as everywhere in toolscout: characters of the compact JSON divided by four, rounded up."""
    return -(-len(json.dumps(value, separators=(",", ":"), ensure_ascii=False)) // 4)


def format_match(match: ToolMatch, detail: Detail | None = None) -> dict[str, Any]:
    """Write one hit: `minimal` is enough to call again, `brief` to choose, `full` to call."""
    detail = detail or match.detail
    tool = match.tool
    shown: dict[str, Any] = {"key": tool.key, "call_with": match.call_with}
    if match.score is not None:
        shown["score"] = round(match.score, 4)
    if detail != "minimal":
        shown |= {
            "version": tool.version,
            "server": tool.server,
            "name": tool.name,
            "description": tool.description if detail == "full" else shorten(tool.description),
            "category": tool.category,
            "tags": list(tool.tags),
            "matched_tags": list(match.matched_tags),
        }
    if not match.available:
        shown["available"] = False
    if match.relationship is not None:
        shown["relationship"] = match.relationship
    if detail == "full":
        shown["input_schema"] = tool.input_schema
        if tool.examples:
            shown["examples"] = list(tool.examples)
    if match.explain is not None:
        shown["explain"] = dict(match.explain)
    return shown


def format_answer(answer: Answer) -> dict[str, Any]:
    """Write a whole answer."""
    metadata = answer.metadata
    shown: dict[str, Any] = {
        "tools": [format_match(match) for match in answer],
        "metadata": {
            "total": metadata.total,
            "matched": metadata.matched,
            "returned": metadata.returned,
            "took_ms": metadata.took_ms,
            "tokens": metadata.tokens,
            "tokens_saved": metadata.tokens_saved,
            "ranker": metadata.ranker,
            "detail": metadata.detail,
            "categories_available": list(metadata.categories_available),
            "degraded": metadata.degraded,
            "stale": metadata.stale,
        },
    }
    if answer.pagination is not None:
        page = answer.pagination
        shown["pagination"] = {
            "page": page.page,
            "page_size": page.page_size,
            "total_tools": page.total_tools,
            "total_pages": page.total_pages,
            "has_next": page.has_next,
            "has_prev": page.has_prev,
        }
    if answer.suggestions:
        shown["suggestions"] = list(answer.suggestions)
    return shown


def format_answers(answers: Sequence[Answer]) -> dict[str, Any]:
    """Write the answers of several queries."""
    return {"results": [format_answer(answer) for answer in answers]}


def format_categories(categories: Sequence[Category]) -> dict[str, Any]:
    """Write the categories that a caller can see."""
    return {
        "categories": [{"name": item.name, "count": item.count, "description": item.description} for item in categories]
    }


def format_tags(tags: Sequence[Tag]) -> dict[str, Any]:
    """Write the tags that a caller can see."""
    return {"tags": [{"name": item.name, "count": item.count} for item in tags]}


def shorten(text: str, limit: int = _BRIEF_CHARS) -> str:
    """Cut a description at a sentence or a word, so that brief stays brief."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[:limit]
    sentence = cut.rfind(". ")
    if sentence >= limit // 3:
        return cut[: sentence + 1]
    word = cut.rfind(" ")
    return (cut[:word] if word > 0 else cut) + "…"
