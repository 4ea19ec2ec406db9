"""A real gateway sends its spans to a collector, takes the trace of its callers and passes it on to its servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from collector import CollectedSpan, collecting
from downstreams import fake, until
from scraping import until_indexed
from servers import free_port
from serving import serving, stdio_parameters, write_config

pytestmark = pytest.mark.process

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def trace(number: int) -> tuple[str, str]:
    """Return a trace of its own for a test, and what names it."""
    name = f"{number:032x}"
    return name, f"00-{name}-00f067aa0ba902b7-01"


async def test_a_search_is_one_trace_of_embedding_fetching_and_ranking(traced):
    mine, parent = trace(1)
    await traced.call("search_tools", {"query": "say back what I say"}, meta=parent)
    spans = {item.name: item for item in await traced.spans("tools/call search_tools", mine)}
    request, search = spans["tools/call search_tools"], spans["search_tools"]
    assert request.kind == "server"
    assert request.parent_id == "00f067aa0ba902b7"
    assert request.attributes.items() >= {
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "search_tools"),
        ("mcp.protocol.version", "2026-07-28"),
        ("network.transport", "tcp"),
    }
    assert search.parent_id == request.span_id
    assert search.attributes["toolscout.ranker"] == "hybrid"
    assert {spans[name].parent_id for name in ("embed", "candidates", "rank")} == {search.span_id}
    assert not any(item.failed for item in spans.values())
    assert "toolscout.query" not in search.attributes
    assert "say back" not in str(spans)


@pytest.mark.parametrize("server", ["fake", "web"])
async def test_a_call_reaches_its_server_with_the_trace_that_the_caller_named(traced, server):
    mine, parent = trace(2 if server == "fake" else 3)
    await traced.call("call_tool", {"name": f"{server}__echo", "arguments": {"text": "hi"}}, meta=parent)
    spans = {item.name: item for item in await traced.spans("tools/call call_tool", mine)}
    request, call, sent = (
        spans[name] for name in ("tools/call call_tool", f"execute_tool {server}__echo", "tools/call echo")
    )
    assert (call.parent_id, sent.parent_id) == (request.span_id, call.span_id)
    assert (request.kind, call.kind, sent.kind) == ("server", "internal", "client")
    assert call.attributes["toolscout.server"] == server
    assert len(spans) == 3
    if server == "fake":
        (received,) = [item["params"] for item in traced.fake.calls("echo") if mine in json.dumps(item)]
        assert sent.attributes["network.transport"] == "pipe"
    else:
        (headers,) = [item for item in traced.http.calls("echo") if mine in item.get("traceparent", "")]
        assert headers["traceparent"] == f"00-{mine}-{sent.span_id}-01"
        bodies = [body for *_, body in traced.http.seen if mine in json.dumps(body)]
        (received,) = [body["params"] for body in bodies]
        assert sent.attributes["server.port"] == traced.http.server_address[1]
    assert received["_meta"]["traceparent"] == f"00-{mine}-{sent.span_id}-01"


async def test_the_trace_of_http_headers_counts_where_the_message_names_none(traced):
    mine, parent = trace(4)
    await traced.call("call_tool", {"name": "fake__echo", "arguments": {}}, traceparent=parent)
    assert await traced.spans("tools/call call_tool", mine)
    inner, named = trace(5)
    await traced.call("call_tool", {"name": "fake__echo", "arguments": {}}, traceparent=parent, meta=named)
    assert await traced.spans("tools/call call_tool", inner)
    answer = await traced.call("call_tool", {"name": "fake__echo", "arguments": {}}, traceparent="00-zz-01")
    assert not answer.is_error


async def test_rest_continues_the_trace_of_its_headers(traced):
    mine, parent = trace(6)
    url = f"http://127.0.0.1:{traced.gateway.port}/api/v1/search"
    answer = httpx2.post(url, json={"query": "say back"}, headers={"traceparent": parent})
    assert answer.status_code == 200
    await traced.spans("search_tools", mine)
    assert {item.name for item in traced.collector.spans() if item.trace_id == mine} == {
        "search_tools",
        "embed",
        "candidates",
        "rank",
    }
    (search,) = [item for item in await traced.spans("search_tools", mine) if item.name == "search_tools"]
    assert search.parent_id == "00f067aa0ba902b7"


async def test_a_failure_has_its_class_and_no_text(traced):
    mine, parent = trace(7)
    arguments = {"name": "fake__error", "arguments": {"text": "canary"}}
    assert (await traced.call("call_tool", arguments, meta=parent)).is_error
    assert (await traced.call("call_tool", {"name": "canary__x", "arguments": {}}, meta=parent)).is_error

    def mine_so_far() -> list[CollectedSpan]:
        return [item for item in traced.collector.spans() if item.trace_id == mine]

    await until(lambda: [item.name for item in mine_so_far()].count("tools/call call_tool") == 2)
    spans = mine_so_far()
    assert {(item.name, item.attributes["error.type"]) for item in spans if item.failed} == {
        ("tools/call error", "-32050"),
        ("execute_tool fake__error", "call_failed"),
        ("execute_tool", "tool_not_found"),
        ("tools/call call_tool", "tool_error"),
    }
    assert {item.said for item in spans} == {""}
    assert "canary" not in str(spans)


async def test_a_session_of_an_older_client_is_named(traced):
    mine, parent = trace(8)
    await traced.call("call_tool", {"name": "fake__echo", "arguments": {}}, mode="legacy", meta=parent)
    (request,) = [
        item for item in await traced.spans("tools/call call_tool", mine) if item.name == "tools/call call_tool"
    ]
    assert len(request.attributes["mcp.session.id"]) >= 16
    assert request.attributes["mcp.protocol.version"] == "2025-11-25"


async def test_indexing_and_listing_are_spans_and_the_sdk_adds_none_of_its_own(traced):
    spans = traced.collector.spans()
    assert {item.attributes["toolscout.tools"] for item in spans if item.name == "index"} >= {1, 3}
    assert [item.kind for item in spans if item.name == "tools/list"][:2] == ["client", "client"]
    assert not [item.name for item in spans if item.name.startswith("MCP send")]
    assert traced.collector.service.items() >= {("service.name", "toolscout")}


async def test_over_stdio_a_trace_passes_too_and_has_the_text_of_a_search_if_that_is_switched_on(tmp_path, monkeypatch):
    with collecting() as collector:
        for name, value in {**collector.environment, "OTEL_SERVICE_NAME": "mine"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
        monkeypatch.setenv("TOOLSCOUT_LOG_QUERIES", "true")
        server = fake(tmp_path, "fake", "--names", "echo")
        write_config(tmp_path, server.config)
        async with Client(stdio_parameters(tmp_path)) as client:
            await client.call_tool("search_tools", {"query": "say back what I say"})
            await server.until("tools/list")
            arguments, meta = {"name": "fake__echo", "arguments": {}}, cast("Any", {"traceparent": PARENT})
            while (await client.call_tool("call_tool", arguments, meta=meta)).is_error:
                pass
        await until(lambda: any(TRACE in json.dumps(item) for item in server.calls("echo")))
        await until(lambda: bool(collector.named("tools/call echo")))
        assert collector.named("search_tools")[0].attributes["toolscout.query"] == "say back what I say"
        assert collector.service["service.name"] == "mine"


async def test_without_an_exporter_the_trace_of_the_caller_passes_through(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    server = fake(tmp_path, "fake", "--names", "echo")
    write_config(tmp_path, server.config)
    port = free_port()
    with serving(tmp_path, "--diagnostics", str(port)) as gateway:
        until_indexed(port, 2)
        async with (
            httpx2.AsyncClient(headers={"traceparent": PARENT}) as carrier,
            Client(streamable_http_client(gateway.url, http_client=carrier)) as client,
        ):
            await client.call_tool("call_tool", {"name": "fake__echo", "arguments": {}})
            (call,) = server.calls("echo")
            assert call["params"]["_meta"]["traceparent"] == PARENT


async def test_a_collector_that_is_down_neither_fails_a_call_nor_holds_the_end(tmp_path, monkeypatch):
    with collecting() as collector:
        environment = collector.environment
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with serving(tmp_path) as gateway:
        async with Client(streamable_http_client(gateway.url)) as client:
            assert await client.call_tool("search_tools", {"query": "say back"})
        gateway.process.terminate()
        assert gateway.process.wait(15) == 0
    assert b"Traceback" not in gateway.log.read_bytes()


def test_a_missing_exporter_is_a_typed_error_that_says_what_to_install(tmp_path: Path, monkeypatch, toolscout):
    import sys

    monkeypatch.setenv("TOOLSCOUT_TRACES", "1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    ran = toolscout("serve", "--store", f"sqlite:///{tmp_path}/x.db", "--http", "0")
    assert ran.code == 2
    assert "toolscout[otlp]" in ran.err
