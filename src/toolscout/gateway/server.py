"""The gateway: one MCP server in front of a scout's catalogue, for both protocol eras and any transport."""

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
from toolscout.gateway.call_forwarder import CallForwarder, ToolRequest
from toolscout.gateway.client import Context, RequestClient, is_modern
from toolscout.gateway.dispatcher import Dispatcher
from toolscout.gateway.identity import CallerResolver
from toolscout.gateway.middleware import ResultMiddleware
from toolscout.gateway.notifications import ListChangeNotifier
from toolscout.gateway.request_telemetry import RequestTelemetry
from toolscout.gateway.resources import NotFoundError, ServerResources
from toolscout.gateway.result_store import URI_PREFIX as RESULT_URIS
from toolscout.gateway.result_store import ResultStore
from toolscout.gateway.sign_in_question import SignInQuestions
from toolscout.gateway.tool_lists import ToolLists, instructions_for
from toolscout.models import Caller
from toolscout.scout import Scout
from toolscout.settings import Settings

_log = logging.getLogger("toolscout")
_HEAD_START_S = 0.02
_LEAST_INTERVAL_S = 0.05
_NOT_FOUND = -32602
_NOT_FOUND_BEFORE_2026 = -32002


class Gateway:
    """Answers MCP clients from a scout. Its `server` runs on any transport of the SDK."""

    def __init__(
        self,
        scout: Scout,
        *,
        settings: Settings | None = None,
        surface: str = "compact",
        core: Sequence[str] = (),
        authenticated: bool = False,
    ) -> None:
        """Build the gateway without connecting to anything.

        With `authenticated`, it answers only callers that the HTTP server has verified, never the local user.
        """
        settings = settings or Settings()
        self.scout = scout
        self._settings = settings
        self._results = ResultStore(ttl_s=settings.results_ttl_s, max_bytes=settings.results_bytes)
        self._resources = ServerResources(scout)
        sign_ins = SignInQuestions(scout, settings, authenticated=authenticated)
        self._forwarder = CallForwarder(scout, settings, self._results, self._resources.remember_links, sign_ins)
        self.tool_lists = ToolLists(scout, surface=surface, core=core)
        self._dispatcher = Dispatcher(self.tool_lists)
        self._callers = CallerResolver(scout.narrow, authenticated=authenticated)
        self.notifier = ListChangeNotifier(self._callers.of, self._digest)
        self.answered = asyncio.Event()
        self._trouble = ""
        self.server = _DualServer(
            "toolscout",
            version=version("toolscout"),
            title="Toolscout",
            instructions=instructions_for(surface),
            get_tool_input_schema=lambda name: self.tool_lists.input_schema(name, self._callers.current()),
            on_subscriptions_listen=self.notifier.listen,
            on_list_tools=_answered_by_middleware,
            on_call_tool=_answered_by_middleware,
            on_list_resources=_answered_by_middleware,
            on_list_resource_templates=_answered_by_middleware,
            on_read_resource=_answered_by_middleware,
            on_list_prompts=_answered_by_middleware,
            on_get_prompt=_answered_by_middleware,
            on_completion=_answered_by_middleware,
        )
        middleware = ResultMiddleware(
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
        self.server.middleware[:] = [RequestTelemetry(scout.metrics), self.notifier, middleware]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Gateway]:
        """Watch the catalogue while a transport runs. Cancel pending calls when it stops."""
        watcher = asyncio.create_task(self._watch())
        try:
            yield self
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
            self.notifier.close()
            self._forwarder.close()

    async def first_answer(self, most_s: float) -> None:
        """Wait until the first list is sent or the first call arrives, but at most `most_s`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.answered.wait(), most_s)

    async def _list_tools(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        tool_list = await self.tool_lists.of(self._callers.of(context))
        if not self.answered.is_set():
            asyncio.get_running_loop().call_later(_HEAD_START_S, self.answered.set)
        return {"tools": list(tool_list.tools)}

    async def _call_tool(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        self.answered.set()
        request = ToolRequest(
            scout=self.scout,
            forwarder=self._forwarder,
            client=RequestClient(context),
            caller=self._callers.of(context),
            params=params,
        )
        return await self._dispatcher.handle(request)

    async def _list_resources(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        return {"resources": await self._resources.list_all("resources/list", self._callers.of(context))}

    async def _list_templates(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        templates = await self._resources.list_all("resources/templates/list", self._callers.of(context))
        return {"resourceTemplates": templates}

    async def _list_prompts(self, context: Context, _params: Mapping[str, Any]) -> dict[str, Any]:
        return {"prompts": await self._resources.list_all("prompts/list", self._callers.of(context))}

    async def _read_resource(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        caller, uri = self._callers.of(context), str(params["uri"])
        if uri.startswith(RESULT_URIS):
            text = self._results.read(uri, caller)
            if text is None:
                raise _not_found(context, "this result has expired, or another process has it", uri)
            return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}
        try:
            return await self._resources.read(params, RequestClient(context), caller)
        except NotFoundError as error:
            raise _not_found(context, error.message, uri) from None

    async def _get_prompt(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._resources.get_prompt(params, RequestClient(context), self._callers.of(context))

    async def _complete(self, context: Context, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._resources.complete(params, RequestClient(context), self._callers.of(context))

    async def _watch(self) -> None:
        """Notify clients when a list changes because of a server, a config edit or another process."""
        changes = self._changes()
        while True:
            await asyncio.sleep(max(self._settings.reindex_interval_s, _LEAST_INTERVAL_S))
            await self._check_store()
            await self.notifier.notify_changed_tools()
            if changes != (changes := self._changes()):
                self._resources.clear()
                await self.notifier.notify_changed_resources()

    def _changes(self) -> tuple[int, int]:
        return (self.scout.servers.changes, self.scout.access.policy_version)

    async def _digest(self, caller: Caller) -> str | None:
        try:
            return (await self.tool_lists.of(self._callers.with_servers(caller))).digest
        except ToolscoutError:
            return None  # _check_store logs it

    async def _check_store(self) -> None:
        try:
            stale = (await self.scout.overview()).stale
            self._log_trouble("the store cannot be reached, so answers come from the last catalogue" if stale else "")
        except ToolscoutError as error:
            self._log_trouble(f"the catalogue cannot be read: {error.message}")

    def _log_trouble(self, trouble: str) -> None:
        """Log once when the store fails, and once when it is back."""
        if trouble and not self._trouble:
            _log.warning("%s", trouble)
        elif self._trouble and not trouble:
            _log.warning("the store is back")
        self._trouble = trouble


class _DualServer(Server[Any]):
    """A server that declares `listChanged` on every transport. The SDK's HTTP transport has no option for it."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **named: Any
    ) -> InitializationOptions:
        """Return the options of the handshake."""
        changes = NotificationOptions(tools_changed=True, resources_changed=True, prompts_changed=True)
        return super().create_initialization_options(notification_options or changes, *args, **named)


async def _answered_by_middleware(_context: Context, _params: Any) -> NoReturn:
    """Declare a method in the capabilities. ResultMiddleware answers it, so this is never called."""
    raise AssertionError


def _not_found(context: Context, message: str, uri: str) -> MCPError:
    code = _NOT_FOUND if is_modern(context) else _NOT_FOUND_BEFORE_2026
    return MCPError(code=code, message=message, data={"uri": uri[:2_000]})
