"""`python -m benchmarks.gateway.auth`: what authentication and a policy cost.

The same requests go in turn to three applications in one process, without sockets: one without authentication, one
that requires a key, and one that requires a key or a token and has a policy with limits. Then searches over the large
catalogue are measured in turn, without a policy and with 10,000 rules.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from starlette.types import ASGIApp

from benchmarks.data import bench_folder, machine, markdown, rows, save
from toolscout import Caller, Scout, Settings
from toolscout.gateway.auth.authentication import authentication_for
from toolscout.gateway.host_check import allowed_hosts
from toolscout.gateway.http import make_app
from toolscout.gateway.server import Gateway
from toolscout.policy.policy_file import Policy, Rule, parse_policy
from toolscout.policy.rules import Rules
from toolscout.storage import open_store

REPEATS, WARM = 1_000, 50
SEARCHES, PASSES = 150, 4
RULES = 10_000
AUDIENCE = "https://tools.example.com/mcp"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ECHO_CALL = {"name": "call_tool", "arguments": {"name": "echo__echo", "arguments": {"text": "hello"}}}
REQUESTS = {"list": ("tools/list", {}), "call": ("tools/call", ECHO_CALL)}
POLICY = """
[limits]
calls_per_minute = 1000000
concurrent_calls = 1000

[[allow]]
who = ["user:ann", "group:staff"]
servers = ["echo"]

[[deny]]
who = ["anyone"]
tools = ["*__delete_*"]
"""

Send = Callable[[], Awaitable[None]]


@contextmanager
def issuer() -> Iterator[tuple[str, Callable[[], str]]]:
    """Run an issuer; give its address and what signs a new token."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    keys = {"keys": [{**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "1", "use": "sig", "alg": "RS256"}]}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(keys).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    claims = {"iss": url, "aud": AUDIENCE, "sub": "ann", "groups": ["staff"], "exp": int(time.time()) + 3_600}
    try:
        yield url, lambda: jwt.encode({**claims, "jti": secrets.token_hex(8)}, key, "RS256", headers={"kid": "1"})
    finally:
        server.shutdown()


def sender(app: ASGIApp, tokens: Iterator[str | None], method: str, params: dict[str, Any]) -> Send:
    """Return what hands one request to an application, with the next token, and checks its answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
    headers = {
        "host": "127.0.0.1:8080",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        "mcp-name": params.get("name", ""),
        "content-length": str(len(body)),
    }
    common = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def send() -> None:
        token = next(tokens)
        pairs = [*common, (b"authorization", f"Bearer {token}".encode())] if token else common
        said: list[Any] = []
        given = iter([{"type": "http.request", "body": body, "more_body": False}])
        gone = asyncio.Event()

        async def receive() -> Any:
            for message in given:
                return message
            await gone.wait()
            return {"type": "http.disconnect"}

        async def take(message: Any) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": pairs,
            "http_version": "1.1",
            "server": ("127.0.0.1", 8080),
            "client": ("127.0.0.1", 1),
            "scheme": "http",
            "root_path": "",
        }
        await app(scope, receive, take)
        content = b"".join(message.get("body", b"") for message in said)
        if said[0]["status"] != 200 or b'"isError":true' in content or b'"error"' in content:
            raise RuntimeError(content.decode())

    return send


async def in_turn(ways: dict[str, Send]) -> dict[str, Any]:
    """Send one request each way, again and again; what a way adds is the median of its difference to the first."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, send in ways.items():
            begun = time.perf_counter()
            await send()
            times[name].append((time.perf_counter() - begun) * 1_000)
    base = next(iter(times.values()))
    return {
        name: {
            "p50_ms": round(statistics.median(values), 3),
            "added_ms": round(statistics.median(mine - first for mine, first in zip(values, base, strict=True)), 3),
        }
        for name, values in times.items()
    }


class Echo:
    """A provider of one tool."""

    def list_tool_metadata(self) -> list[dict[str, Any]]:
        """Return the one tool."""
        return [{"name": "echo", "description": "Say back a text"}]

    def get_tool(self, name: str) -> dict[str, Any]:
        """Return its definition."""
        return {"name": name, "description": "Say back a text", "inputSchema": {"type": "object"}}

    async def call_tool(self, _name: str, arguments: Any) -> Any:
        """Say back the text."""
        return arguments["text"]


async def requests(folder: Path) -> dict[str, Any]:
    """Measure the three applications."""
    async with AsyncExitStack() as stack:
        url, sign = stack.enter_context(issuer())
        asks = {"auth_issuer": url, "auth_audience": AUDIENCE, "auth_jwks_url": url}
        kinds: dict[str, tuple[bool, Policy | None, dict[str, str]]] = {
            "open": (False, None, {}),
            "key": (True, None, {}),
            "policy": (True, parse_policy(POLICY), asks),
        }
        apps, keys = {}, {}
        for name, (asked, policy, more) in kinds.items():
            settings = Settings(
                store=f"sqlite:///{folder / name}.db", embedder="none", audit=str(folder / "audit.jsonl"), **more
            )
            rules = Rules(policy)
            scout = Scout(store=open_store(settings, rules), embedder=None, settings=settings, rules=rules)
            await stack.enter_async_context(scout)
            await scout.index_server_tools("echo", Echo())
            keys[name] = (await scout.api_keys.create(tenant="local", user="ann"))[0]
            gateway = Gateway(scout, settings=settings, authenticated=asked)
            verifies = authentication_for(settings, scout.api_keys.find) if asked else None
            app = apps[name] = make_app(gateway, settings, allowed_hosts("127.0.0.1", 8080), verifies)
            await stack.enter_async_context(app.router.lifespan_context(app))
        found = {}
        for what, (method, params) in REQUESTS.items():
            ways = {
                "open": sender(apps["open"], repeat(None), method, params),
                "key": sender(apps["key"], repeat(keys["key"]), method, params),
                "key, policy, limits": sender(apps["policy"], repeat(keys["policy"]), method, params),
                "token, policy, limits": sender(apps["policy"], repeat(sign()), method, params),
                "a new token each time": sender(
                    apps["policy"], iter([sign() for _ in range(REPEATS + WARM)]), method, params
                ),
            }
            for send in ways.values():
                for _ in range(WARM):
                    await send()
            found[what] = await in_turn(ways)
        return found


def many_rules() -> Policy:
    """Write 10,000 rules as a company would have them: for users and groups, by server, glob and tag, some deny."""

    def rule(number: int, **named: Any) -> Rule:
        who = f"group:g{number % 500}" if number % 2 else f"user:u{number % 2_000}"
        return Rule(name=f"rule {number}", who=frozenset({who}), **named)

    deny = [rule(number, may="see", tools=(f"*__delete_{chr(97 + number % 26)}*",)) for number in range(1_000)]
    allow = [rule(number, servers=(f"*{chr(97 + number % 26)}*",)) for number in range(1_000, RULES)]
    return Policy(allow=tuple(allow), deny=tuple(deny))


async def searches(folder: Path) -> dict[str, Any]:
    """Search the large catalogue with and without rules, in turn; the first search of a caller stands beside it."""
    source = bench_folder() / "mcp_catalogue" / "tools.jsonl"
    queries = [row["query"] for row in rows(bench_folder() / "livemcp_step" / "queries.jsonl")][:SEARCHES]
    settings = Settings(store=f"sqlite:///{folder / 'search.db'}", embedder="none")
    caller = Caller(user="u42", groups=frozenset({"g41", "g43"}))
    scouts, first = {}, {}
    async with Scout.open(settings=settings) as scout:
        report = await scout.index_tools(source)
    for name, policy in (("no policy", None), (f"{RULES:,} rules", many_rules())):
        rules = Rules(policy)
        scouts[name] = Scout(store=open_store(settings, rules), embedder=None, settings=settings, rules=rules)
        await scouts[name].__aenter__()
        await scouts[name].search_tools("warm", caller=Caller(user="another"))
        begun = time.perf_counter()
        await scouts[name].search_tools(queries[0], caller=caller)
        first[name] = (time.perf_counter() - begun) * 1_000
    times: dict[str, list[float]] = {name: [] for name in scouts}
    shown = {name: (await scout.overview(caller=caller)).total for name, scout in scouts.items()}
    for number, query in enumerate(queries * PASSES):
        for name, scout in sorted(scouts.items(), reverse=bool(number % 2)):
            begun = time.perf_counter()
            await scout.search_tools(query, caller=caller)
            times[name].append((time.perf_counter() - begun) * 1_000)
    for scout in scouts.values():
        await scout.__aexit__(None, None, None)
    base = times["no policy"]
    return {
        "tools": report.total,
        **{
            name: {
                "tools_seen": shown[name],
                "p50_ms": round(statistics.median(values), 3),
                "first_ms": round(first[name], 1),
                "p50_ratio": round(statistics.median(values) / statistics.median(base), 2),
                "ratio": round(statistics.median(mine / one for mine, one in zip(values, base, strict=True)), 2),
            }
            for name, values in times.items()
        },
    }


async def measure() -> None:
    """Measure and save."""
    with tempfile.TemporaryDirectory() as name:
        http = await requests(Path(name))
        search = await searches(Path(name))
    table = [
        "What it adds to a request that callers identify themselves: the median of the differences, one by one.",
        "",
        markdown(
            ["gateway", *(f"{what}, p50 ms" for what in http), *(f"{what}, added ms" for what in http)],
            [
                [way, *(http[what][way]["p50_ms"] for what in http), *(http[what][way]["added_ms"] for what in http)]
                for way in http["list"]
            ],
        ),
        "",
        f"Searches over {search['tools']:,} tools, by words alone: no model's time hides what a policy costs. "
        "A caller's first search holds every tool against their rules once.",
        "",
        markdown(
            ["policy", "tools seen", "p50 ms", "p50 to p50", "median of ratios", "first search, ms"],
            [
                [way, *(found[name] for name in ("tools_seen", "p50_ms", "p50_ratio", "ratio", "first_ms"))]
                for way, found in search.items()
                if isinstance(found, dict)
            ],
        ),
    ]
    save("auth", {"machine": machine(), "http": http, "search": search}, "\n".join(table))


if __name__ == "__main__":
    asyncio.run(measure())
