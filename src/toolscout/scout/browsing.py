"""Browsing as the facade offers it: answers with their true duration, bare names, described categories."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolscout.discovery.browse import Browser, count_categories, count_tags
from toolscout.errors import InvalidValueError
from toolscout.indexing.taxonomy import describe_category
from toolscout.models import Answer, Caller, Category, Detail, Filter, Tag, ToolSort
from toolscout.ports import Store
from toolscout.settings import Settings
from toolscout.tool_keys import SEPARATOR


@dataclass(slots=True, kw_only=True)
class CatalogueBrowser:
    """Browses a store. `categories` are descriptions of the operator's own categories."""

    store: Store
    settings: Settings
    categories: Mapping[str, str] = field(default_factory=dict)

    @property
    def _browser(self) -> Browser:
        return Browser(store=self.store, settings=self.settings)

    async def page(
        self,
        narrow: Filter,
        detail: Detail,
        page: int,
        page_size: int | None,
        caller: Caller,
        sort: ToolSort,
        text: str,
    ) -> Answer:
        """Return one page of the visible tools."""
        return await _timed(self._browser.page(narrow, detail, page, page_size, caller, sort, text))

    async def tagged(self, narrow: Filter, detail: Detail, caller: Caller) -> Answer:
        """Return the tools that have the tags of the filter, each with those of them that it has."""
        answer = await _timed(self._browser.tagged(narrow, detail, caller))
        wanted = {tag.casefold() for tag in narrow.tags}
        matches = tuple(
            replace(match, matched_tags=tuple(tag for tag in match.tool.tags if tag.casefold() in wanted))
            for match in answer
        )
        return replace(answer, matches=matches)

    async def related(self, name: str, limit: int, caller: Caller) -> Answer:
        """Return the tools related to a tool, which is named by its key, or by its name if only one has it."""
        return await _timed(self._related(name, limit, caller))

    async def details(self, names: str | Sequence[str], caller: Caller) -> Answer:
        """Return full definitions."""
        return await _timed(self._browser.details(names, caller))

    async def count_categories(self, caller: Caller) -> list[Category]:
        """Count the tools of each category."""
        tools = await self.store.facets(caller, Filter())
        return count_categories(tools, lambda name: self.categories.get(name) or describe_category(name))

    async def count_tags(self, caller: Caller) -> list[Tag]:
        """Count the tools of each tag."""
        return count_tags(await self.store.facets(caller, Filter()))

    async def _related(self, name: str, limit: int, caller: Caller) -> Answer:
        if SEPARATOR not in name:
            keys = [tool.key for tool in await self.store.facets(caller, Filter()) if tool.name == name]
            if len(keys) > 1:
                raise InvalidValueError(
                    f"{len(keys)} tools are called {name!r}", hint="name one by its key", suggestions=keys[:5]
                )
            name = keys[0] if keys else name
        return await self._browser.related(name, limit, caller)


async def _timed(work: Awaitable[Answer]) -> Answer:
    """Await an answer, and put into it how long that took."""
    started = time.perf_counter()
    answer = await work
    return answer.timed((time.perf_counter() - started) * 1_000)


def each_name(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return names as a tuple. A plain text is one name, not its letters."""
    return (names,) if isinstance(names, str) else tuple(names or ())
