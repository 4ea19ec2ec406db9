"""What each caller is shown by `tools/list`, rendered once for a state of the catalogue: the same bytes every time."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolscout.errors import ToolNotFoundError
from toolscout.gateway.surface import CALLS, check_surface, list_surface
from toolscout.models import Caller, Tool
from toolscout.scout import Scout

_MOST_CALLERS = 256
_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One rendered list, and which of its names are tools of servers."""

    state: tuple[int, int]
    """The generation of the catalogue, and the policy, that it was rendered by."""
    tools: tuple[dict[str, Any], ...]
    schemas: Mapping[str, Mapping[str, Any]]
    passed: frozenset[str]
    digest: str


class Listings:
    """Renders the list of a caller when the catalogue has changed, and remembers it until then."""

    def __init__(self, scout: Scout, *, surface: str, core: Sequence[str] = ()) -> None:
        """Choose the surface, and the keys that are listed beside it."""
        check_surface(surface)
        self._scout = scout
        self._surface = surface
        self._core = tuple(core)
        self._rendered: OrderedDict[Caller, Listing] = OrderedDict()

    def choose(self, *, surface: str, core: Sequence[str]) -> None:
        """Follow an edit of the config."""
        check_surface(surface)
        if (surface, tuple(core)) != (self._surface, self._core):
            self._surface, self._core = surface, tuple(core)
            self._rendered.clear()

    async def of(self, caller: Caller) -> Listing:
        """Return the list of a caller."""
        policy = self._scout.admin.policy_version
        overview = await self._scout.overview(caller=caller)
        known, state = self._rendered.get(caller), (overview.generation, policy)
        if known is None or known.state != state:
            known = await self._render(caller, state, overview.servers, overview.categories)
            self._rendered[caller] = known
            while len(self._rendered) > _MOST_CALLERS:
                self._rendered.popitem(last=False)
        self._rendered.move_to_end(caller)
        return known

    @property
    def calls(self) -> frozenset[str]:
        """Return the names that call tools by key; they are listed to everyone, so that no list has to be looked at."""
        return CALLS[self._surface]

    def input_schema(self, name: str, caller: Caller | None) -> Mapping[str, Any] | None:
        """Return the input schema that a caller was last shown under a name."""
        known = self._rendered.get(caller) if caller else None
        return known.schemas.get(name) if known else None

    async def _render(
        self, caller: Caller, state: tuple[int, int], servers: Sequence[str], categories: Sequence[str]
    ) -> Listing:
        everything = await self._everything(caller) if self._surface == "all" else []
        shown = await self._always(caller)
        tools = list_surface(self._surface, servers=servers, categories=categories, core=shown, everything=everything)
        return Listing(
            state=state,
            tools=tuple(tools),
            schemas={tool["name"]: tool["inputSchema"] for tool in tools},
            passed=frozenset(tool.key for tool in (*shown, *everything)),
            digest=hashlib.sha256(json.dumps(tools, separators=(",", ":")).encode()).hexdigest(),
        )

    async def _always(self, caller: Caller) -> list[Tool]:
        """Return the core tools that this caller may see; a key that names none is left out."""
        if not self._core or self._surface == "all":
            return []
        try:
            found = await self._scout.get_tool_details(self._core, caller=caller)
        except ToolNotFoundError:
            return []
        return sorted((match.tool for match in found), key=lambda tool: tool.key)

    async def _everything(self, caller: Caller) -> list[Tool]:
        tools: list[Tool] = []
        page = 1
        while True:
            answer = await self._scout.list_tools(detail="minimal", page=page, page_size=_PAGE, caller=caller)
            tools += [match.tool for match in answer]
            if answer.pagination is None or not answer.pagination.has_next:
                return tools
            page += 1
