"""A server of the stateless protocol on the SDK: `python modern_server.py [--http PORT]`."""

import json
import sys

import anyio
import mcp_types as t
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

BUS = InMemorySubscriptionBus()
NAMES = ["echo", "slow", "ask", "ask_by_request", "change", "progress", "who", "fail"]
HEADER = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


async def list_tools(ctx, params):
    tools = [t.Tool(name=name, input_schema=HEADER if name == "who" else {"type": "object"}) for name in NAMES]
    return t.ListToolsResult(tools=tools, ttl_ms=60_000, cache_scope="private")


def text(content, **more):
    return t.CallToolResult(content=[t.TextContent(text=content)], **more)


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    name = params.name
    if name == "echo":
        return text(arguments.get("text", ""), structured_content={"text": arguments.get("text", "")}, _meta={"k": "v"})
    if name == "slow":
        await anyio.sleep(60)
    if name == "ask":
        if not params.input_responses:
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            form = t.ElicitRequestFormParams(message="name?", requested_schema=schema)
            return t.InputRequiredResult(input_requests={"q": t.ElicitRequest(params=form)}, request_state="state-1")
        return text(f"{params.input_responses['q'].content} {params.request_state}")
    if name == "ask_by_request":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = await ctx.session.elicit_form("name?", schema, related_request_id=ctx.request_id)
        return text(f"{answer.action} {answer.content}")
    if name == "change":
        NAMES.append(f"new{len(NAMES)}")
        await BUS.publish(ToolsListChanged())
        await ctx.session.send_tool_list_changed()
        return text("changed")
    if name == "progress":
        for step in range(3):
            await ctx.session.report_progress(step, 3, f"step {step}")
        return text("done")
    if name == "who":
        headers = dict(ctx.request.headers) if ctx.request is not None else {}
        declared = ctx.session.client_capabilities
        capabilities = declared.model_dump(by_alias=True, exclude_none=True) if declared else None
        return text(json.dumps({"headers": headers, "capabilities": capabilities, "version": ctx.protocol_version}))
    raise MCPError(code=-32602, message=f"no tool {name}", data={"name": name})


class Modern(Server):
    """Announces changes of its tool list in the older protocol too."""

    def create_initialization_options(self, notification_options=None, *rest, **named):
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, *rest, **named)


SERVER = Modern(
    "modern",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(BUS),
    get_tool_input_schema=lambda name: HEADER if name == "who" else {"type": "object"},
)


async def main():
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


if __name__ == "__main__":
    if "--http" in sys.argv:
        import uvicorn
        from mcp.server.transport_security import TransportSecuritySettings

        port = int(sys.argv[sys.argv.index("--http") + 1])
        security = TransportSecuritySettings(allowed_hosts=[f"127.0.0.1:{port}"], allowed_origins=[])
        app = SERVER.streamable_http_app(streamable_http_path="/mcp", transport_security=security)
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
    else:
        anyio.run(main)
