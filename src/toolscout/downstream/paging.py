"""All pages of a server's tool list, within bounds: an endless cursor or too many tools or bytes stop the reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pydantic_core

from toolscout.jsonrpc_lines import ValueCounter
from toolscout.settings import Settings

MAX_PAGES = 1_000
MAX_LIST_VALUES = 2_000_000
_MAX_LINES = 8
_STEP_BYTES = 131_072
_MAX_WITH_HEADERS = 1_000
_HEADER = b'"x-mcp-header"'

FetchPage = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPages:
    """The tool definitions as the server sent them."""

    tools: tuple[Mapping[str, Any], ...]
    ttl_s: float | None = None
    """How long the list is valid, or None if the server does not say."""
    truncated: str = ""
    """Why the reading stopped early, if it did."""
    with_headers: tuple[Mapping[str, Any], ...] = ()
    """Those that may name arguments to send as headers, so that nobody has to look through all schemas."""


async def read_all_pages(fetch: FetchPage, settings: Settings) -> ToolPages:
    """Fetch page after page, up to the page that exceeds `max_tools`."""
    tools: list[Mapping[str, Any]] = []
    cursors: set[str] = set()
    ttl_s: float | None = None
    counter = ValueCounter()
    with_headers: list[Mapping[str, Any]] = []
    size = values = 0
    max_bytes = settings.max_line_bytes * _MAX_LINES
    truncated = ""
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        page = await fetch(params)
        items = page.get("tools")
        if isinstance(items, list):
            tools += [item for item in items if isinstance(item, Mapping)]
            async for item, data in _encode(items):
                size += len(data)
                values = counter.feed(data)
                if _HEADER in data and len(data) <= _STEP_BYTES and len(with_headers) < _MAX_WITH_HEADERS:
                    with_headers.append(item)
        ttl_s = _shorter(ttl_s, page.get("ttlMs"))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            break
        if cursor in cursors:
            truncated = "its list of tools repeats a page"
        elif len(tools) > settings.max_tools:
            truncated = f"it lists more than {settings.max_tools} tools"
        elif size > max_bytes:
            truncated = f"its list of tools has more than {max_bytes} bytes"
        elif values > MAX_LIST_VALUES:
            truncated = f"its list of tools has more than {MAX_LIST_VALUES} values"
        if truncated:
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    else:
        truncated = f"its list of tools has more than {MAX_PAGES} pages"
    return ToolPages(tools=tuple(tools), ttl_s=ttl_s, truncated=truncated, with_headers=tuple(with_headers))


async def _encode(items: list[Any]) -> AsyncIterator[tuple[Mapping[str, Any], bytes]]:
    """Yield the definitions of a page and their JSON, and let others run in between."""
    unyielded = 0
    for item in items:
        if isinstance(item, Mapping):
            data = pydantic_core.to_json(item, inf_nan_mode="null")
            yield item, data
            unyielded += len(data)
        if unyielded > _STEP_BYTES:
            unyielded = 0
            await asyncio.sleep(0)


def _shorter(ttl_s: float | None, ttl_ms: Any) -> float | None:
    if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, (int, float)) or ttl_ms <= 0:
        return ttl_s
    return ttl_ms / 1_000 if ttl_s is None else min(ttl_s, ttl_ms / 1_000)
