"""A source under the name, and with the trust, that it was indexed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolscout.models import Caller, Server
from toolscout.ports import ToolSource, Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedSource:
    """Another source's tools, as a server of their own."""

    server: Server
    source: ToolSource

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return what the source lists."""
        return await self.source.list_tools()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        upstream: Upstream | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Let the source call it."""
        return await self.source.call_tool(name, arguments, caller=caller, upstream=upstream, extra=extra)
