"""All pages of a server's tools, within bounds: an endless cursor, a flood of tools or of bytes ends the reading."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pydantic_core

from toolscout.settings import Settings

MOST_PAGES = 1_000
_MOST_LINES = 8

Page = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPages:
    """The definitions as they came, how long they may be kept (None: not said), and why the reading stopped early."""

    tools: tuple[Mapping[str, Any], ...]
    ttl_s: float | None = None
    cut: str = ""


async def read_all_pages(ask: Page, settings: Settings) -> ToolPages:
    """Ask for page after page; beyond `max_tools`, no further than the page that holds the first one too many."""
    tools: list[Mapping[str, Any]] = []
    cursors: set[str] = set()
    ttl_s: float | None = None
    size = 0
    cut = ""
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        page = await ask(params)
        found = page.get("tools")
        if isinstance(found, list):
            tools += [item for item in found if isinstance(item, Mapping)]
            size += len(pydantic_core.to_json(found, inf_nan_mode="null"))
        ttl_s = _sooner(ttl_s, page.get("ttlMs"))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            break
        if cursor in cursors:
            cut = "its list of tools comes back to a page that it gave before"
        elif len(tools) > settings.max_tools:
            cut = f"it lists more than {settings.max_tools} tools"
        elif size > settings.max_line_bytes * _MOST_LINES:
            cut = f"its list of tools has more than {settings.max_line_bytes * _MOST_LINES} bytes"
        if cut:
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    else:
        cut = f"its list of tools has more than {MOST_PAGES} pages"
    return ToolPages(tools=tuple(tools), ttl_s=ttl_s, cut=cut)


def _sooner(ttl_s: float | None, said: Any) -> float | None:
    if isinstance(said, bool) or not isinstance(said, (int, float)) or said <= 0:
        return ttl_s
    return said / 1_000 if ttl_s is None else min(ttl_s, said / 1_000)
