"""An authorization server that others wrote: the certified `oidc-provider` from npm, run as a process of its own.

It publishes OpenID metadata only, names its endpoints differently and signs with RSA, unlike `authorization_server.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from authorization_server import ask
from servers import free_port, listening, node, npm_package

PROVIDER = ("oidc-provider", "oidc-provider", "9.13.3")
SCRIPT = Path(__file__).parent / "independent_issuer.mjs"


@dataclass(frozen=True)
class IndependentIssuer:
    """The handle of a running server. Its pages ask for `login` and any `password`, then have a button `Continue`."""

    url: str
    """The issuer."""

    def register_user(self, name: str) -> None:
        """Add a user. `ann` and `bob` are there already."""
        ask(f"{self.url}/control/users", {"name": name})


@contextmanager
def running_independent_issuer() -> Iterator[IndependentIssuer]:
    """Run a server until the end of the block."""
    package, port = npm_package(*PROVIDER) / "node_modules" / "oidc-provider", free_port()
    with listening(node(), str(SCRIPT), str(package), str(port), port=port):
        yield IndependentIssuer(f"http://127.0.0.1:{port}")


@pytest.fixture(scope="session")
def independent_issuer() -> Iterator[IndependentIssuer]:
    """Give an authorization server of another make."""
    with running_independent_issuer() as issuer:
        yield issuer
