"""What providers say they have: read with suspicion, remembered for a while, asked for by one caller at a time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from toolscout.models import ToolMetadata
from toolscout.ports import ToolProvider
from toolscout.registry.definitions import clean_name
from toolscout.registry.problems import Problems
from toolscout.registry.providers import asking, is_being_asked, said
from toolscout.settings import Settings
from toolscout.sources.provider_calls import ask

_MOST_DOUBLINGS = 5
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The tools of a provider, by the name that search shows; each keeps the provider's own spelling."""

    tools: Mapping[str, ToolMetadata] = field(default_factory=dict)
    failures: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    provider: ToolProvider
    listing: Listing
    at: float


class Listings:
    """The listings of providers, fresh enough; any number of threads and loops may ask at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with none; `clock` is there for tests."""
        self.version = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}
        self._flights: dict[int, Future[Listing | None]] = {}

    async def read(
        self, providers: Sequence[ToolProvider], settings: Settings, problems: Problems, *, again: bool = False
    ) -> list[Listing]:
        """Return the listing of each provider, asking those whose listing is old, or all of them `again`."""
        found = {id(item): None if again else self.fresh(item, settings) for item in providers}
        old = [item for item in providers if found[id(item)] is None]
        asked = await asyncio.gather(*(self._one(item, settings, problems, again=again) for item in old))
        found.update(zip(map(id, old), asked, strict=True))
        return [found[id(item)] or Listing() for item in providers]

    def fresh(self, provider: ToolProvider, settings: Settings) -> Listing | None:
        """Return a listing that need not be asked for; one that failed is left alone longer each time."""
        kept = self._kept.get(id(provider))
        if kept is None:
            return None
        patience = settings.provider_refresh_s * 2 ** min(kept.listing.failures, _MOST_DOUBLINGS)
        return kept.listing if self._clock() - kept.at < patience else None

    def last(self, provider: ToolProvider) -> Listing:
        """Return the latest listing, however old."""
        kept = self._kept.get(id(provider))
        return kept.listing if kept else Listing()

    def forget(self, provider: ToolProvider) -> None:
        """Drop what is remembered of a provider."""
        with self._lock:
            self._kept.pop(id(provider), None)

    async def _one(self, provider: ToolProvider, settings: Settings, problems: Problems, *, again: bool) -> Listing:
        key = id(provider)
        if is_being_asked(provider):
            return Listing()  # a provider that lists this registry, which lists the provider: the circle ends here
        while True:
            with self._lock:
                listing = None if again else self.fresh(provider, settings)
                if listing is not None:
                    return listing
                flight = self._flights.get(key)
                if flight is None:
                    mine: Future[Listing | None] = Future()
                    self._flights[key] = mine
                    break
            # Who asks has the deadline; that is waited for no longer only guards against a loop that stands still.
            waited = asyncio.wrap_future(flight)
            await asyncio.wait({waited}, timeout=3 * settings.provider_timeout_s)
            if not flight.done():
                return self.last(provider)
            if (found := flight.result()) is not None:
                return found
        listing = None
        try:
            listing = await self._ask(provider, settings, problems)
        finally:
            with self._lock:
                if listing is not None:
                    listing = self._keep(provider, listing)
                del self._flights[key]
            mine.set_result(listing)
        return listing

    def _keep(self, provider: ToolProvider, listing: Listing) -> Listing:
        """Remember a listing; an equal one is the same one, so that nothing is indexed again for it."""
        kept = self._kept.get(id(provider))
        if kept is not None and kept.listing == listing:
            listing = kept.listing
        else:
            self.version += 1
        self._kept[id(provider)] = _Kept(provider, listing, self._clock())
        return listing

    async def _ask(self, provider: ToolProvider, settings: Settings, problems: Problems) -> Listing:
        try:
            with asking(provider):
                items = await ask(provider.list_tool_metadata, settings.provider_timeout_s, most=settings.max_tools + 1)
            return _read_all(provider, items, settings.max_tools, problems)
        except Exception as error:  # noqa: BLE001 - whatever a provider raises costs only its own tools
            problems.report(provider, f"its tools cannot be listed: {said(error)}")
            return Listing(failures=self.last(provider).failures + 1)


def _read_all(provider: ToolProvider, items: list[Any], most: int, problems: Problems) -> Listing:
    tools: dict[str, ToolMetadata] = {}
    bad: list[str] = []
    if len(items) > most:
        bad.append(f"it lists more than {most:,} tools; the rest is left out")
    for number, item in enumerate(items[:most], start=1):
        try:
            metadata = _read(item)
        except (TypeError, ValueError) as error:
            bad.append(f"tool {number}: {error}")
            continue
        if tools.setdefault(clean_name(metadata.name), metadata) is not metadata:
            bad.append(f"tool {number}: {metadata.name!r} comes twice; the first is kept")
    if bad:
        more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        problems.report(provider, "; ".join(bad[:_SHOWN]) + more)
    return Listing(tools=tools)


def _read(item: Any) -> ToolMetadata:
    name, description, keywords = (_part(item, part) for part in ("name", "description", "keywords"))
    if not isinstance(name, str) or not clean_name(name):
        raise ValueError(f"a {type(item).__name__} without a name")
    if not isinstance(description, str | None):
        raise TypeError(f"the description of {name[:80]!r} is a {type(description).__name__}")
    words = (keywords,) if isinstance(keywords, str) else tuple(keywords or ())
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"the keywords of {name[:80]!r} are not texts")
    return ToolMetadata(name=name, description=description or "", keywords=words)


def _part(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
