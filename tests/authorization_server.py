"""A real OAuth 2.1 authorization server on loopback, a process of its own, and the handle by which tests steer it.

Metadata (RFC 8414), registration (RFC 7591), client id metadata documents, a consent page, PKCE, `iss` in the callback
(RFC 9207), resource indicators (RFC 8707), refresh tokens that rotate, device codes (RFC 8628), token exchange
(RFC 8693), client credentials and revocation (RFC 7009).
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from servers import free_port, listening

SCRIPT = Path(__file__).parent / "oauth_endpoints.py"


@dataclass(frozen=True)
class AuthorizationServer:
    """The handle of a running server."""

    url: str
    """The issuer."""
    process: subprocess.Popen[bytes]

    def switch(self, **switches: Any) -> None:
        """Set switches, named as in `oauth_grants.Switches`; the others stay."""
        ask(f"{self.url}/control/switches", switches)

    def reset(self) -> None:
        """Forget everything, and set all switches back. The key stays."""
        ask(f"{self.url}/control/reset", {})

    def register_user(self, name: str, **claims: Any) -> None:
        """Add a user, whose tokens have these claims as well. `ann` and `bob` are there already."""
        ask(f"{self.url}/control/users", {"name": name, "claims": claims})

    def register_client(self, client_id: str, *redirect_uris: str, secret: str | None = None) -> None:
        """Add a client by hand, as an administrator does."""
        ask(f"{self.url}/control/clients", {"client_id": client_id, "redirect_uris": redirect_uris, "secret": secret})

    def decide_device(self, user_code: str, user: str = "") -> None:
        """Agree to a device as a user, or refuse it."""
        ask(f"{self.url}/control/devices", {"user_code": user_code, "user": user})

    def token(self, **claims: Any) -> str:
        """Sign any claims."""
        return str(ask(f"{self.url}/control/sign", claims)["token"])

    def counts(self) -> dict[str, int]:
        """Return how often each endpoint was asked; the token endpoint also by grant: `token:refresh_token`."""
        return dict(ask(f"{self.url}/control/state")["counts"])

    def grants(self) -> list[dict[str, Any]]:
        """Return what users have consented to: `user`, `client_id`, `scope`, `resource` and `revoked`."""
        return list(ask(f"{self.url}/control/state")["grants"])

    def revoked_tokens(self) -> list[str]:
        """Return the access tokens that were revoked one by one."""
        return list(ask(f"{self.url}/control/state")["revoked_tokens"])


def ask(url: str, body: Any = None) -> Any:
    """Ask the control endpoints of a test server."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return json.load(answer)


@contextmanager
def running_authorization_server() -> Iterator[AuthorizationServer]:
    """Run a server until the end of the block."""
    port = free_port()
    with listening(sys.executable, str(SCRIPT), str(port), port=port) as process:
        yield AuthorizationServer(f"http://127.0.0.1:{port}", process)


@pytest.fixture(scope="session")
def _authorization_server() -> Iterator[AuthorizationServer]:
    with running_authorization_server() as server:
        yield server


@pytest.fixture
def authorization_server(_authorization_server: AuthorizationServer) -> AuthorizationServer:
    """Give an authorization server that knows the users `ann` and `bob`, and no client."""
    _authorization_server.reset()
    return _authorization_server
