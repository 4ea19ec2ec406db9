"""The gateway: one MCP server, both eras, any transport, in front of everything that a scout knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, NoReturn

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from toolscout.errors import ToolscoutError
from toolscout.gateway.announce import Announcer
from toolscout.gateway.calls import Calls
from toolscout.gateway.dispatch import Dispatch
from toolscout.gateway.door import Door
from toolscout.gateway.identity import Identity
from toolscout.gateway.instructions import instructions_for
from toolscout.gateway.listing import Listings
from toolscout.gateway.peers import Context, Peer, is_modern
from toolscout.gateway.resources import NotFoundError, Resources
from toolscout.gateway.results import PREFIX as RESULTS
from toolscout.gateway.results import Results
from toolscout.models import Caller
from toolscout.scout import Scout
from toolscout.settings import Settings

_log = logging.getLogger("toolscout")
_HEAD_START_S = 0.02
_LEAST_INTERVAL_S = 0.05
_NOT_FOUND = -32602
_NOT_FOUND_BEFORE_2026 = -32002


class Gateway:
    """Answers agents from a scout; `server` runs on any transport of the SDK."""

    def __init__(
        self,
        scout: Scout,
        *,
        settings: Settings | None = None,
        surface: str = "compact",
        core: Sequence[str] = (),
        authenticated: bool = False,
    ) -> None:
        """Put the gateway together; nothing is connected or listed yet.

        With `authenticated`, a request is answered only for whom the HTTP server has verified, never for a local user.
        """
        settings = settings or Settings()
        self.scout = scout
        self._settings = settings
        self._results = Results(ttl_s=settings.results_ttl_s, max_bytes=settings.results_bytes)
        self._resources = Resources(scout)
        self._calls = Calls(scout, settings, self._results, self._resources.remember_links)
        self._dispatch = Dispatch(scout, self._calls)
        self.listings = Listings(scout, surface=surface, core=core)
        self._identity = Identity(lambda: scout.caller, authenticated=authenticated)
        self.announcer = Announcer(self._identity.of, self._digest)
        self.answered = asyncio.Event()
        self._trouble = ""
        self.server = _DualServer(
            "toolscout",
            version=version("toolscout"),
            title="Toolscout",
            instructions=instructions_for(surface),
            get_tool_input_schema=lambda name: self.listings.input_schema(name, self._identity.current()),
            on_subscriptions_listen=self.announcer.listen,
            on_list_tools=_by_the_door,
            on_call_tool=_by_the_door,
            on_list_resources=_by_the_door,
            on_list_resource_templates=_by_the_door,
            on_read_resource=_by_the_door,
            on_list_prompts=_by_the_door,
            on_get_prompt=_by_the_door,
            on_completion=_by_the_door,
        )
        door = Door(
            {
                "tools/list": self._list_tools,
                "tools/call": self._call_tool,
                "resources/list": self._list_resources,
                "resources/templates/list": self._list_templates,
                "resources/read": self._read_resource,
                "prompts/list": self._list_prompts,
                "prompts/get": self._get_prompt,
                "completion/complete": self._complete,
            },
            server_info=self.server.server_info_stamp,
            list_ttl_ms=settings.list_ttl_ms,
        )
        self.server.middleware[:] = [self.announcer, door]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Gateway]:
        """Watch the catalogue while a transport runs; end what waits when it stops."""
        watching = asyncio.create_task(self._watch())
        try:
            yield self
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            self.announcer.close()
            self._calls.close()

    async def first_answer(self, most_s: float) -> None:
        """Wait until the first list is on its way or the first call has come, but not longer than that."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.answered.wait(), most_s)

    def _identify(self, context: Context) -> Caller:
        """Say who asks: whoever was verified, or, without authentication, the local user."""
        return self._identity.of(context)

    async def _list_tools(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        listing = await self.listings.of(self._identify(context))
        if not self.answered.is_set():
            asyncio.get_running_loop().call_later(_HEAD_START_S, self.answered.set)
        return {"tools": list(listing.tools)}

    async def _call_tool(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        self.answered.set()
        caller = self._identify(context)
        return await self._dispatch.call(self.listings, Peer(context), params, caller)

    async def _list_resources(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        return {"resources": await self._resources.list_all("resources/list", self._identify(context))}

    async def _list_templates(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        found = await self._resources.list_all("resources/templates/list", self._identify(context))
        return {"resourceTemplates": found}

    async def _list_prompts(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        return {"prompts": await self._resources.list_all("prompts/list", self._identify(context))}

    async def _read_resource(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        caller, uri = self._identify(context), str(params["uri"])
        if uri.startswith(RESULTS):
            text = self._results.read(uri, caller)
            if text is None:
                raise _not_found(context, "this process keeps no such result, or no longer", uri)
            return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}
        try:
            return await self._resources.read(params, Peer(context), caller)
        except NotFoundError as error:
            raise _not_found(context, error.message, uri) from None

    async def _get_prompt(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._resources.get_prompt(params, Peer(context), self._identify(context))

    async def _complete(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._resources.complete(params, Peer(context), self._identify(context))

    async def _watch(self) -> None:
        """Tell clients when a list changed, whoever changed it: a server, an edit, another process."""
        changes = self._changes()
        while True:
            await asyncio.sleep(max(self._settings.reindex_interval_s, _LEAST_INTERVAL_S))
            await self._look_at_store()
            await self.announcer.look()
            if changes != (changes := self._changes()):
                self._resources.forget()
                await self.announcer.offers_changed()

    def _changes(self) -> tuple[int, int]:
        return (self.scout.live.changes if self.scout.live else 0, self.scout.admin.policy_version)

    async def _digest(self, caller: Caller) -> str | None:
        try:
            return (await self.listings.of(self._identity.reaching(caller))).digest
        except ToolscoutError:
            return None  # the watch tells

    async def _look_at_store(self) -> None:
        try:
            stale = (await self.scout.overview()).stale
            self._tell("the store cannot be reached; answers are from what was loaded last" if stale else "")
        except ToolscoutError as error:
            self._tell(f"the catalogue cannot be read: {error.message}")

    def _tell(self, trouble: str) -> None:
        """Log when the store goes and when it is back, not as often as it is looked at."""
        if trouble and not self._trouble:
            _log.warning("%s", trouble)
        elif self._trouble and not trouble:
            _log.warning("the store is back")
        self._trouble = trouble


class _DualServer(Server[Any]):
    """Says `listChanged` in the handshake on every transport; the SDK's HTTP path takes no options from us."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **named: Any
    ) -> InitializationOptions:
        """Return the options of the handshake."""
        changes = NotificationOptions(tools_changed=True, resources_changed=True, prompts_changed=True)
        return super().create_initialization_options(notification_options or changes, *args, **named)


async def _by_the_door(_context: Context, _params: Any) -> NoReturn:
    """Stand for a method in the capabilities; the door answers before this is reached."""
    raise AssertionError


def _not_found(context: Context, message: str, uri: str) -> MCPError:
    code = _NOT_FOUND if is_modern(context) else _NOT_FOUND_BEFORE_2026
    return MCPError(code=code, message=message, data={"uri": uri[:2_000]})
