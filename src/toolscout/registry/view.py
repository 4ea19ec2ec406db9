"""Which tool a name means: the request's providers first, then what is registered, then everybody's providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolscout.models import ToolMetadata
from toolscout.ports import ToolProvider
from toolscout.registry.functions import Registered
from toolscout.registry.listing import Listing
from toolscout.registry.problems import name_of

Row = Mapping[str, Any]
Listed = Sequence[tuple[ToolProvider, Listing]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool that a provider listed."""

    provider: ToolProvider
    metadata: ToolMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one request sees at one moment; within each group, the first to name a tool has it."""

    request: Listed = ()
    registered: Mapping[str, Registered]
    shared: Listed = ()

    def find(self, name: str) -> Iterator[Registered | Offered]:
        """Return who has a tool of that name, the one that is meant first."""
        yield from _offered(self.request, name)
        if name in self.registered:
            yield self.registered[name]
        yield from _offered(self.shared, name)

    def names(self) -> list[str]:
        """Return every name that the request can call, in the order of precedence."""
        listed = [name for _, listing in (*self.request, *self.shared) for name in listing.tools]
        return list(dict.fromkeys([*listed, *self.registered]))

    def metadata(self) -> list[ToolMetadata]:
        """Return what everybody has, as a provider tells it."""
        rest = {name: item for name, item in _merged(self.shared).items() if name not in self.registered}
        return [*(item.metadata for item in self.registered.values()), *rest.values()]

    def own_rows(self) -> list[Row]:
        """Return what is to be indexed for this request alone."""
        return [_row(name, item) for name, item in _merged(self.request).items()]

    def shared_rows(self) -> list[Row]:
        """Return what is to be indexed for everybody."""
        rest = {name: item for name, item in _merged(self.shared).items() if name not in self.registered}
        return [*(item.row for item in self.registered.values()), *(_row(name, item) for name, item in rest.items())]

    def collisions(self) -> list[tuple[ToolProvider, str]]:
        """Say which of everybody's tools are hidden by another of the same name."""
        holder: dict[str, str] = dict.fromkeys(self.registered, "a registered tool")
        found: list[tuple[ToolProvider, str]] = []
        for provider, listing in self.shared:
            for name in listing.tools:
                if name in holder:
                    found.append((provider, f"its {name!r} is hidden by {holder[name]} of the same name"))
                else:
                    holder[name] = f"a tool of {name_of(provider)}"
        return found


def _offered(listed: Listed, name: str) -> Iterator[Offered]:
    for provider, listing in listed:
        if name in listing.tools:
            yield Offered(provider=provider, metadata=listing.tools[name])


def _merged(listed: Listed) -> dict[str, ToolMetadata]:
    merged: dict[str, ToolMetadata] = {}
    for _, listing in listed:
        for name, item in listing.tools.items():
            merged.setdefault(name, item)
    return merged


def _row(name: str, item: ToolMetadata) -> Row:
    return {"name": name, "description": item.description, "keywords": list(item.keywords)}
