"""The parts of httpcore2 that the check of outgoing connections relies on are as they were when it was written.

Each failure names what changed and what to look at. Until that is done, keep the upper bound of httpcore2 in
pyproject.toml below the version that changed it.
"""

import inspect
from importlib.metadata import requires
from typing import NoReturn

import httpcore2
import httpx2
import pytest

from guarantees import guarantee
from toolscout.downstream import egress
from toolscout.downstream.egress import CheckedBackend, CheckedTransport

pytestmark = guarantee("egress:ssrf")

POOL_OPTIONS = {"ssl_context", "network_backend", "max_connections", "keepalive_expiry", "http1"}
BACKEND = {
    "connect_tcp": ["self", "host", "port", "timeout", "local_address", "socket_options"],
    "connect_unix_socket": ["self", "path", "timeout", "socket_options"],
    "sleep": ["self", "seconds"],
}


class RefusingBackend(httpcore2.AsyncNetworkBackend):
    """Refuses every connection, and counts them."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    async def connect_tcp(self, host: str, port: int, *_options: object, **_named: object) -> NoReturn:
        self.refused.append(f"{host}:{port}")
        raise httpcore2.ConnectError("refused")


def test_a_pool_takes_the_options_that_the_check_gives_it() -> None:
    missing = POOL_OPTIONS - inspect.signature(httpcore2.AsyncConnectionPool).parameters.keys()
    assert not missing, (
        f"httpcore2.AsyncConnectionPool no longer takes {sorted(missing)}: give CheckedTransport another way to make "
        "every connection through CheckedBackend"
    )


def test_a_backend_has_no_other_way_to_connect_than_those_that_are_checked() -> None:
    methods = {
        name: list(inspect.signature(method).parameters)
        for name, method in vars(httpcore2.AsyncNetworkBackend).items()
        if inspect.isfunction(method)
    }
    assert methods == BACKEND, (
        "the methods of httpcore2.AsyncNetworkBackend have changed: CheckedBackend must check or refuse each of them"
    )
    unchecked = BACKEND.keys() - vars(CheckedBackend).keys()
    assert not unchecked, f"CheckedBackend inherits {sorted(unchecked)} unchecked"


@pytest.mark.parametrize("url", ["http://example.com/", "https://example.com/", "http://192.0.2.1:8080/"])
async def test_every_connection_of_a_pool_goes_through_its_backend(url: str) -> None:
    backend = RefusingBackend()
    async with httpcore2.AsyncConnectionPool(network_backend=backend) as pool:
        with pytest.raises(httpcore2.ConnectError, match="refused"):
            await pool.request("GET", url)
    assert backend.refused, "httpcore2 connected without asking its network backend: the check would be bypassed"


async def test_a_transport_gives_its_pool_the_checked_backend() -> None:
    transport = CheckedTransport(private=False)
    try:
        backend = getattr(transport._pool, "_network_backend", None)
        assert isinstance(backend, CheckedBackend), (
            "httpcore2.AsyncConnectionPool no longer keeps its backend as _network_backend: find where it is now"
        )
    finally:
        await transport.aclose()


def test_every_error_of_the_pool_has_its_twin() -> None:
    def kinds(base: type[Exception]) -> set[type[Exception]]:
        return {base}.union(*(kinds(kind) for kind in base.__subclasses__() if kind.__module__.startswith("httpcore2")))

    bases = (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError)
    untranslated = set().union(*map(kinds, bases)) - egress._ERRORS.keys()
    assert not untranslated, f"httpcore2 raises {untranslated}, which egress._ERRORS does not translate"
    assert all(issubclass(kind, httpx2.TransportError) for kind in egress._ERRORS.values())


@pytest.mark.parametrize("library", ["httpcore2", "httpx2"])
def test_the_next_major_version_is_not_installed_unseen(library: str) -> None:
    bounds = [item for item in requires("toolscout") or () if item.startswith(library) and "extra" not in item]
    assert [("<3" in item, ">=2.10" in item) for item in bounds] == [(True, True)]
