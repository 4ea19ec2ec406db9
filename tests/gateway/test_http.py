"""The gateway on HTTP, as a real process: allowed hosts, malformed requests, and shutdown."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import time

import httpx2
import pytest
from mcp import Client
from starlette.responses import PlainTextResponse

from downstreams import fake
from guarantees import guarantee
from guarded import HANDSHAKE
from serving import serving, write_config
from toolscout.errors import InvalidValueError
from toolscout.gateway import http_listener
from toolscout.gateway.address import parse_address, requires_authentication
from toolscout.gateway.host_check import HostCheck, allowed_hosts

pytestmark = pytest.mark.process

MODERN = "2026-07-28"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
LIST_HEADERS = {**HEADERS, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"_meta": META, "name": "call_tool", "arguments": {"name": "fake__echo", "arguments": {}}},
}
CALL_HEADERS = {**LIST_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "call_tool"}


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """Return a fake server that records every request."""
    return fake(tmp_path_factory.mktemp("fake"), "fake", "--names", "echo")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, behind):
    """Return one real process for the whole module, which must survive all requests."""
    folder = tmp_path_factory.mktemp("gateway")
    write_config(folder, behind.config)
    with serving(folder) as process:
        deadline = time.monotonic() + 20
        while not behind.received("tools/call"):  # until the server is connected and indexed
            assert time.monotonic() < deadline
            sent(process, json.dumps(CALL).encode(), CALL_HEADERS)
        yield process


def sent(gateway, body, headers=HEADERS, method="POST", path="/mcp", **more):
    """Send one request on a connection of its own and return the status and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host="Host" in more.get("raw", ()), skip_accept_encoding=True)
        pairs = list(more.get("pairs", ())) + list(headers.items())
        for name, value in pairs:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def good(gateway):
    """Tell whether a valid request is answered."""
    status, body = sent(gateway, json.dumps(LIST).encode(), LIST_HEADERS)
    text = body.decode()
    message = json.loads(text.split("data: ", 1)[1].splitlines()[0] if text.startswith("event") else text)
    return status == 200 and message["result"]["tools"][0]["name"] == "search_tools"


@guarantee("egress:origin")
@pytest.mark.parametrize(
    "pairs",
    [
        [("Origin", "https://evil.example")],
        [("Origin", "null")],
        [("Origin", "")],
        [("Origin", "http://127.0.0.1:{port}"), ("Origin", "http://127.0.0.1:{port}")],
        [("Origin", "http://127.0.0.1.evil.example:{port}")],
        [("Origin", "http://127.0.0.1")],
        [("Host", "evil.example:{port}")],
        [("Host", "127.0.0.1")],
        [("Host", "")],
        [("Host", "127.0.0.1:{port}"), ("Host", "127.0.0.1:{port}")],
        [("Host", "127.0.0.1:{port}"), ("Host", "evil.example")],
    ],
)
def test_a_foreign_page_or_name_is_refused_and_calls_no_server(gateway, behind, pairs):
    calls = len(behind.received("tools/call"))
    pairs = [(name, value.format(port=gateway.port)) for name, value in pairs]
    raw = {name for name, _ in pairs}
    status, _ = sent(gateway, json.dumps(CALL).encode(), CALL_HEADERS, pairs=pairs, raw=raw)
    assert status in (400, 403)  # 400: the HTTP parser itself refuses two Hosts
    assert good(gateway)
    assert len(behind.received("tools/call")) == calls


@guarantee("egress:origin")
def test_our_own_page_may_call_a_server(gateway, behind):
    calls = len(behind.received("tools/call"))
    for name in ("127.0.0.1", "localhost"):
        pairs = [("Origin", f"http://{name}:{gateway.port}"), ("Host", f"{name}:{gateway.port}")]
        status, _ = sent(gateway, json.dumps(CALL).encode(), CALL_HEADERS, pairs=pairs, raw={"Host"})
        assert status == 200
    assert len(behind.received("tools/call")) == calls + 2


@guarantee("load:limits")
def test_a_body_over_4_mib_is_refused(gateway):
    body = json.dumps({**LIST, "pad": "x" * (4 << 20)}).encode()
    assert sent(gateway, body, LIST_HEADERS)[0] == 413
    assert sent(gateway, body)[0] == 413
    assert good(gateway)


WRONG = [
    b"",
    b"{",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list"',
    b"[]",
    b"[" * 10_000,
    b'{"a":' * 10_000,
    b"null",
    b"1",
    b'"text"',
    b"\xff\xfe\x00",
    b'{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","method":"nope","params":{}}',
    b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\xed\xa0\x80"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"tools/list"}',
    json.dumps([LIST, LIST]).encode(),
]
BAD_HEADERS = [
    {},
    {"Content-Type": "text/plain", "Accept": "application/json, text/event-stream"},
    {"Content-Type": "application/json"},
    {"Content-Type": "application/json", "Accept": "text/html"},
    {**HEADERS, "MCP-Protocol-Version": "1999-01-01"},
    {**HEADERS, "MCP-Protocol-Version": MODERN},
    {**HEADERS, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call"},
    {**HEADERS, "Mcp-Session-Id": "nobody"},
    {**HEADERS, "MCP-Protocol-Version": "\x7f"},
]


@guarantee("proto:malformed")
@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_nonsense_gets_a_clean_answer_and_the_next_request_is_served(gateway, body, modern):
    status, _ = sent(gateway, body, LIST_HEADERS if modern else HEADERS)
    assert 400 <= status < 500
    assert good(gateway)


@guarantee("proto:malformed")
@pytest.mark.parametrize("headers", BAD_HEADERS, ids=range(len(BAD_HEADERS)))
def test_wrong_headers_get_a_clean_answer(gateway, headers):
    status, _ = sent(gateway, json.dumps(LIST).encode(), headers)
    assert 400 <= status < 500
    assert good(gateway)


@guarantee("proto:malformed")
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "BREW"])
@pytest.mark.parametrize("path", ["/mcp", "/", "/mcp/../etc/passwd", "/%2e%2e", "/health/x"])
def test_other_methods_and_paths_get_a_clean_answer(gateway, method, path):
    status, _ = sent(gateway, None, {"MCP-Protocol-Version": MODERN}, method=method, path=path)
    assert status == 200 if path == "/" and method in ("GET", "HEAD") else 400 <= status < 500


@guarantee("proto:malformed")
async def test_after_all_that_a_client_is_served_as_ever(gateway, behind):
    assert good(gateway)
    async with Client(gateway.url, mode="legacy") as client:
        got = await client.call_tool("search_tools", {"query": "anything"})
        assert not got.is_error
    assert b"Traceback" not in gateway.log.read_bytes()


@guarantee("auth:default")
@pytest.mark.parametrize("address", ["0.0.0.0:8080", "[::]:8080", "192.168.1.5:80", "example.com:80", "10.0.0.1:1"])
def test_an_address_beyond_loopback_is_refused_without_the_flag(toolscout, address, tmp_path):
    host, _ = parse_address(address)
    assert requires_authentication(host, auth=False, issuer="", insecure_no_auth=False)
    assert not requires_authentication(host, auth=False, issuer="", insecure_no_auth=True)
    ran = toolscout("serve", "--http", address, "--store", f"sqlite:///{tmp_path / 'c.db'}")
    assert ran.code == 2
    assert "--insecure-no-auth" in ran.err


@guarantee("auth:default")
def test_loopback_in_every_spelling_needs_no_flag():
    for address in ("8080", "127.0.0.1:8080", "localhost:8080", "[::1]:8080", "127.8.8.8:1"):
        assert not requires_authentication(parse_address(address)[0], auth=False, issuer="", insecure_no_auth=False)
    assert parse_address("[::1]:8080") == ("::1", 8080)
    assert parse_address("8080") == ("127.0.0.1", 8080)
    for wrong in ("", "x", "1:x", "99999", "host:", "²"):
        with pytest.raises(InvalidValueError):
            parse_address(wrong)


@guarantee("egress:origin")
def test_beyond_loopback_any_name_may_be_used_but_no_page_is_trusted():
    allowed = allowed_hosts("0.0.0.0", 8080)
    assert allowed.hosts is None
    assert not allowed.origins
    named = allowed_hosts("0.0.0.0", 8080, more_hosts=["Tools.example:443"], more_origins=["https://App.example/"])
    assert named.hosts == {"tools.example:443"}
    assert named.origins == {"https://app.example"}


@guarantee("egress:origin")
@pytest.mark.parametrize("authenticated", [True, False])
async def test_beyond_loopback_a_page_of_the_gateway_itself_is_trusted_where_callers_authenticate(authenticated):
    async def serve(scope, receive, send):
        await PlainTextResponse("served")(scope, receive, send)

    app = HostCheck(serve, allowed_hosts("0.0.0.0", 8080, own_origin=authenticated))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://tools.example") as client:
        for own in ("http://tools.example", "https://tools.example"):
            assert ((await client.get("/", headers={"Origin": own})).status_code == 200) == authenticated
        for other in ("http://evil.example", "http://tools.example:1", "http://tools.example.evil.example", "null"):
            assert (await client.get("/", headers={"Origin": other})).status_code == 403


@guarantee("egress:origin")
async def test_a_refusal_under_api_is_a_problem_document_as_any_other_of_the_api():
    app = HostCheck(PlainTextResponse("served"), allowed_hosts("127.0.0.1", 8080))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://evil.example") as client:
        refused = await client.get("/api/v1/tools")
        assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
        assert refused.json()["status"] == 403
        assert refused.json()["error"]["code"] == "forbidden"
        assert (await client.get("/mcp")).headers["content-type"] == "application/json"


@guarantee("fault:orphans")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_cleanly_with_many_sessions_open(tmp_path, stop):
    with serving(tmp_path) as gateway:
        for _ in range(500):
            assert sent(gateway, json.dumps(HANDSHAKE).encode())[0] == 200
        gateway.process.send_signal(stop)
        assert gateway.process.wait(10) == 0
    assert b"Traceback" not in gateway.log.read_bytes()


@guarantee("fault:orphans")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_cleanly_with_clients_connected(tmp_path, stop):
    with serving(tmp_path) as gateway:
        async with Client(gateway.url, mode="legacy") as client:
            await client.list_tools()
            gateway.process.send_signal(stop)
            assert gateway.process.wait(10) == 0
    assert b"Traceback" not in gateway.log.read_bytes()


@guarantee("proto:malformed")
def test_a_port_that_is_in_use_is_a_clear_error(toolscout, gateway, tmp_path):
    ran = toolscout("serve", "--http", str(gateway.port), "--store", f"sqlite:///{tmp_path / 'c.db'}")
    assert ran.code == 2
    assert "cannot listen" in ran.err


@guarantee("egress:origin")
@pytest.mark.parametrize("host", ["127.0.0.2", "0:0:0:0:0:0:0:1", "::1", "::ffff:127.0.0.1", "LOCALHOST", "localhost."])
def test_every_spelling_of_this_machine_has_the_check_of_host(host):
    allowed = allowed_hosts(host, 8080)
    assert allowed.hosts is not None
    assert "evil.example:8080" not in allowed.hosts
    assert not requires_authentication(host, auth=False, issuer="", insecure_no_auth=False)
    assert {"127.0.0.1:8080", "[::1]:8080"} <= allowed.hosts


@guarantee("egress:origin")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "127.0.0.1.evil.example", "localhost.evil.example"])
def test_no_other_host_is_taken_for_this_machine(host):
    assert allowed_hosts(host, 8080).hosts is None
    assert requires_authentication(host, auth=False, issuer="", insecure_no_auth=False)


@guarantee("load:limits")
@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"POST /mcp HT",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n|GET /hea",
    ],
    ids=["nothing", "half a line", "half the headers", "half the body", "half a second request"],
)
async def test_half_a_request_does_not_hold_a_connection(start, monkeypatch):
    monkeypatch.setattr(http_listener, "HEADERS_S", 0.2)

    async def app(_scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with http_listener.bind("127.0.0.1", 0) as listener:
        async with http_listener.serve_in_background(app, listener):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
            first, _, rest = start.rpartition(b"|")
            async with asyncio.timeout(4):  # less than uvicorn's own limit for a connection without requests
                if first:
                    writer.write(first)
                    assert b"200" in await reader.readuntil(b"\r\n\r\n")
                writer.write(rest)
                assert await reader.read() == b""
            writer.close()


@guarantee("load:clients")
async def test_an_idle_connection_is_kept_unless_its_last_request_was_refused(monkeypatch):
    monkeypatch.setattr(http_listener, "_REFUSED_KEPT_S", 0.1)

    async def app(scope, _receive, send):
        status = 200 if scope["path"] == "/open" else 401
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def ask(path):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
        await reader.readuntil(b"\r\n\r\n")
        return reader, writer

    with http_listener.bind("127.0.0.1", 0) as listener:
        async with http_listener.serve_in_background(app, listener), asyncio.timeout(20):
            kept, refused = await ask(b"/open"), await ask(b"/secret")
            assert await refused[0].read() == b""
            kept[1].write(b"GET /open HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in await kept[0].readuntil(b"\r\n\r\n")
            kept[1].close()
            refused[1].close()
