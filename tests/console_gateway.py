"""A gateway with a console, in the loop of the test, over MCP servers that list any definitions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as t
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route

from downstreams import until
from toolscout import Scout
from toolscout.api import RestApi, ServerEditor
from toolscout.config import read_config
from toolscout.console.app import Console
from toolscout.console.links import FRAGMENT, new_token
from toolscout.gateway.auth.authentication import authentication_for
from toolscout.gateway.host_check import allowed_hosts
from toolscout.gateway.http import make_app
from toolscout.gateway.http_listener import bind, serve_in_background
from toolscout.gateway.server import Gateway
from toolscout.policy.policy_file import parse_policy
from toolscout.settings import Settings
from web import serving

Definitions = dict[str, list[dict[str, Any]]]


@dataclass
class ConsoleGateway:
    """A running gateway. `definitions` are what its servers list, by server; a test may change them."""

    url: str
    scout: Scout
    console: Console
    definitions: Definitions
    config: Path
    reload: Callable[[], Awaitable[None]]
    calls: list[tuple[str, str, Any]] = field(default_factory=list)

    def link(self) -> str:
        """Return a new link that signs in once."""
        return f"{self.url}/#{FRAGMENT}={new_token(self.console.secret, 60)}"

    async def key(self, *, operator: bool = False, **who: Any) -> str:
        """Make an API key."""
        scopes = ("toolscout:operator",) if operator else ()
        return (await self.scout.api_keys.create(**{"tenant": "local", "scopes": scopes, **who}))[0]


@asynccontextmanager
async def console_gateway(
    folder: Path,
    definitions: Mapping[str, Sequence[dict[str, Any]]],
    *,
    entries: Mapping[str, Any] | None = None,
    authenticated: bool = False,
    policy: str = "",
    tools: Any = None,
    embedder: Any = None,
    **options: Any,
) -> AsyncIterator[ConsoleGateway]:
    """Serve a console until the end of the block. `entries` are further servers of the config file."""
    lists = {name: list(rows) for name, rows in definitions.items()}
    calls: list[tuple[str, str, Any]] = []
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(_servers(lists, calls))
        config = folder / "mcp.json"
        listed = {
            name: {"url": f"{upstream}/{name}/mcp", "toolscout": {"private": True, "trusted": True}} for name in lists
        }
        config.write_text(json.dumps({"mcpServers": {**listed, **(entries or {})}}, indent=2), "utf-8")
        settings = Settings(
            **{
                "store": f"sqlite:///{folder / 'catalogue.db'}",
                "audit": str(folder / "audit.jsonl"),
                "embedder": "none",
                "reindex_interval_s": 0.05,
                "token_key_file": "",
                **options,
            }
        )
        scout = await stack.enter_async_context(Scout.open(tools=tools, settings=settings, embedder=embedder))
        if policy:
            scout.access.apply_policy(parse_policy(policy))
        authentication = authentication_for(settings, scout.api_keys.find) if authenticated else None
        gateway = Gateway(scout, settings=settings, authenticated=authenticated)

        async def reload() -> None:
            await scout.connect(read_config([config], partial=True))

        host = "0.0.0.0" if authenticated else "127.0.0.1"  # as the image does, and as a laptop does
        listener = stack.enter_context(bind(host, 0))
        port = listener.getsockname()[1]
        rest = RestApi(
            scout, settings, authenticated=authenticated, editor=ServerEditor(scout, lambda: [config], config, reload)
        )
        console = Console(scout, settings, authentication)
        app = make_app(
            gateway,
            settings,
            allowed_hosts(host, port, own_origin=authenticated),
            authentication,
            lambda protect: console.admit(rest.behind(protect)),
            console.routes,
        )
        await reload()
        await stack.enter_async_context(serve_in_background(app, listener))
        stack.callback(rest.end_streams)  # before the server stops
        running = ConsoleGateway(f"http://127.0.0.1:{port}", scout, console, lists, config, reload, calls)

        def listed_all() -> bool:
            return set(lists) <= set(scout.servers.ready())

        await until(listed_all)
        yield running


@asynccontextmanager
async def _servers(lists: Definitions, calls: list[tuple[str, str, Any]]) -> AsyncIterator[str]:
    """Serve an MCP server for each list, at `/NAME/mcp`."""
    managers = {name: StreamableHTTPSessionManager(_server(name, lists, calls)) for name in lists}
    routes = [Route(f"/{name}/mcp", endpoint=StreamableHTTPASGIApp(manager)) for name, manager in managers.items()]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for manager in managers.values():
                await stack.enter_async_context(manager.run())
            yield

    async with serving(Starlette(routes=routes, lifespan=lifespan)) as url:
        yield url


def _server(name: str, lists: Definitions, calls: list[tuple[str, str, Any]]) -> Server[Any]:
    async def list_tools(_ctx: Any, _params: Any) -> t.ListToolsResult:
        tools = [t.Tool.model_validate({"inputSchema": {"type": "object"}, **row}) for row in lists[name]]
        return t.ListToolsResult(tools=tools)

    async def call_tool(_ctx: Any, params: Any) -> t.CallToolResult:
        calls.append((name, params.name, params.arguments))
        failed = "fail" in params.name
        text = "it failed" if failed else f"{params.name} was called with {json.dumps(params.arguments)}"
        return t.CallToolResult(content=[t.TextContent(text=text)], is_error=failed)

    return Server(name, version="1", on_list_tools=list_tools, on_call_tool=call_tool)
