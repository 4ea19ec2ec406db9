"""The browser that visits the pages of a sign-in: its cookie, its forms, and the user whose key was entered in it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from toolscout.errors import StoreError
from toolscout.models import Record, Scope
from toolscout.scout.accounts import Accounts

LASTS_S: Final = 900
"""How long a browser's cookie and forms are valid."""

_MAX_FORM_BYTES = 16_384
_VISIT = "visit"


class Visits:
    """Ties each step of a sign-in to the browser that began it.

    A form holds a digest of the cookie. Another site can neither read it nor set the cookie.
    """

    def __init__(self, accounts: Accounts, *, https: bool) -> None:
        self._accounts = accounts
        self._https = https
        self._cookie = "__Host-toolscout" if https else "toolscout"

    def begin(self, request: Request) -> str:
        """Return the name of the visitor's browser, or a new one."""
        return request.cookies.get(self._cookie) or secrets.token_urlsafe(32)

    def remember(self, response: Response, browser: str) -> None:
        """Set the cookie of a browser."""
        response.set_cookie(
            self._cookie, browser, max_age=LASTS_S, secure=self._https, httponly=True, samesite="lax", path="/"
        )

    def browser_of(self, request: Request) -> str:
        """Return the name of the browser that sent a request, or "" if it has no cookie."""
        return request.cookies.get(self._cookie, "")

    async def read_form(self, request: Request) -> dict[str, str] | None:
        """Return the fields of a form, or None if it is not one of this browser."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MAX_FORM_BYTES:
                return None
        fields = dict(parse_qsl(body.decode("utf-8", "replace")))
        browser = self.browser_of(request)
        own = browser and secrets.compare_digest(fields.get("check", "").encode(), check_of(browser).encode())
        return fields if own else None

    async def ticket(self, scope: Scope, server: str, browser: str) -> str:
        """Return what proves, in a later form of the same browser, that a user's key was entered for a server."""
        visit = {"tenant": scope.tenant, "user": scope.owner, "browser": digest_of(browser), "at": time.time()}
        record = await self._accounts.stored.seal(_VISIT, Scope(), server, visit)
        return base64.urlsafe_b64encode(json.dumps(dict(record.body)).encode()).decode()

    async def user_of(self, ticket: str, server: str, browser: str) -> Scope | None:
        """Return whose key was entered in this browser for this server, or None if the ticket is not valid."""
        try:
            body = json.loads(base64.urlsafe_b64decode(ticket.encode()))
            if not isinstance(body, Mapping):
                return None
            visit = await self._accounts.stored.unseal(Record(kind=_VISIT, scope=Scope(), name=server, body=dict(body)))
        except (ValueError, RecursionError, StoreError):
            return None
        if visit["browser"] != digest_of(browser) or time.time() - visit["at"] > LASTS_S:
            return None
        return Scope(tenant=visit["tenant"], owner=visit["user"])


def check_of(browser: str) -> str:
    """Return what a form of this browser holds."""
    return hashlib.sha256(f"form {browser}".encode()).hexdigest()


def digest_of(browser: str) -> str:
    """Return what is stored of a browser's cookie."""
    return hashlib.sha256(f"browser {browser}".encode()).hexdigest()
