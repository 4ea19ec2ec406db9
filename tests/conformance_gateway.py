"""The gateway in front of the conformance suite's fixtures: `conformance_gateway.py PORT STORE [--legacy]`.

The suite calls `test_simple_text`, not `fixtures__test_simple_text`. A middleware adds and removes the prefix. The
rest is the gateway as it is served.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from pathlib import Path
from typing import Any

from toolscout import Scout
from toolscout.config import Config, ServerConfig
from toolscout.gateway.http import serve_http
from toolscout.gateway.server import Gateway
from toolscout.settings import Settings

SERVER = "fixtures"
URI = f"toolscout://servers/{SERVER}/"
LISTED = {
    "tools/list": ("tools", "name", f"{SERVER}__"),
    "prompts/list": ("prompts", "name", f"{SERVER}__"),
    "resources/list": ("resources", "uri", URI),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", URI),
    "resources/read": ("contents", "uri", URI),
}


def prefixed(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Name a fixture as the gateway does."""
    if method in ("tools/call", "prompts/get") and isinstance(params.get("name"), str):
        return {**params, "name": f"{SERVER}__{params['name']}"}
    if method == "resources/read" and str(params.get("uri")).startswith("test://"):
        return {**params, "uri": URI + params["uri"]}
    if method == "completion/complete":
        ref = dict(params["ref"])
        ref |= {"name": f"{SERVER}__{ref['name']}"} if "name" in ref else {"uri": URI + ref["uri"]}
        return {**params, "ref": ref}
    return params


async def bare(ctx: Any, call_next: Any) -> Any:
    """Add the prefix to names in requests, and remove it from names in results."""
    result = await call_next(dataclasses.replace(ctx, params=prefixed(ctx.method, dict(ctx.params or {}))))
    if ctx.method not in LISTED or LISTED[ctx.method][0] not in result:
        return result
    field, name, prefix = LISTED[ctx.method]
    return {**result, field: [{**item, name: item[name].removeprefix(prefix)} for item in result[field]]}


async def main() -> None:
    """Serve until told to stop."""
    port, store, legacy = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    script = str(Path(__file__).parent / "conformance_server.py")
    fixtures = ServerConfig(title=SERVER, transport="stdio", command=sys.executable, args=(script, *legacy))
    settings = Settings(store=store, embedder="none", reindex_interval_s=0.05)
    async with Scout.open(Config(servers=(fixtures,)), settings=settings) as scout:
        gateway = Gateway(scout, settings=settings, surface="all")
        gateway.server.middleware.insert(0, bare)
        await gateway.tool_lists.of(scout.caller)
        caller = scout.caller
        gateway.server.get_tool_input_schema = lambda name: gateway.tool_lists.input_schema(f"{SERVER}__{name}", caller)
        await serve_http(gateway, settings, host="127.0.0.1", port=port)


if __name__ == "__main__":
    asyncio.run(main())
