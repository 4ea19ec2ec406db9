"""Sources of tools that are not servers of a config: raw definitions (rows), and an author's ToolProvider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolscout.errors import InvalidValueError
from toolscout.models import Dropped, Server
from toolscout.ports import ToolProvider, ToolSource
from toolscout.sources.provider import ProviderSource
from toolscout.sources.renamed import RenamedSource
from toolscout.sources.rows import RowsSource, group_rows, read_jsonl
from toolscout.tool_keys import server_slug


def as_source(
    title: str, tools: Iterable[Mapping[str, Any]] | ToolProvider | ToolSource, *, trusted: bool, timeout_s: float
) -> ToolSource:
    """Make a server of the catalogue from definitions, from an author's provider, or from another source."""
    server = Server(key=server_slug(title), title=title, trusted=trusted)
    if isinstance(tools, ToolProvider):
        return ProviderSource(server=server, provider=tools, timeout_s=timeout_s)
    if isinstance(tools, Iterable):
        return RowsSource(server=server, rows=list(tools))
    return RenamedSource(server=server, source=tools)


def read_rows(
    tools: Iterable[Mapping[str, Any]] | str | Path, *, strict: bool
) -> tuple[list[RowsSource], list[Dropped]]:
    """Return a source for each server named by the rows or by the lines of a tools.jsonl, and the bad lines."""
    if isinstance(tools, Mapping):
        raise InvalidValueError(
            "tools is one object, but must be a list of rows or the path of a file", hint="write [tool] instead of tool"
        )
    rows, bad_lines = read_jsonl(tools, strict=strict) if isinstance(tools, (str, Path)) else (tools, [])
    return group_rows(rows), bad_lines
