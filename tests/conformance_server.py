"""The fixtures that the public conformance suite asks for, as an MCP server on standard input and output.

`--legacy` speaks the handshake only, so that the suite's older scenarios find a server that asks in their way.
"""

import hashlib
import hmac
import json
import sys
import warnings

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
TEXT = {"type": "string"}
BUS = InMemorySubscriptionBus()
ELICITS = types.ClientCapabilities(elicitation=types.ElicitationCapability())
SAMPLES = types.ClientCapabilities(sampling=types.SamplingCapability())


def takes(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": TEXT, "city": TEXT}}},
    "properties": {
        "name": TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": TEXT,
        "phone": TEXT,
        "email": TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First"}]},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First"}]}},
}
NAMES = """test_simple_text test_image_content test_audio_content test_embedded_resource test_multiple_content_types
 test_tool_with_logging test_tool_with_progress test_error_handling test_reconnection test_missing_capability
 test_elicitation_sep1034_defaults test_elicitation_sep1330_enums test_logging_tool test_streaming_elicitation
 test_trigger_tool_change test_trigger_prompt_change test_input_required_result_elicitation
 test_input_required_result_sampling test_input_required_result_list_roots test_input_required_result_request_state
 test_input_required_result_multiple_inputs test_input_required_result_multi_round
 test_input_required_result_tampered_state test_input_required_result_capabilities""".split()
SCHEMAS = {
    **{name: takes() for name in NAMES},
    "test_sampling": takes(prompt=TEXT),
    "test_elicitation": takes(message=TEXT),
    "json_schema_2020_12_tool": SCHEMA_2020,
    "test_custom_headers": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
}


def signed(state):
    return f"{state}.{hmac.new(b'key', state.encode(), hashlib.sha256).hexdigest()}"


def checked(state):
    body = state.rpartition(".")[0] if isinstance(state, str) else ""
    if not body or not hmac.compare_digest(signed(body), state):
        raise MCPError(code=-32602, message="requestState failed its integrity check")
    return body


def text(said):
    return types.TextContent(text=said)


def image():
    return types.ImageContent(data=PNG, mime_type="image/png")


def embedded(uri, kind, said):
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=kind, text=said))


def done(*content):
    return types.CallToolResult(content=[text(item) if isinstance(item, str) else item for item in content])


def form(message, **properties):
    properties = properties or {"name": TEXT}
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=takes(**properties))
    )


def sample(prompt="What is the capital of France?"):
    message = types.SamplingMessage(role="user", content=text(prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))


def needs(state=None, **requests):
    return types.InputRequiredResult(input_requests=requests or None, request_state=state)


def require(context, capability, name):
    if not context.session.check_client_capability(capability):
        raise MCPError(
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message=f"requires client capability {name}",
            data={"requiredCapabilities": {name: {}}},
        )


async def list_tools(_context, _params):
    tools = [types.Tool(name=name, description=name, input_schema=schema) for name, schema in SCHEMAS.items()]
    return types.ListToolsResult(tools=tools, ttl_ms=5_000, cache_scope="public")


async def call_tool(context, params):
    arguments, session, related = params.arguments or {}, context.session, {"related_request_id": context.request_id}
    match params.name:
        case "test_simple_text":
            return done("This is a simple text response for testing.")
        case "test_image_content":
            return done(image())
        case "test_audio_content":
            return done(types.AudioContent(data=WAV, mime_type="audio/wav"))
        case "test_embedded_resource":
            return done(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))
        case "test_multiple_content_types":
            mixed = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
            return done("Multiple content types test:", image(), mixed)
        case "test_tool_with_logging" | "test_logging_tool":
            for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await session.send_log_message("info", said, **related)
            return done("logged")
        case "test_tool_with_progress":
            for step in (0, 50, 100):
                await session.report_progress(step, 100, f"Completed step {step} of 100")
                await anyio.sleep(0.05)
            return done("done")
        case "test_error_handling":
            said = "This tool intentionally returns an error for testing"
            return types.CallToolResult(content=[text(said)], is_error=True)
        case "test_reconnection":
            await anyio.sleep(0.3)
            return done("Reconnection test completed")
        case "test_sampling":
            message = types.SamplingMessage(role="user", content=text(arguments["prompt"]))
            reply = await session.create_message([message], max_tokens=100, **related)
            return done(f"LLM response: {reply.content.text}")
        case "test_elicitation":
            reply = await session.elicit_form(arguments["message"], takes(response=TEXT), **related)
            return done(f"User response: action={reply.action}, content={json.dumps(reply.content)}")
        case "test_elicitation_sep1034_defaults":
            reply = await session.elicit_form("defaults", {"type": "object", "properties": DEFAULTS}, **related)
            return done(f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}")
        case "test_elicitation_sep1330_enums":
            reply = await session.elicit_form("enums", {"type": "object", "properties": ENUMS}, **related)
            return done(f"Elicitation completed: action={reply.action}")
        case "json_schema_2020_12_tool" | "test_custom_headers":
            return done(json.dumps(arguments))
        case "test_missing_capability":
            require(context, SAMPLES, "sampling")
            return done("ok")
        case "test_trigger_tool_change":
            SCHEMAS[f"test_extra_{len(SCHEMAS)}"] = takes()
            await BUS.publish(ToolsListChanged())
            return done("ok")
        case "test_trigger_prompt_change":
            PROMPTS[f"test_extra_{len(PROMPTS)}"] = []
            await BUS.publish(PromptsListChanged())
            return done("ok")
    return input_required(context, params)


def input_required(context, params):
    arguments = params.input_responses or {}
    match params.name.removeprefix("test_input_required_result_"):
        case "elicitation" | "test_streaming_elicitation":
            reply = arguments.get("user_name")
            if reply is None or (reply.action == "accept" and not isinstance((reply.content or {}).get("name"), str)):
                return needs(user_name=form("What is your name?"))
            return done(f"Hello, {(reply.content or {}).get('name')}!")
        case "sampling":
            return done(arguments["capital"].content.text) if "capital" in arguments else needs(capital=sample())
        case "list_roots":
            if "roots" not in arguments:
                return needs(roots=types.ListRootsRequest())
            return done("roots: " + ", ".join(str(item.uri) for item in arguments["roots"].roots))
        case "request_state" | "tampered_state":
            if not arguments:
                return needs(signed("s1"), confirm=form("Please confirm", ok={"type": "boolean"}))
            checked(params.request_state)
            return done("state-ok")
        case "multiple_inputs":
            if len(arguments) < 3:
                greeting = sample("Generate a greeting")
                questions = {"user_name": form("What is your name?"), "greeting": greeting}
                return needs(signed("m"), **questions, roots=types.ListRootsRequest())
            checked(params.request_state)
            return done("all inputs received")
        case "multi_round":
            if not arguments:
                return needs(signed("round1"), step1=form("Step 1: What is your name?"))
            if checked(params.request_state) == "round1":
                return needs(signed("round2"), step2=form("Step 2: What is your favorite color?", color=TEXT))
            return done("multi-round complete")
        case "capabilities":
            if arguments:
                return done("ok")
            questions = {}
            if context.session.check_client_capability(SAMPLES):
                questions["sample"] = sample()
            if context.session.check_client_capability(ELICITS):
                questions["elicit"] = form("?")
            if not questions:
                require(context, SAMPLES, "sampling")
            return needs(**questions)
    raise MCPError(code=-32602, message=f"Unknown tool: {params.name}")


RESOURCES = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "watched",
}


async def list_resources(_context, _params):
    found = [types.Resource(uri=uri, name=uri[7:], mime_type="text/plain") for uri in RESOURCES]
    binary = types.Resource(uri="test://static-binary", name="static-binary", mime_type="image/png")
    return types.ListResourcesResult(resources=[*found, binary])


async def list_templates(_context, _params):
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context, params):
    uri = params.uri
    contents: types.TextResourceContents | types.BlobResourceContents
    if uri in RESOURCES:
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=RESOURCES[uri])
    elif uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith("test://template/"):
        number = uri.split("/")[3]
        body = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=body)
    else:
        code = -32602 if context.protocol_version >= "2026" else -32002
        raise MCPError(code=code, message="Resource not found", data={"uri": uri})
    return types.ReadResourceResult(contents=[contents])


PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_prompts(_context, _params):
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=name,
                arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(_context, params):
    arguments = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            content = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            content = [text(f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'")]
        case "test_prompt_with_embedded_resource":
            content = [embedded(arguments["resourceUri"], "text/plain", "Embedded"), text("Please process")]
        case "test_prompt_with_image":
            content = [image(), text("Please analyze")]
        case "test_input_required_result_prompt":
            if not params.input_responses:
                return needs(user_context=form("context?", context=TEXT))
            content = [text("with context")]
        case _:
            raise MCPError(code=-32602, message="Unknown prompt")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=item) for item in content])


async def complete(_context, _params):
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def main():
    server = Server(
        "conformance-fixtures",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    async with stdio_server() as (read, write):
        if "--legacy" in sys.argv:
            await serve_loop(server, read, write, lifespan_state={})
        else:
            await server.run(read, write, server.create_initialization_options())


anyio.run(main)
