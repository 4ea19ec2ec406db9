"""Looking around in a store: listings, related tools, full definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolscout.discovery.answer import answer_listing, answer_query
from toolscout.discovery.browse import take_page
from toolscout.discovery.check import check_count, check_detail, check_filter
from toolscout.discovery.named import check_servers, check_tags
from toolscout.discovery.related import rank_related
from toolscout.discovery.suggest import not_found
from toolscout.errors import InvalidValueError
from toolscout.models import Answer, Caller, Detail, Facets, Filter, Pagination, Query, Ranking
from toolscout.ports import Store
from toolscout.settings import Settings

_SIMILAR = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Browsing:
    """What looking around needs: a store and the limits."""

    store: Store
    settings: Settings

    async def page(self, narrow: Filter, detail: Detail, page: int, page_size: int | None, caller: Caller) -> Answer:
        """Return one page of what the caller may see, in the order of keys."""
        page_size = self.settings.page_size if page_size is None else page_size
        check_count("page", page)
        check_count("page_size", page_size)
        tools = await self._narrowed(narrow, detail, caller)
        shown, pagination = take_page(tools, page, min(page_size, self.settings.max_page_size))
        return await self._listed(shown, len(tools), detail, caller, pagination)

    async def tagged(self, narrow: Filter, detail: Detail, caller: Caller) -> Answer:
        """Return the tools that carry the tags of the filter, in the order of keys."""
        if not narrow.tags:
            raise InvalidValueError("no tag is given", hint="name at least one")
        tools = await self._narrowed(narrow, detail, caller)
        return await self._listed(tools[: self.settings.max_limit], len(tools), detail, caller)

    async def related(self, name: str, limit: int, caller: Caller) -> Answer:
        """Return what goes with a tool; each names its strongest relation to it."""
        check_count("limit", limit, self.settings.max_limit)
        visible = await self.store.facets(caller, Filter())
        tool = next((item for item in visible if item.key == name), None)
        if tool is None:
            raise not_found(name, visible)
        near = {item.key: cosine for item, cosine in await self.store.similar(caller, name, _SIMILAR)}
        found = rank_related(tool, visible, near)
        ranked = Ranking(best=found[:limit], matched=len(found))
        tools = await self.store.tools(caller, [item.facets.key for item in ranked.best])
        return answer_query(Query(text=name, ranker="", limit=limit), ranked, tools, await self.store.overview(caller))

    async def details(self, names: str | Sequence[str], caller: Caller) -> Answer:
        """Return full definitions; an unknown key is an error, or a suggestion where other keys were found."""
        keys = list(dict.fromkeys([names] if isinstance(names, str) else names))
        if not keys:
            raise InvalidValueError("no key is given", hint="name at least one; a search finds them")
        tools = await self.store.tools(caller, keys)
        shown = [tools[key] for key in keys if key in tools]
        visible = await self.store.facets(caller, Filter()) if len(shown) < len(keys) else ()
        absent = [not_found(key, visible) for key in keys if key not in tools]
        if not shown:
            raise absent[0]
        overview = await self.store.overview(caller)
        said = [f"{error.message}; nearest: {', '.join(error.suggestions) or 'none'}" for error in absent]
        return answer_listing(shown, tools, overview, "full", matched=len(shown), suggestions=said)

    async def _narrowed(self, narrow: Filter, detail: Detail, caller: Caller) -> Sequence[Facets]:
        check_detail(detail)
        check_filter(narrow, (await self.store.overview(caller)).categories)
        await check_servers(self.store, narrow.servers, caller)
        found = await self.store.facets(caller, narrow)
        if narrow.tags and not found:
            await check_tags(self.store, narrow.tags, caller)
        return found

    async def _listed(
        self, shown: Sequence[Facets], matched: int, detail: Detail, caller: Caller, page: Pagination | None = None
    ) -> Answer:
        tools = await self.store.tools(caller, [item.key for item in shown])
        overview = await self.store.overview(caller)
        return answer_listing(shown, tools, overview, detail, matched=matched, pagination=page)
