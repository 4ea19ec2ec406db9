"""Screen resources, templates and prompts of servers: models read what stands in their lists, as they do with tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolscout.indexing.trust import poison_reason
from toolscout.models import Tool

_PLACE = "/inputSchema"
_TEXTS = ("name", "title", "description")


def screen_items(items: Sequence[Mapping[str, Any]], *, trusted: bool) -> list[str]:
    """Return for each item of a list why it is withheld, "" if it is not."""
    reasons = (poison_reason(_as_tool(item, trusted=trusted)) for item in items)
    return [reason.replace(f" in {_PLACE}/", " in /", 1) for reason in reasons]


def _as_tool(item: Mapping[str, Any], *, trusted: bool) -> Tool:
    """Return a tool with the texts of an item in the places where the screen looks for them."""
    name, title, description = (text if isinstance(text := item.get(field), str) else "" for field in _TEXTS)
    rest = {field: value for field, value in item.items() if field not in _TEXTS}
    return Tool(
        key=name,
        id=name,
        server="",
        server_title="",
        name=name,
        title=title,
        description=description,
        input_schema=rest,
        trusted=trusted,
    )
