"""A real MCP server over streamable HTTP that demands tokens of one issuer, and the handle by which tests steer it.

It runs as a process of its own (`protected_tools.py`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from authorization_server import AuthorizationServer, ask
from servers import free_port, listening

SCRIPT = Path(__file__).parent / "protected_tools.py"


@dataclass(frozen=True)
class ProtectedServer:
    """The handle of a running server."""

    url: str
    """Where MCP is served, which is also the audience of its tokens."""
    process: subprocess.Popen[bytes]

    @property
    def origin(self) -> str:
        """Return the address without a path."""
        return self.url.removesuffix("/mcp")

    def switch(self, **switches: Any) -> None:
        """Set switches, named as in `protected_tools.Switches`; the others stay."""
        ask(f"{self.origin}/control/switches", switches)

    def reset(self) -> None:
        """Set all switches back, and forget what was seen. Sessions stay."""
        ask(f"{self.origin}/control/reset", {})

    def seen(self, method: str = "") -> list[dict[str, Any]]:
        """Return the requests in order, with the fields that `protected_tools.Gate` notes of each."""
        return [seen for seen in ask(f"{self.origin}/control/seen") if method in ("", seen["method"])]

    def reject_known_tokens(self) -> None:
        """Answer 401 to every token that was accepted until now, as if it had been revoked."""
        ask(f"{self.origin}/control/reject", {})


@contextmanager
def running_protected_server(issuer: str) -> Iterator[ProtectedServer]:
    """Run a server that trusts an issuer, until the end of the block."""
    port = free_port()
    with listening(sys.executable, str(SCRIPT), str(port), issuer, port=port) as process:
        yield ProtectedServer(f"http://127.0.0.1:{port}/mcp", process)


@pytest.fixture(scope="session")
def _protected_server(_authorization_server: AuthorizationServer) -> Iterator[ProtectedServer]:
    with running_protected_server(_authorization_server.url) as server:
        yield server


@pytest.fixture
def protected_server(authorization_server: AuthorizationServer, _protected_server: ProtectedServer) -> ProtectedServer:
    """Give a server that demands tokens of `authorization_server`."""
    _protected_server.reset()
    return _protected_server
