"""Resources and prompts of the servers behind the gateway, under names that contain the server.

The resource `file:///a.txt` of the server `files` becomes `toolscout://servers/files/file:///a.txt`. The original
address is not encoded, so a template stays a template. The prompt `review` of the server `git` becomes `git__review`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache, TTLCache

from toolscout.compact_json import byte_size
from toolscout.errors import CallError, InvalidValueError, ToolscoutError
from toolscout.gateway.client import RequestClient
from toolscout.gateway.identity import Owner, owner_of
from toolscout.models import Caller, Scope
from toolscout.policy.policy_file import ItemKind
from toolscout.policy.server_items import ServerItem
from toolscout.scout import Scout
from toolscout.tool_keys import split_key, tool_key

PREFIX = "toolscout://servers/"

_log = logging.getLogger("toolscout")
_LIST_TIMEOUT_S = 5.0
_LIST_TTL_S = 30.0
_MAX_PAGES = 50
_MAX_LINKS = 4_096
_MAX_ITEMS = 5_000
_MAX_WITHHELD = 65_536
_MAX_CALLERS = 256
_LIST_BYTES = 1_024
_ITEMS_PER_TURN = 200
_MAX_LIST_BYTES = 1_048_576
_MAX_CACHED_BYTES = 33_554_432
_FIELDS = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}


@dataclass(frozen=True, slots=True)
class _ListedItem:
    name: str
    """The address or name as the server wrote it."""
    item: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _CachedList:
    items: list[_ListedItem]
    withheld: frozenset[str]
    size: int


class NotFoundError(InvalidValueError):
    """No server that the caller can reach has such a resource or prompt."""


class ServerResources:
    """Lists and reads the resources and prompts of servers. A server that is down is skipped."""

    def __init__(self, scout: Scout) -> None:
        self._scout = scout
        self._lists: TTLCache[tuple[str, str, Owner], _CachedList] = TTLCache(
            _MAX_CACHED_BYTES, _LIST_TTL_S, getsizeof=lambda cached: cached.size
        )
        self._links: LRUCache[tuple[Owner, str], str] = LRUCache(_MAX_LINKS)
        self._withheld_resources: LRUCache[bytes, bool] = LRUCache(_MAX_WITHHELD)
        self._callable: LRUCache[Caller, tuple[tuple[int, int], frozenset[str]]] = LRUCache(_MAX_CALLERS)

    def clear(self) -> None:
        """Drop the cached lists, because the servers or the policy have changed."""
        self._lists.clear()

    async def list_all(self, method: str, caller: Caller) -> list[dict[str, Any]]:
        """Return the lists of all servers that are up, in the order of their keys."""
        kind: ItemKind = "prompts" if method == "prompts/list" else "resources"
        callable_servers = await self._callable_servers(caller)

        def is_allowed(server: str, name: str | None) -> bool:
            return self._may_use(kind, server, name, caller, callable_servers)

        servers = [server for server in self._scout.servers.ready() if is_allowed(server, None)]
        lists = await asyncio.gather(*(self._list_one(server, method, caller) for server in servers))
        return [
            listed.item
            for server, cached in zip(servers, lists, strict=True)
            for listed in cached.items
            if is_allowed(server, listed.name)
        ]

    async def read(self, params: Mapping[str, Any], client: RequestClient, caller: Caller) -> dict[str, Any]:
        """Read a resource from its server. The contents have the gateway's addresses."""
        server, uri = await self._locate_resource(str(params["uri"]), caller, "resources/read")
        result = dict(
            await self._request(server, "resources/read", {**_without_meta(params), "uri": uri}, client, caller)
        )
        contents = result.get("contents")
        if isinstance(contents, list):
            result["contents"] = [
                _add_prefix(server, "uri", item) if _has_text(item, "uri") else item for item in contents
            ]
        return result

    async def get_prompt(self, params: Mapping[str, Any], client: RequestClient, caller: Caller) -> dict[str, Any]:
        """Get a prompt from its server."""
        server, name = await self._locate_prompt(str(params["name"]), caller, "prompts/get")
        return dict(await self._request(server, "prompts/get", {**_without_meta(params), "name": name}, client, caller))

    async def complete(self, params: Mapping[str, Any], client: RequestClient, caller: Caller) -> dict[str, Any]:
        """Ask the server of a prompt or a template to complete an argument."""
        ref, method = dict(params["ref"]), "completion/complete"
        if ref.get("type") == "ref/prompt":
            server, ref["name"] = await self._locate_prompt(str(ref.get("name")), caller, method)
        else:
            server, ref["uri"] = await self._locate_resource(str(ref.get("uri")), caller, method)
        return dict(await self._request(server, method, {**_without_meta(params), "ref": ref}, client, caller))

    def remember_links(self, server: str, result: Mapping[str, Any], caller: Caller) -> None:
        """Remember the server of each resource link in a result, so that the client can read the unchanged link."""
        for item in result.get("content") or ():
            if isinstance(item, Mapping) and item.get("type") == "resource_link" and isinstance(item.get("uri"), str):
                link = (owner_of(caller), item["uri"])
                # When two servers link to the same address, neither may answer for the other.
                self._links[link] = server if self._links.get(link, server) == server else ""

    async def _callable_servers(self, caller: Caller) -> frozenset[str]:
        """Return the servers with a tool that the caller may call, cached until the catalogue or the policy changes."""
        policy = self._scout.access.policy_version
        state = (await self._scout.overview(caller=caller)).generation, policy
        cached = self._callable.get(caller)
        if cached is None or cached[0] != state:
            cached = self._callable[caller] = state, await self._scout.reach(caller=caller)
        return cached[1]

    async def _list_one(self, server: str, method: str, caller: Caller) -> _CachedList:
        cache_key = (server, method, owner_of(caller))
        cached = self._lists.get(cache_key)
        if cached is not None:
            return cached
        field, name = _FIELDS[method]
        items: list[_ListedItem] = []
        size = _LIST_BYTES
        full = False
        try:
            async with asyncio.timeout(_LIST_TIMEOUT_S):
                cursor: str | None = None
                for _ in range(_MAX_PAGES):
                    page = await self._request(server, method, {"cursor": cursor} if cursor else {}, None, caller)
                    listed = page.get(field)
                    for item in listed if isinstance(listed, list) else ():
                        full = size > _MAX_LIST_BYTES or len(items) >= _MAX_ITEMS
                        if full:
                            break
                        if _has_text(item, name):
                            items.append(_ListedItem(item[name], _add_prefix(server, name, item)))
                            size += byte_size(items[-1].item)
                            if len(items) % _ITEMS_PER_TURN == 0:
                                await asyncio.sleep(0)  # others have their turn
                    cursor = page.get("nextCursor")
                    if full or not isinstance(cursor, str):
                        break
        except (ToolscoutError, TimeoutError) as error:
            _log.debug("%s of %s: %s", method, server, error)  # no warning: most servers have only tools
        if full:
            _log.warning("%s of %s is cut after %d entries", method, server, len(items))
        withheld = await self._withheld_of(server, method, items, owner_of(caller))
        items = [listed for listed in items if listed.name not in withheld]
        cached = self._lists[cache_key] = _CachedList(items, withheld, min(size, _MAX_CACHED_BYTES))
        return cached

    async def _withheld_of(self, server: str, method: str, items: list[_ListedItem], owner: Owner) -> frozenset[str]:
        """Return the names of the items that the screen withholds. Resources are remembered, see `_is_withheld`."""
        target = self._scout.servers.get(server)
        if target is None:
            return frozenset(listed.name for listed in items)
        field = _FIELDS[method][1]
        originals = [{**listed.item, field: listed.name} for listed in items]
        reasons = await self._scout.access.withheld(target.server, originals)
        withheld = frozenset(listed.name for listed, reason in zip(items, reasons, strict=True) if reason)
        if method != "prompts/list":
            for listed in items:
                place = _place_of(server, method, listed.name, owner)
                if listed.name in withheld:
                    self._withheld_resources[place] = True
                else:
                    self._withheld_resources.pop(place, None)
        return withheld

    async def _request(
        self, server: str, method: str, params: Mapping[str, Any], client: RequestClient | None, caller: Caller
    ) -> Mapping[str, Any]:
        target = self._scout.servers.get(server)
        if target is None:
            raise CallError(f"there is no server {server!r} any more", hint="list again")
        if client is None:
            return await target.request(method, params, caller=caller)
        async with self._scout.access.server_request(caller, target.server, method):
            return await target.request(method, params, caller=caller, upstream=client)

    async def _locate_resource(self, uri: str, caller: Caller, method: str) -> tuple[str, str]:
        if uri.startswith(PREFIX):
            server, _, original = uri.removeprefix(PREFIX).partition("/")
        else:
            server, original = self._links.get((owner_of(caller), uri), ""), uri
        if not await self._check("resources", server, original, caller, method):
            raise NotFoundError("no such resource", hint="list the resources with resources/list")
        return server, original

    async def _locate_prompt(self, name: str, caller: Caller, method: str) -> tuple[str, str]:
        server, original = split_key(name)
        if not await self._check("prompts", server, original, caller, method):
            raise NotFoundError("no such prompt", hint="list the prompts with prompts/list")
        return server, original

    async def _check(self, kind: ItemKind, server: str, name: str, caller: Caller, method: str) -> bool:
        """Return whether the caller may use a resource or prompt. If not, it leaves an audit line."""
        allowed = name and self._may_use(kind, server, name, caller, await self._callable_servers(caller))
        if allowed and not await self._is_withheld(kind, server, name, caller):
            return True
        self._scout.access.record_unlisted_call(caller, tool_key(server, method), {})
        return False

    async def _is_withheld(self, kind: ItemKind, server: str, name: str, caller: Caller) -> bool:
        """Return whether the screen withholds an item.

        Prompts are listed first. A resource that was never listed is not: nobody was shown the text of its list.
        """
        if kind == "prompts":
            return name in (await self._list_one(server, "prompts/list", caller)).withheld
        methods = ("resources/list", "resources/templates/list")
        return any(_place_of(server, method, name, owner_of(caller)) in self._withheld_resources for method in methods)

    def _may_use(
        self, kind: ItemKind, server: str, name: str | None, caller: Caller, callable_servers: frozenset[str]
    ) -> bool:
        target = self._scout.servers.get(server)
        calls_tools = server in callable_servers
        # A rule that allows resources opens no server that is not indexed for the caller's tenant.
        if target is None or not (calls_tools or Scope(tenant=caller.tenant) in self._scout.servers.scopes_of(server)):
            return False
        item = ServerItem(kind=kind, server=server, title=target.server.title, name=name)
        return self._scout.access.may_use(caller, item, calls_tools=calls_tools)


def _place_of(server: str, method: str, name: str, owner: Owner) -> bytes:
    """Return what identifies an item. Its name may be as long as the server likes."""
    return hashlib.blake2b(repr((server, method, name, owner)).encode(), digest_size=16).digest()


def _add_prefix(server: str, field: str, item: Mapping[str, Any]) -> dict[str, Any]:
    original = item[field]
    return {**item, field: tool_key(server, original) if field == "name" else f"{PREFIX}{server}/{original}"}


def _has_text(item: Any, field: str) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get(field), str)


def _without_meta(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request without `_meta`, which is for the gateway."""
    return {name: value for name, value in params.items() if name != "_meta"}
