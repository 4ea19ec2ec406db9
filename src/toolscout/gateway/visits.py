"""The browser that visits the pages of a sign-in: its cookie, its forms, and the user whose key was entered in it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final
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
        return self.browser_of(request) or secrets.token_urlsafe(32)

    def remember(self, response: Response, browser: str) -> None:
        """Set the cookie of a browser."""
        self.set_cookie(response, "", browser)

    def browser_of(self, request: Request) -> str:
        """Return the name of the browser that sent a request, or "" if it has no cookie."""
        return self.cookie_of(request, "")

    def set_cookie(self, response: Response, name: str, value: str) -> None:
        """Set a cookie of the pages."""
        response.set_cookie(
            self._name(name), value, max_age=LASTS_S, secure=self._https, httponly=True, samesite="lax", path="/"
        )

    def cookie_of(self, request: Request, name: str) -> str:
        """Return the value of a cookie of the pages, or ""."""
        return request.cookies.get(self._name(name), "")

    def delete_cookie(self, response: Response, name: str) -> None:
        """Delete a cookie of the pages."""
        response.delete_cookie(self._name(name), path="/", secure=self._https, httponly=True)

    def _name(self, name: str) -> str:
        return f"{self._cookie}-{name}" if name else self._cookie

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
        visit = {"tenant": scope.tenant, "user": scope.owner, "browser": digest_of(browser)}
        return await self.seal(_VISIT, server, visit)

    async def user_of(self, ticket: str, server: str, browser: str) -> Scope | None:
        """Return whose key was entered in this browser for this server, or None if the ticket is not valid."""
        visit = await self.unseal(_VISIT, server, ticket)
        if visit is None or visit["browser"] != digest_of(browser):
            return None
        return Scope(tenant=visit["tenant"], owner=visit["user"])

    async def seal(self, kind: str, name: str, value: Mapping[str, Any]) -> str:
        """Return a value as text that a browser may keep for a while, but neither read nor change."""
        record = await self._accounts.stored.seal(kind, Scope(), name, {**value, "at": time.time()})
        return base64.urlsafe_b64encode(json.dumps(dict(record.body)).encode()).decode()

    async def unseal(self, kind: str, name: str, text: str) -> dict[str, Any] | None:
        """Return a value that was sealed for this kind and name, or None if the text is not valid any more."""
        try:
            body = json.loads(base64.urlsafe_b64decode(text.encode()))
            if not isinstance(body, Mapping):
                return None
            value = await self._accounts.stored.unseal(Record(kind=kind, scope=Scope(), name=name, body=dict(body)))
        except (ValueError, RecursionError, StoreError):
            return None
        return value if time.time() - value["at"] <= LASTS_S else None


def check_of(browser: str) -> str:
    """Return what a form of this browser holds."""
    return hashlib.sha256(f"form {browser}".encode()).hexdigest()


def digest_of(browser: str) -> str:
    """Return what is stored of a browser's cookie."""
    return hashlib.sha256(f"browser {browser}".encode()).hexdigest()
