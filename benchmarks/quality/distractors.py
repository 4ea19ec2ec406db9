"""Tools of other servers that are added to a set, as in a real catalogue."""

from __future__ import annotations

import random
from typing import Any


def with_distractors(tools: list[dict[str, Any]], pool: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """Add up to `size` tools of a catalogue, none that is one of the set's own under another id.

    That is: the same id, the same name on the same server, or the same name and a description that begins with the same
    sentence, as another version of a server has.
    """
    ids = {tool["id"] for tool in tools}
    names = {(tool.get("server") or "", tool["name"]) for tool in tools}
    texts = {(tool["name"], _first_sentence(tool)) for tool in tools}
    others = [
        tool
        for tool in pool
        if tool["id"] not in ids
        and (tool.get("server") or "", tool["name"]) not in names
        and (tool["name"], _first_sentence(tool)) not in texts
    ]
    return [*tools, *(others if size >= len(others) else random.Random(0).sample(others, size))]


def _first_sentence(tool: dict[str, Any]) -> str:
    said = " ".join((tool.get("description") or "").split())
    return said.split(". ")[0].rstrip(".").lower()
