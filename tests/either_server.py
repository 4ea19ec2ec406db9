"""An MCP server on the SDK for both eras: `either_server.py` speaks both protocols, with `--legacy` only the older one.

Its tool `greet` asks for a name in the way of the protocol that is used.
"""

import sys
import warnings

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server

warnings.simplefilter("ignore")

NAME = {"type": "object", "properties": {"name": {"type": "string"}}}
READS = types.ToolAnnotations(read_only_hint=True)


def tool(name, description, **more):
    return types.Tool(name=name, description=description, input_schema={"type": "object"}, **more)


TOOLS = [
    tool("era", "Say which protocol version this server is spoken to in", annotations=READS),
    tool("greet", "Ask for a name and greet its owner"),
    tool("stamp", "Return a structured stamp with vendor fields"),
]


def text_result(text, **more):
    return types.CallToolResult(content=[types.TextContent(text=text)], **more)


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=TOOLS, ttl_ms=60_000, cache_scope="private")


async def call_tool(context, params):
    modern = context.protocol_version >= "2026"
    if params.name == "era":
        return text_result(context.protocol_version)
    if params.name == "stamp":
        return text_result("stamped", structured_content={"stamp": {"n": None}}, _meta={"vendor/x": [1]})
    if not modern:
        reply = await context.session.elicit_form("name?", NAME, related_request_id=context.request_id)
        return text_result(f"hello {reply.content['name']}")
    if not params.input_responses:
        question = types.ElicitRequest(params=types.ElicitRequestFormParams(message="name?", requested_schema=NAME))
        return types.InputRequiredResult(input_requests={"who": question}, request_state="opaque")
    return text_result(f"hello {params.input_responses['who'].content['name']} {params.request_state}")


async def main():
    server = Server("either", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        if "--legacy" in sys.argv:
            await serve_loop(server, read, write, lifespan_state={})
        else:
            await server.run(read, write, server.create_initialization_options())


anyio.run(main)
