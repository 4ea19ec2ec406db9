"""Resources and prompts of the servers behind the gateway, under names that say which server they are of.

A resource `file:///a.txt` of the server `files` is `toolscout://servers/files/file:///a.txt` here; the rest of the
address is left as it is, so that templates stay templates. A prompt `review` of `git` is `git__review`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from toolscout.errors import CallError, InvalidValueError, ToolscoutError
from toolscout.gateway.identity import Owner, owner_of
from toolscout.gateway.peers import Peer
from toolscout.models import Caller
from toolscout.scout import Scout
from toolscout.tool_keys import split_key, tool_key

PREFIX = "toolscout://servers/"

_log = logging.getLogger("toolscout")
_WAIT_S = 5.0
_FRESH_S = 30.0
_MOST_PAGES = 50
_MOST_LINKS = 4_096
_MOST_CALLERS = 256
_MOST_LISTS = 4_096
_FIELDS = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}


class NotFoundError(InvalidValueError):
    """No server has what was asked for, or none that this caller may reach."""


class Resources:
    """Lists and reads what servers offer beside tools; a server that is down is left out, and delays nobody."""

    def __init__(self, scout: Scout) -> None:
        """Read through this scout's live servers."""
        self._scout = scout
        self._lists: OrderedDict[tuple[str, str, Owner], tuple[float, list[dict[str, Any]]]] = OrderedDict()
        self._links: OrderedDict[tuple[Owner, str], str] = OrderedDict()
        self._reach: OrderedDict[Caller, tuple[tuple[int, int], frozenset[str]]] = OrderedDict()

    def forget(self) -> None:
        """Ask again next time: some server has come or gone."""
        self._lists.clear()

    async def list_all(self, method: str, caller: Caller) -> list[dict[str, Any]]:
        """Return the lists of all servers that are up, in the order of their keys."""
        reach = await self._reached(caller)
        up = [server for server in self._ready() if server in reach]
        lists = await asyncio.gather(*(self._list_one(server, method, caller) for server in up))
        return [item for items in lists for item in items]

    async def read(self, params: Mapping[str, Any], peer: Peer, caller: Caller) -> dict[str, Any]:
        """Read a resource at its server; its contents carry the address that was asked for."""
        server, uri = await self._place(str(params["uri"]), caller)
        result = dict(await self._request(server, "resources/read", {**_own(params), "uri": uri}, peer, caller))
        contents = result.get("contents")
        if isinstance(contents, list):
            result["contents"] = [_renamed(item, "uri", lambda own: PREFIX + f"{server}/{own}") for item in contents]
        return result

    async def get_prompt(self, params: Mapping[str, Any], peer: Peer, caller: Caller) -> dict[str, Any]:
        """Get a prompt from its server."""
        server, name = await self._prompt(str(params["name"]), caller)
        return dict(await self._request(server, "prompts/get", {**_own(params), "name": name}, peer, caller))

    async def complete(self, params: Mapping[str, Any], peer: Peer, caller: Caller) -> dict[str, Any]:
        """Complete an argument of a prompt or a template at its server."""
        ref = dict(params["ref"])
        if ref.get("type") == "ref/prompt":
            server, ref["name"] = await self._prompt(str(ref.get("name")), caller)
        else:
            server, ref["uri"] = await self._place(str(ref.get("uri")), caller)
        return dict(await self._request(server, "completion/complete", {**_own(params), "ref": ref}, peer, caller))

    def remember_links(self, server: str, result: Mapping[str, Any], caller: Caller) -> None:
        """Remember whose the resource links of a result are: they pass unchanged, and can be read as they are."""
        for item in result.get("content") or ():
            if isinstance(item, Mapping) and item.get("type") == "resource_link" and isinstance(item.get("uri"), str):
                link = (owner_of(caller), item["uri"])
                # Two servers that name the same address: neither may answer for the other.
                self._links[link] = server if self._links.get(link, server) == server else ""
        while len(self._links) > _MOST_LINKS:
            self._links.popitem(last=False)

    def _ready(self) -> Sequence[str]:
        live = self._scout.live
        return [status.server for status in live.statuses() if status.state == "ready"] if live else []

    async def _reached(self, caller: Caller) -> frozenset[str]:
        """Return the servers whose offers are the caller's too, remembered until catalogue or policy change."""
        policy = self._scout.admin.policy_version
        state = (await self._scout.overview(caller=caller)).generation, policy
        known = self._reach.get(caller)
        if known is None or known[0] != state:
            known = self._reach[caller] = state, await self._scout.reach(caller=caller)
            while len(self._reach) > _MOST_CALLERS:
                self._reach.popitem(last=False)
        return known[1]

    async def _list_one(self, server: str, method: str, caller: Caller) -> list[dict[str, Any]]:
        where = (server, method, owner_of(caller))
        known = self._lists.get(where)
        if known and known[0] > time.monotonic():
            return known[1]
        field, name = _FIELDS[method]
        items: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(_WAIT_S):
                cursor: str | None = None
                for _ in range(_MOST_PAGES):
                    page = await self._request(server, method, {"cursor": cursor} if cursor else {}, None, caller)
                    items += [_prefixed(server, name, item) for item in page.get(field) or () if _named(item, name)]
                    cursor = page.get("nextCursor")
                    if not isinstance(cursor, str):
                        break
        except (ToolscoutError, TimeoutError) as error:
            _log.debug("%s of %s: %s", method, server, error)  # most servers have only tools
        self._lists[where] = (time.monotonic() + _FRESH_S, items)
        while len(self._lists) > _MOST_LISTS:
            self._lists.popitem(last=False)
        return items

    async def _request(
        self, server: str, method: str, params: Mapping[str, Any], peer: Peer | None, caller: Caller
    ) -> Mapping[str, Any]:
        live = self._scout.live
        found = live.server(server) if live else None
        if found is None:
            raise CallError(f"no server is called {server!r}", hint="list again")
        return await found.request(method, params, caller=caller, upstream=peer)

    async def _place(self, uri: str, caller: Caller) -> tuple[str, str]:
        if uri.startswith(PREFIX):
            server, _, own = uri.removeprefix(PREFIX).partition("/")
        else:
            server, own = self._links.get((owner_of(caller), uri), ""), uri
        if not own or not await self._reaches(server, caller):
            raise NotFoundError("no such resource", hint="resources/list shows what there is")
        return server, own

    async def _prompt(self, name: str, caller: Caller) -> tuple[str, str]:
        server, own = split_key(name)
        if not own or not await self._reaches(server, caller):
            raise NotFoundError("no such prompt", hint="prompts/list shows what there is")
        return server, own

    async def _reaches(self, server: str, caller: Caller) -> bool:
        live = self._scout.live
        return bool(server and live and live.server(server)) and server in await self._reached(caller)


def _prefixed(server: str, field: str, item: Mapping[str, Any]) -> dict[str, Any]:
    own = item[field]
    return {**item, field: tool_key(server, own) if field == "name" else f"{PREFIX}{server}/{own}"}


def _named(item: Any, field: str) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get(field), str)


def _renamed(item: Any, field: str, rename: Any) -> Any:
    return {**item, field: rename(item[field])} if _named(item, field) else item


def _own(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's parameters without the envelope, which is the gateway's own business."""
    return {name: value for name, value in params.items() if name != "_meta"}
