"""Browsing without a query: pages, tags, categories, related tools, full definitions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolscout.discovery.answers import answer_query, answer_unranked
from toolscout.discovery.checks import check_count, check_detail, check_filter, check_servers, check_sort, check_tags
from toolscout.errors import InvalidValueError
from toolscout.models import (
    Answer,
    Caller,
    Category,
    Detail,
    Facets,
    Filter,
    Pagination,
    Query,
    Ranked,
    Ranking,
    Tag,
    Tool,
    ToolSort,
)
from toolscout.ports import Store
from toolscout.settings import Settings
from toolscout.suggestions import tool_not_found

EXPLICIT, CATEGORY, TAGS, SIMILAR = 4, 3, 2, 1
"""Relations between tools, the strongest first."""
_MAX_SUGGESTED = 3
_MAX_UNKNOWN_CHARS = 300
_NEAREST = 200
"""How many of the nearest tools by vector can be related as similar."""
_DEFAULT_CATEGORY = "general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """Browses a store within the limits of the settings."""

    store: Store
    settings: Settings

    async def page(
        self,
        narrow: Filter,
        detail: Detail,
        page: int,
        page_size: int | None,
        caller: Caller,
        sort: ToolSort = "key",
        text: str = "",
    ) -> Answer:
        """Return one page of the visible tools with all words of a text, sorted, ties by key.

        A word counts also as a part of another one. A page past the end is empty.
        """
        page_size = self.settings.page_size if page_size is None else page_size
        check_count("page", page)
        check_count("page_size", page_size)
        page_size = min(page_size, self.settings.max_page_size)
        check_sort(sort)
        items = await self._filtered(narrow, detail, caller)
        if text:  # to look through thousands of tools takes long enough to hold up other requests
            items = await asyncio.to_thread(with_words, items, text)
        items = sort_tools(items, sort)
        pagination = Pagination(page=page, page_size=page_size, total_tools=len(items))
        start = (page - 1) * page_size
        return await self._answer(items[start : start + page_size], len(items), detail, caller, pagination)

    async def tagged(self, narrow: Filter, detail: Detail, caller: Caller) -> Answer:
        """Return the tools that have the tags of the filter, in the order of keys."""
        if not narrow.tags:
            raise InvalidValueError("no tag is given", hint="name at least one")
        items = await self._filtered(narrow, detail, caller)
        return await self._answer(items[: self.settings.max_limit], len(items), detail, caller)

    async def related(self, name: str, limit: int, caller: Caller) -> Answer:
        """Return the tools related to a tool, each with its strongest relation."""
        check_count("limit", limit, self.settings.max_limit)
        visible = await self.store.facets(caller, Filter())
        tool = next((item for item in visible if item.key == name), None)
        if tool is None:
            raise await tool_not_found(name, visible)
        similarity = {item.key: cosine for item, cosine in await self.store.similar(caller, name, _NEAREST)}
        related = rank_related(tool, visible, similarity)
        ranking = Ranking(best=related[:limit], matched=len(related))
        tools = await self.store.tools(caller, [item.facets.key for item in ranking.best])
        return answer_query(Query(text=name, ranker="", limit=limit), ranking, tools, await self.store.overview(caller))

    async def details(self, names: str | Sequence[str], caller: Caller) -> Answer:
        """Return full definitions. An unknown key is a suggestion, or an error if none of the keys exists."""
        keys = list(dict.fromkeys([names] if isinstance(names, str) else names))
        if not keys:
            raise InvalidValueError("no key is given", hint="name at least one; a search finds them")
        check_count("names", len(keys), self.settings.max_limit)
        tools = await self.store.tools(caller, keys)
        present = [tools[key] for key in keys if key in tools]
        visible = await self.store.facets(caller, Filter()) if len(present) < len(keys) else ()
        unknown = [key for key in keys if key not in tools]
        errors = [await tool_not_found(key[:_MAX_UNKNOWN_CHARS], visible) for key in unknown[:_MAX_SUGGESTED]]
        if not present:
            raise errors[0]
        overview = await self.store.overview(caller)
        suggestions = [f"{error.message}; nearest: {', '.join(error.suggestions) or 'none'}" for error in errors]
        if len(unknown) > _MAX_SUGGESTED:
            suggestions.append(f"{len(unknown) - _MAX_SUGGESTED} other keys do not exist either")
        return answer_unranked(present, tools, overview, "full", matched=len(present), suggestions=suggestions)

    async def _filtered(self, narrow: Filter, detail: Detail, caller: Caller) -> Sequence[Facets]:
        check_detail(detail)
        check_filter(narrow, (await self.store.overview(caller)).categories)
        await check_servers(self.store, narrow.servers, caller)
        items = await self.store.facets(caller, narrow)
        if narrow.tags and not items:
            await check_tags(self.store, narrow.tags, caller)
        return items

    async def _answer(
        self, items: Sequence[Facets], matched: int, detail: Detail, caller: Caller, page: Pagination | None = None
    ) -> Answer:
        tools = await self.store.tools(caller, [item.key for item in items])
        overview = await self.store.overview(caller)
        return answer_unranked(items, tools, overview, detail, matched=matched, pagination=page)


def with_words(tools: Sequence[Facets], text: str) -> Sequence[Facets]:
    """Return the tools that have every word of a text in their key, description, category or tags."""
    words = text.casefold().split()
    if not words:
        return tools
    return [tool for tool, own in ((item, listed_text(item)) for item in tools) if all(word in own for word in words)]


def listed_text(tool: Facets | Tool) -> str:
    """Return what a list of tools is filtered by."""
    return f"{tool.key} {tool.description} {tool.category} {' '.join(tool.tags)}".casefold()


def sort_tools(tools: Sequence[Facets], sort: ToolSort) -> Sequence[Facets]:
    """Sort tools that come in the order of keys. A minus in front reverses the order."""
    if sort == "key":
        return tools
    field = sort.removeprefix("-")
    return sorted(tools, key=lambda item: getattr(item, field), reverse=sort.startswith("-"))


def count_categories(tools: Sequence[Facets], describe: Callable[[str], str]) -> list[Category]:
    """Count the tools of each category, in the order of names."""
    counts = Counter(item.category for item in tools)
    return [Category(name=name, count=counts[name], description=describe(name)) for name in sorted(counts)]


def count_tags(tools: Sequence[Facets]) -> list[Tag]:
    """Count the tools of each tag, most used first, ties by name."""
    counts = Counter(tag for item in tools for tag in item.tags)
    return [Tag(name=name, count=count) for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def rank_related(tool: Facets, others: Sequence[Facets], similarity: Mapping[str, float]) -> list[Ranked]:
    """Rank other tools by their strongest relation to a tool, then by similarity, ties by key."""
    tags = {tag.casefold() for tag in tool.tags}
    related = []
    for other in others:
        if other.key == tool.key:
            continue
        cosine = similarity.get(other.key, 0.0)
        shared = tuple(tag for tag in other.tags if tag.casefold() in tags)
        strength, relation = _relation(tool, other, shared, cosine)
        if strength:
            related.append((strength, Ranked(facets=other, score=cosine, matched_tags=shared, relationship=relation)))
    related.sort(key=lambda item: (-item[0], -item[1].score, -len(item[1].matched_tags), item[1].facets.key))
    return [item for _, item in related]


def _relation(tool: Facets, other: Facets, shared: Sequence[str], cosine: float) -> tuple[int, str]:
    if _refers_to(tool, other) or _refers_to(other, tool):
        return EXPLICIT, "explicitly_related"
    if tool.category == other.category and tool.category not in ("", _DEFAULT_CATEGORY):
        return CATEGORY, "same_category"
    if shared:
        return TAGS, "shared_tags:" + ",".join(sorted(shared))
    return (SIMILAR, "similar") if cosine > 0 else (0, "")


def _refers_to(tool: Facets, other: Facets) -> bool:
    """Tell whether a tool names the other one by its key, or by its name on the same server."""
    return other.key in tool.related or (other.server == tool.server and other.name in tool.related)
