"""10,000 malformed requests against a running gateway, with a good key, a bad one and none: nothing breaks."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from typing import Any

import pytest

from downstreams import fake
from guarantees import guarantee
from knobs import cases
from serving import serving, write_config
from toolscout import Scout
from toolscout.gateway.http_limits import REFUSALS_PER_MINUTE

pytestmark = [guarantee("proto:malformed"), pytest.mark.process, pytest.mark.fuzz]

CASES = cases(10_000)
CONNECTIONS = 24
GOOD_EVERY = 40
WAIT_S = 30.0
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
METHODS = [
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "initialize",
    "ping",
    "server/discover",
    "notifications/initialized",
    "notifications/cancelled",
    "logging/setLevel",
    "nope",
    "",
    "tools/call\u0000",
    "../etc/passwd",
]
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    "",
    "x",
    "\u0000",
    "\ud800",
    "٠",
    [],
    {},
    [[]],
    {"": ""},
    "9" * 400,
    -(10**30),
    "\u202e",
]
RAW_ODD = [b"1e400", b"-0", b"NaN", b"Infinity", b"1" * 5_000, b"0x10", b"1.", b'"\xff"', b"'x'", b"undefined", b"{,}"]
VERSIONS = [MODERN, "2025-11-25", "2024-11-05", "1999-01-01", "", "\xff", "2026-07-28, 2025-11-25"]
TYPES = ["application/json", "text/plain", "application/json; charset=utf-16", "multipart/form-data", "", "*/*", "\xe9"]
ACCEPTS = ["application/json, text/event-stream", "application/json", "text/html", "*/*", "", ";;;q=", "a" * 5_000]
VERBS = ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT", "BREW", "post", "P\xd6ST", "X" * 300]
PATHS = ["/mcp", "/", "/mcp/", "/mcp?x=%00", "/../mcp", "/%2e%2e/%00", "//mcp", "/mcp#x", "/" + "a" * 5_000, "*", "mcp"]


@dataclass
class Case:
    """One request as bytes. A request that breaks the framing gets its own connection."""

    data: bytes
    alone: bool = False


class Maker:
    """Generates requests, the same ones in every run."""

    def __init__(self, key: str, port: int) -> None:
        self.chance = random.Random(20260728)
        self.port = port
        wrong = (f"Bearer {key[:-1]}", "Bearer x.y.z", f"Basic {key}", "Bearer", None)
        self.tokens: list[str | None] = [*[f"Bearer {key}"] * 3, *wrong]
        self.kinds = [
            self.cut,
            self.batch,
            self.odd_id,
            self.twice,
            self.deep,
            self.bytes_,
            self.numbers,
            self.typed,
            self.arguments,
            self.garbage,
            self.headers,
            self.verbs,
            self.framing,
        ]

    def case(self) -> Case:
        """Generate the next request."""
        return self.chance.choice(self.kinds)()

    def good(self, key: str) -> bytes:
        """Write the request that must always be answered."""
        return self._post(json.dumps(self._message("tools/list", {})).encode(), method="tools/list", token=key)

    def cut(self) -> Case:
        body = json.dumps(self._message(self._method(), self._params())).encode()
        return self._sent(body[: self.chance.randrange(len(body))])

    def batch(self) -> Case:
        count = self.chance.randrange(4)
        return self._sent(json.dumps([self._message("tools/list", {}) for _ in range(count)]).encode())

    def odd_id(self) -> Case:
        message = self._message(self._method(), self._params())
        for name in self.chance.sample(["id", "jsonrpc", "method", "params"], 2):
            message[name] = self.chance.choice(ODD)
        return self._sent(json.dumps(message).encode())

    def twice(self) -> Case:
        inner = b",".join(
            json.dumps(name).encode() + b":" + json.dumps(value).encode()
            for name, value in [*self._message(self._method(), {}).items(), *self._message("nope", {}).items()]
        )
        return self._sent(b"{" + inner + b"}")

    def deep(self) -> Case:
        opening = self.chance.choice([b"[", b'{"a":', b'[{"a":'])
        depth = self.chance.choice([70, 900, 10_000])
        whole = opening * depth + b"1" + (b"]" * depth if opening == b"[" else b"")
        return self._sent(
            self.chance.choice([whole, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + whole + b"}"])
        )

    def bytes_(self) -> Case:
        body = bytearray(json.dumps(self._message(self._method(), self._params())).encode())
        for _ in range(self.chance.randrange(1, 6)):
            body[self.chance.randrange(len(body))] = self.chance.choice([0, 0xFF, 0xC0, 0xED, 0x1B, 0x22, 0x5C])
        return self._sent(bytes(body))

    def numbers(self) -> Case:
        odd = self.chance.choice(RAW_ODD)
        place = self.chance.choice(
            [b'"id":%s,"params":{}', b'"id":1,"params":{"arguments":{"limit":%s}}', b'"id":1,%s']
        )
        return self._sent(b'{"jsonrpc":"2.0","method":"tools/call",' + place.replace(b"%s", odd) + b"}")

    def typed(self) -> Case:
        method = self._method()
        return self._sent(json.dumps(self._message(method, self._params())).encode(), method=method)

    def arguments(self) -> Case:
        value = self._value()
        requests: list[dict[str, object]] = [
            {"name": "call_tool", "arguments": value},
            {"name": "search_tools", "arguments": {"query": value}},
        ]
        named = self.chance.choice(requests)
        return self._sent(json.dumps(self._message("tools/call", named)).encode(), method="tools/call")

    def garbage(self) -> Case:
        return self._sent(self.chance.randbytes(self.chance.randrange(200)))

    def headers(self) -> Case:
        pick = self.chance.choice
        more = {
            "Content-Type": pick(TYPES),
            "Accept": pick(ACCEPTS),
            "MCP-Protocol-Version": pick(VERSIONS),
            "Mcp-Method": pick(METHODS[:12]),
            "Mcp-Session-Id": pick(["x", "0" * 32, "\xff", "a" * 3_000]),
            "Origin": pick(["null", "https://evil.example", ""]),
            "Content-Encoding": "gzip",
            "Last-Event-Id": "1",
        }
        chosen = self.chance.sample(sorted(more), self.chance.randrange(1, 4))
        body = json.dumps(self._message("tools/list", {})).encode()
        return Case(self._post(body, more={name: more[name] for name in chosen}))

    def verbs(self) -> Case:
        head = f"{self.chance.choice(VERBS)} {self.chance.choice(PATHS)} HTTP/1.1\r\n" + self._head()
        return Case(head.encode("latin-1", "replace") + b"Content-Length: 0\r\n\r\n", alone=True)

    def framing(self) -> Case:
        head = ("POST /mcp HTTP/1.1\r\n" + self._head()).encode("latin-1")
        body = json.dumps(self._message("tools/list", {})).encode()
        return Case(
            self.chance.choice(
                [
                    head + b"Content-Length: %d\r\n\r\n" % (len(body) + 50) + body,
                    head + b"Content-Length: %d\r\n\r\n" % max(len(body) - 20, 0) + body,
                    head + b"Content-Length: x\r\n\r\n" + body,
                    head + b"Content-Length: -5\r\n\r\n" + body,
                    head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body,
                    head + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + body,
                    head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body,
                    head + b"Transfer-Encoding: gzip\r\n\r\n" + body,
                    head + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
                    head + b"no colon\r\n\r\n",
                    head + b"X: a\nY: b\r\n\r\n",
                    head,
                    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                    b"GET\r\n\r\n",
                    b"POST /mcp HTTP/9.9\r\n\r\n",
                    b"\r\n\r\n\r\n\r\n",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                ]
            ),
            alone=True,
        )

    def _method(self) -> str:
        return self.chance.choice(METHODS)

    def _value(self, depth: int = 3) -> object:
        """Generate a value: odd ones in lists and objects, nested a few levels."""
        pick = self.chance.choice
        kind = pick(["odd", "list", "object"]) if depth else "odd"
        if kind == "list":
            return [self._value(depth - 1) for _ in range(self.chance.randrange(4))]
        if kind == "object":
            return {str(pick(ODD)): self._value(depth - 1) for _ in range(self.chance.randrange(4))}
        return pick(ODD)

    def _params(self) -> dict[str, object]:
        pick = self.chance.choice
        samples = {
            "name": pick(["call_tool", "search_tools", "absent", *ODD]),
            "arguments": pick(
                [{"name": pick(ODD), "arguments": pick(ODD)}, {"query": pick(ODD), "limit": pick(ODD)}, *ODD]
            ),
            "uri": pick(["toolscout://servers/fake/", "toolscout://results/x", "file:///etc/passwd", *ODD]),
            "ref": pick([{"type": "ref/prompt", "name": pick(ODD)}, {"type": pick(ODD)}, *ODD]),
            "argument": pick([{"name": "a", "value": pick(ODD)}, *ODD]),
            "cursor": pick(ODD),
            "requestState": pick(["toolscout-pending:x", *ODD]),
            "protocolVersion": pick(VERSIONS),
            "_meta": pick([{**META, "progressToken": pick(ODD)}, *ODD]),
        }
        return {
            name: samples[name] for name in self.chance.sample(sorted(samples), self.chance.randrange(len(samples)))
        }

    def _message(self, method: str, params: dict[str, object]) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}

    def _sent(self, body: bytes, method: str | None = None) -> Case:
        return Case(self._post(body, method=method or self.chance.choice(METHODS[:12])))

    def _post(
        self, body: bytes, method: str = "tools/list", token: str | None = None, more: dict | None = None
    ) -> bytes:
        head = "POST /mcp HTTP/1.1\r\n" + self._head(token, method, more) + f"Content-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1", "replace") + body

    def _head(self, token: str | None = None, method: str = "tools/list", more: dict | None = None) -> str:
        header = f"Bearer {token}" if token else self.chance.choice(self.tokens)
        headers = {
            "Host": f"127.0.0.1:{self.port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN if token else self.chance.choice([MODERN, MODERN, "2025-11-25"]),
            "Mcp-Method": method.replace("\u0000", ""),
            "Mcp-Name": "call_tool",
            **({"Authorization": header} if header else {}),
            **(more or {}),
        }
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


class Line:
    """A connection that is used again until the server closes it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, case: Case) -> tuple[int | None, bytes]:
        """Send one request and return its status, None where the connection was closed without one, and the body."""
        async with asyncio.timeout(WAIT_S):
            if case.alone:
                self.close()
            if self.streams is None:
                self.streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self.streams
            try:
                writer.write(case.data)
                await writer.drain()
                if case.alone:
                    writer.write_eof()
                status, body, kept = await _answer(reader, nothing_follows=case.data.startswith(b"HEAD"))
            except (ConnectionError, asyncio.IncompleteReadError):
                status, body, kept = None, b"", False
            if case.alone or not kept:
                self.close()
            return status, body

    def close(self) -> None:
        """Close the connection."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def _answer(reader: asyncio.StreamReader, *, nothing_follows: bool) -> tuple[int, bytes, bool]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head.split(" ", 2)[1])
    fields = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
    }
    body = b""
    if nothing_follows or status in (204, 304):
        pass
    elif fields.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(fields.get("content-length", 0)))
    return status, body, fields.get("connection") != "close"


@pytest.fixture
async def guarded_gateway(tmp_path):
    """Run a gateway with authentication, over a server that records every request."""
    behind = fake(tmp_path)
    write_config(tmp_path, behind.config)
    async with Scout.open(store=f"sqlite:///{tmp_path / 'catalogue.db'}") as scout:
        key, _ = await scout.api_keys.create(tenant="local", user="ann")
    with serving(tmp_path, "--auth") as gateway:
        yield gateway, key, behind


async def test_whatever_is_sent_the_answer_is_clean_and_the_next_request_is_served(guarded_gateway):
    gateway, key, behind = guarded_gateway
    maker = Maker(key, gateway.port)
    requests = [maker.case() for _ in range(CASES)]
    good = Case(maker.good(key))
    statuses: dict[int | None, int] = {}
    waiting = iter(enumerate(requests))

    async def work() -> None:
        line = Line(gateway.port)
        for number, case in waiting:
            status, body = await line.send(case)
            statuses[status] = statuses.get(status, 0) + 1
            assert status is None or 200 <= status < 500, (status, case.data[:2_000], body[:500])
            assert b"Traceback" not in body, case.data[:2_000]
            assert status is not None or case.alone, case.data[:2_000]
            if number % GOOD_EVERY == 0:
                status, body = await line.send(good)
                assert status == 200, case.data[:2_000]
                assert b'"search_tools"' in body
        line.close()

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    assert gateway.process.poll() is None
    assert statuses[401] + statuses.get(429, 0) > CASES / 5  # after many without a valid key, 429 says to wait
    assert statuses[401] and (429 in statuses or CASES <= REFUSALS_PER_MINUTE)
    assert statuses[400] > CASES / 5
    log = gateway.log.read_text("utf-8", "replace")
    assert "Traceback" not in log, log[log.find("Traceback") :][:6_000]
    assert key not in log
    assert not behind.received("tools/call")
