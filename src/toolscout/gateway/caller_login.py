"""Finds out who visits a page by their sign-in at the issuer whose tokens the gateway accepts, instead of by a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from toolscout.gateway.auth.code_login import CodeLogin, PendingLogin
from toolscout.gateway.visits import Visits, digest_of
from toolscout.settings import Settings

LOGIN_CALLBACK: Final = "/sign-in/callback"
"""Where the issuer sends the browser back to."""

_KIND = "login"


class CallerLogin:
    """What the pages are at the issuer. What they wait for travels in a sealed cookie, so any replica can go on."""

    def __init__(self, login: CodeLogin, visits: Visits, origin: str) -> None:
        self._login = login
        self._visits = visits
        self._redirect_uri = origin + LOGIN_CALLBACK

    @classmethod
    def of(cls, settings: Settings, visits: Visits, origin: str) -> CallerLogin | None:
        """Return what the settings say, or None if they name no client. It asks for no scope of operators."""
        login = CodeLogin.of(settings)
        return cls(replace(login, scope=settings.auth_scope), visits, origin) if login else None

    @property
    def host(self) -> str:
        """The host of the issuer."""
        return urlsplit(self._login.issuer).netloc

    async def begin(self, server: str, browser: str) -> tuple[str, str]:
        """Return where the person signs in, and the cookie to keep here. Raise SignInError if they cannot."""
        pending = await self._login.begin(self._redirect_uri)
        kept = {**pending.kept, "server": server, "browser": digest_of(browser)}
        return pending.link, await self._visits.seal(_KIND, "", kept)

    def remember(self, response: Response, cookie: str) -> None:
        """Set the cookie."""
        self._visits.set_cookie(response, _KIND, cookie)

    async def server_of(self, request: Request, answer: Mapping[str, str]) -> tuple[str, PendingLogin] | None:
        """Return for which server this browser began the sign-in that an answer belongs to, or None if it did not."""
        kept = await self._visits.unseal(_KIND, "", self._visits.cookie_of(request, _KIND))
        if kept is None or kept["browser"] != digest_of(self._visits.browser_of(request)):
            return None
        pending = PendingLogin.of(kept, self._redirect_uri, answer)
        return (str(kept["server"]), pending) if pending is not None else None

    async def finish(self, pending: PendingLogin, answer: Mapping[str, str]) -> str:
        """Return the person's token. Raise SignInError if there is none."""
        return await self._login.finish(pending, answer)

    def forget(self, response: Response) -> None:
        """Delete the cookie: an answer is taken once."""
        self._visits.delete_cookie(response, _KIND)
