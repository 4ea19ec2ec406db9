"""An author's ToolProvider as a source: called with a deadline, its values turned into MCP results."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from typing import Any

from toolscout.errors import CallTimeoutError, ServerUnavailableError, ToolNotFoundError
from toolscout.models import Caller, Server
from toolscout.ports import ToolProvider, Upstream
from toolscout.sources.provider_calls import ask, to_result


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSource:
    """The tools of one provider, as a server of the catalogue."""

    server: Server
    provider: ToolProvider
    timeout_s: float

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the definition of every tool that the provider lists, with its keywords."""
        try:
            async with asyncio.timeout(self.timeout_s):
                metadata = await ask(self.provider.list_tool_metadata, self.timeout_s)
                return [await self._define(_plain(item)) for item in metadata]
        except TimeoutError:
            reason = f"it took longer than {self.timeout_s:g} s"
        except Exception as error:  # noqa: BLE001 - a provider that fails loses only its own tools
            reason = f"{type(error).__name__}: {error}"
        raise ServerUnavailableError(
            f"the tools of {self.server.title} cannot be listed: {reason}", hint="its other tools stay as they were"
        )

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,  # noqa: ARG002 - the protocol of providers has no caller
        upstream: Upstream | None = None,  # noqa: ARG002
        extra: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """Call the provider once. An exception that it raises is an error result of the tool."""
        try:
            value = await ask(partial(self.provider.call_tool, name, arguments), self.timeout_s)
            return to_result(value, structured=True).model_dump(by_alias=True, mode="json", exclude_none=True)
        except ToolNotFoundError:
            raise
        except TimeoutError:
            raise CallTimeoutError(
                f"{name} took longer than {self.timeout_s:g} s", hint="it may still run; it is not called again"
            ) from None
        except Exception as error:  # noqa: BLE001 - the model reads it, and can try something else
            return {"content": [{"type": "text", "text": f"{type(error).__name__}: {error}"}], "isError": True}

    async def _define(self, metadata: dict[str, Any]) -> dict[str, Any]:
        definition = await ask(partial(self.provider.get_tool, metadata["name"]), self.timeout_s)
        return {**metadata, **_plain(definition or {})}


def _plain(item: Any) -> dict[str, Any]:
    """Convert metadata or a definition to a dict. It may be a mapping, a dataclass or an SDK object."""
    if hasattr(item, "model_dump"):
        item = item.model_dump(by_alias=True, mode="json", exclude_none=True)
    if is_dataclass(item) and not isinstance(item, type):
        item = asdict(item)
    return dict(item)
