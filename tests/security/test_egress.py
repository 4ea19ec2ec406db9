"""A URL cannot reach a private address by its spelling, by the resolver or by a redirect."""

import ipaddress
import socket

import httpcore2
import httpx2
import pytest

from downstreams import QUICK, opened
from fake_http import fake_http
from guarantees import guarantee
from toolscout.config import OAuthConfig, ServerConfig
from toolscout.downstream import egress
from toolscout.downstream.connect import Endpoint, connect
from toolscout.downstream.egress import CheckedBackend, CheckedTransport, check_address, resolve
from toolscout.downstream.process import StderrBuffer
from toolscout.downstream.reaper import Reaper
from toolscout.errors import CallError, ServerUnavailableError

pytestmark = guarantee("egress:ssrf")

PRIVATE = [
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.0.1",
    "198.18.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "224.0.0.1",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001:0:0:0:0:0:80ff:fffe",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
]
SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "0.0.0.0",
    "0",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "localhost",
    "LOCALHOST",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_refused(address):
    assert not check_address(address, private=False)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_a_public_address_is_allowed(address):
    assert check_address(address, private=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "fd00::1", "::ffff:192.168.1.1"])
def test_private_addresses_are_allowed_if_the_config_says_so(address):
    assert check_address(address, private=True)


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "0.0.0.0", "::", "fe80::1", "224.0.0.1", "::ffff:169.254.169.254"),
        *("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254"),
        *("::ffff:168.63.129.16", "64:ff9b::168.63.129.16", "::ffff:0:169.254.169.254", "::ffff:0:192.0.0.192"),
        *("64:ff9b:1::a9fe:a9fe", "2002:a83f:8110::", "::168.63.129.16"),
    ],
)
def test_metadata_and_unspecified_addresses_are_always_refused(address):
    assert not check_address(address, private=True)
    assert not check_address(address, private=False)


@pytest.mark.parametrize("pointed", ["metadata", "endpoint"])
async def test_private_frees_the_hosts_of_the_config_and_none_that_the_server_names(pointed):
    with fake_http() as server, fake_http() as other:
        server.token = "T1"
        server.elsewhere = {pointed: other.origin}
        oauth = OAuthConfig(client_id="me", client_secret="secret")
        async with opened(web(f"{server.origin}/mcp", private=True, oauth=oauth), ready=False) as here:
            await here.state("web", "failed")
        assert other.connections == 0
        # An address of the operator's own is another matter.
        other.token = server.token
        oauth = OAuthConfig(client_id="me", client_secret="secret", token_url=f"{other.origin}/token")
        async with opened(web(f"{server.origin}/mcp", private=True, oauth=oauth)) as here:
            await here.call("web", "echo")
        assert other.connections == 1


def web(url, **fields):
    return ServerConfig(title="web", transport="http", url=url, **fields)


async def test_a_private_listener_gets_no_connection_whatever_the_spelling():
    with fake_http() as server:
        port = server.server_address[1]
        for spelling in SPELLINGS:
            endpoint = Endpoint(
                config=web(f"http://{spelling}:{port}/mcp"), settings=QUICK, reaper=Reaper(), errors=StderrBuffer(0)
            )
            with pytest.raises(ServerUnavailableError, match=r"may not connect|no address|InvalidURL"):
                async with connect(endpoint):
                    pass
        assert server.connections == 0
        async with opened(web(f"{server.origin}/mcp", private=True)) as here:
            await here.call("web", "echo")
        assert server.connections > 0


async def test_a_host_with_one_bad_address_among_good_ones_is_refused(monkeypatch):
    async def both(host, port):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port)) for found in ("1.1.1.1", "127.0.0.1")]

    monkeypatch.setattr(egress, "lookup", both)
    with pytest.raises(ServerUnavailableError, match="may not connect"):
        await resolve("both.example", 80, private=False)


async def test_a_resolver_that_changes_its_answer_has_no_effect(monkeypatch):
    """The name is resolved once for each connection, and the connection is made to the address that was checked."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    targets = []

    async def rebinding(host, port):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    async def connect(self, host, port, *rest, **named):
        targets.append(host)
        raise httpcore2.ConnectError("this is a test")

    monkeypatch.setattr(egress, "lookup", rebinding)
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    async with httpx2.AsyncClient(transport=CheckedTransport(private=False)) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://rebinding.example/")
        with pytest.raises(ServerUnavailableError):
            await client.get("http://rebinding.example/")
    assert [ipaddress.ip_address(host).is_global for host in targets] == [True]


async def test_a_unix_socket_is_refused():
    with pytest.raises(httpcore2.ConnectError):
        await CheckedBackend(private=True).connect_unix_socket("/var/run/docker.sock")


async def test_the_http_library_makes_every_connection_through_the_check(monkeypatch):
    """This fails if a new version of httpcore2 or httpx2 connects in another way."""
    lookups, lookup = [], egress.lookup

    async def recorded(host, port):
        lookups.append(host)
        return await lookup(host, port)

    monkeypatch.setattr(egress, "lookup", recorded)
    with fake_http() as server:
        for number in range(1, 4):
            async with httpx2.AsyncClient(transport=CheckedTransport(private=True)) as client:
                assert (await client.get(server.origin)).status_code == 405
            assert len(lookups) == server.connections == number
        with monkeypatch.context() as patch:
            patch.setattr(egress, "check_address", lambda address, *, private: False)
            async with httpx2.AsyncClient(transport=CheckedTransport(private=True)) as client:
                with pytest.raises(ServerUnavailableError, match="may not connect"):
                    await client.get(server.origin)
        assert server.connections == 3


@pytest.mark.parametrize("name", [name for name in httpcore2.__all__ if name.endswith(("Error", "Timeout"))])
async def test_errors_of_the_connection_pool_become_errors_of_the_http_client(monkeypatch, name):
    async def fail(self, *args, **options):
        raise getattr(httpcore2, name)("this is a test")

    monkeypatch.setattr(egress.CheckedBackend, "connect_tcp", fail)
    async with httpx2.AsyncClient(transport=CheckedTransport(private=True)) as client:
        with pytest.raises(getattr(httpx2, name)):
            await client.get("http://web.example/")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_origin_is_not_followed(status):
    with fake_http() as server, fake_http() as other:
        async with opened(web(f"{server.origin}/mcp", private=True)) as here:
            for to in (f"{other.origin}/mcp", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd"):
                with pytest.raises(CallError):
                    await here.call("web", "redirect", {"to": to, "status": status})
            assert (await here.call("web", "echo"))["content"]
        assert other.connections == 0
        assert len(server.calls("redirect")) == 3


async def test_proxies_from_the_environment_are_not_used(monkeypatch):
    with fake_http() as server, fake_http() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.origin)
        async with opened(web(f"{server.origin}/mcp", private=True)) as here:
            await here.call("web", "echo")
        assert proxy.connections == 0
