"""The tools that a request sees: its own providers first, then registered tools, then the registry's providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolscout.models import ToolMetadata
from toolscout.ports import ToolProvider
from toolscout.registry.problem_log import provider_name
from toolscout.registry.providers import ProviderTools
from toolscout.registry.registered_tools import RegisteredTool

Row = Mapping[str, Any]
ToolsByProvider = Sequence[tuple[ToolProvider, ProviderTools]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTool:
    """A tool of a provider."""

    provider: ToolProvider
    metadata: ToolMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleTools:
    """The tools that one request sees. On equal names within a group, the first has precedence."""

    request: ToolsByProvider = ()
    registered: Mapping[str, RegisteredTool]
    shared: ToolsByProvider = ()

    def find(self, name: str) -> Iterator[RegisteredTool | ProviderTool]:
        """Return the tools of that name, the one with precedence first."""
        yield from _find_in(self.request, name)
        if name in self.registered:
            yield self.registered[name]
        yield from _find_in(self.shared, name)

    def names(self) -> list[str]:
        """Return the name of every tool that the request can call."""
        names = [name for _, provider_tools in (*self.request, *self.shared) for name in provider_tools.tools]
        return list(dict.fromkeys([*names, *self.registered]))

    def metadata(self) -> list[ToolMetadata]:
        """Return the metadata of the shared tools, as a provider lists them."""
        return [*(item.metadata for item in self.registered.values()), *self._provider_metadata().values()]

    def request_rows(self) -> list[Row]:
        """Return the rows to index for this request alone."""
        return [_row(name, item) for name, item in _merge(self.request).items()]

    def shared_rows(self) -> list[Row]:
        """Return the rows to index for all requests."""
        return [
            *(item.row for item in self.registered.values()),
            *(_row(name, item) for name, item in self._provider_metadata().items()),
        ]

    def collisions(self) -> list[tuple[ToolProvider, str]]:
        """Describe which shared tools are hidden by another of the same name."""
        owners: dict[str, str] = dict.fromkeys(self.registered, "a registered tool")
        hidden: list[tuple[ToolProvider, str]] = []
        for provider, provider_tools in self.shared:
            for name in provider_tools.tools:
                if name in owners:
                    hidden.append((provider, f"its {name!r} is hidden by {owners[name]} of the same name"))
                else:
                    owners[name] = f"a tool of {provider_name(provider)}"
        return hidden

    def _provider_metadata(self) -> dict[str, ToolMetadata]:
        return {name: item for name, item in _merge(self.shared).items() if name not in self.registered}


def _find_in(tools: ToolsByProvider, name: str) -> Iterator[ProviderTool]:
    for provider, provider_tools in tools:
        if name in provider_tools.tools:
            yield ProviderTool(provider=provider, metadata=provider_tools.tools[name])


def _merge(tools: ToolsByProvider) -> dict[str, ToolMetadata]:
    merged: dict[str, ToolMetadata] = {}
    for _, provider_tools in tools:
        for name, item in provider_tools.tools.items():
            merged.setdefault(name, item)
    return merged


def _row(name: str, item: ToolMetadata) -> Row:
    return {"name": name, "description": item.description, "keywords": list(item.keywords)}
