"""The check of Host and Origin on every HTTP request, before anything reads its body.

A web page can send requests to a server on the user's machine, also by a DNS name that its owner points at 127.0.0.1
(DNS rebinding). So the Host must be one of the gateway's own names. The Origin, which only browsers send, must be too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscout.errors import ForbiddenError
from toolscout.gateway.denied import note_reason
from toolscout.gateway.problem_documents import PROBLEM, problem_document
from toolscout.loopback import is_loopback

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OPEN = frozenset({"/health"})
_FORBIDDEN = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHosts:
    """The accepted Hosts and Origins, in lower case. If `hosts` is None, any Host is accepted."""

    hosts: frozenset[str] | None
    origins: frozenset[str]
    own_origin: bool = False
    """Whether an Origin is accepted that names the Host of its request: a page of this gateway itself."""


def allowed_hosts(
    host: str,
    port: int,
    *,
    more_hosts: Iterable[str] = (),
    more_origins: Iterable[str] = (),
    own_origin: bool = False,
) -> AllowedHosts:
    """Return the allowed names: on loopback the local ones, on other addresses those that the operator lists.

    With `own_origin`, an Origin is accepted too that names the Host of its request. Only for authenticated callers: a
    DNS name that points at the gateway (DNS rebinding) is its own Origin. Its pages have no key, and neither the
    cookies nor the storage of another name.
    """
    local = is_loopback(host)
    names = [_bracketed(name) for name in ((*LOOPBACK, *_spellings(host)) if local else ())]
    hosts = {f"{name}:{port}" for name in names} | {name.lower() for name in more_hosts}
    origins = {f"http://{name}:{port}" for name in names} | {origin.lower().rstrip("/") for origin in more_origins}
    accepted = frozenset(hosts) if local or hosts else None
    return AllowedHosts(hosts=accepted, origins=frozenset(origins), own_origin=own_origin)


class HostCheck:
    """Middleware that refuses a wrong, missing or repeated Host, and a foreign Origin."""

    def __init__(self, app: ASGIApp, allowed: AllowedHosts) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or answer 403."""
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        reason = self._refusal_reason(scope)
        if reason is None:
            await self._app(scope, receive, send)
            return
        document = problem_document(ForbiddenError(reason, hint="see docs/gateway.md"), _FORBIDDEN)
        media_type = PROBLEM if scope["path"].startswith("/api/") else None
        await JSONResponse(document, _FORBIDDEN, media_type=media_type)(scope, receive, send)

    def _refusal_reason(self, scope: Scope) -> str | None:
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        origins = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"origin"]
        if len(hosts) != 1 or (self._allowed.hosts is not None and hosts[0] not in self._allowed.hosts):
            note_reason(f"the Host {_printable(hosts)} is not served here")
            return "this Host is not served here"
        if len(origins) > 1 or (origins and not self._is_allowed(origins[0].rstrip("/"), hosts[0])):
            note_reason(f"the Origin {_printable(origins)} is not allowed")
            return "this Origin is not allowed"
        return None

    def _is_allowed(self, origin: str, host: str) -> bool:
        own = self._allowed.own_origin and origin in (f"http://{host}", f"https://{host}")
        return own or origin in self._allowed.origins


def _printable(values: list[str]) -> str:
    return ascii(" ".join(values)[:200])


def _spellings(host: str) -> Iterable[str]:
    """Return an address as it was given, and as browsers write it."""
    yield host.lower()
    with suppress(ValueError):
        yield ipaddress.ip_address(host).compressed


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
