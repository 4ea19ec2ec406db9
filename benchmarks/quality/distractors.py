"""Other people's tools around a set: what a real catalogue has beside the right ones."""

from __future__ import annotations

from typing import Any


def with_distractors(tools: list[dict[str, Any]], pool: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the catalogue, less what has the id or the text of one of the set's own tools."""
    ids = {tool["id"] for tool in tools}
    texts = {(tool["name"], tool.get("description")) for tool in tools}
    names = {(tool.get("server") or "", tool["name"]) for tool in tools}
    extra = [
        tool
        for tool in pool
        if tool["id"] not in ids
        and (tool["name"], tool.get("description")) not in texts
        and (tool.get("server") or "", tool["name"]) not in names
    ]
    return [*tools, *extra]
