"""Another source under the name, and with the trust, that the caller of `index_server_tools` gave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolscout.models import Caller, Server
from toolscout.ports import ToolSource, Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedSource:
    """The tools of another source, as a server of another name."""

    server: Server
    source: ToolSource

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the definitions of the source."""
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
        """Call the tool at the source."""
        return await self.source.call_tool(name, arguments, caller=caller, upstream=upstream, extra=extra)
