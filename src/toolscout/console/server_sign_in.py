"""The button that signs in to a server: an operator for everyone, or a user for themselves.

The answer of the issuer comes back to the browser that began, which has a sealed cookie.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from toolscout.api.callers import Requester, RequesterResolver
from toolscout.api.problems import problem
from toolscout.config import ServerConfig
from toolscout.console.files import SECURITY_HEADERS
from toolscout.console.sessions import ConsoleSessions, json_response
from toolscout.errors import ForbiddenError, SignInError, ToolscoutError, UnknownServerError
from toolscout.gateway.connect import CLIENT_DOCUMENT, CONSOLE_CALLBACK, finish_sign_in, may_reach
from toolscout.gateway.pages import page
from toolscout.gateway.visits import digest_of
from toolscout.models import Scope
from toolscout.scout import Scout

_COOKIE: Final = "server"
_LASTS_S: Final = 900.0


class ServerSignIn:
    """Begins and ends sign-ins to servers."""

    def __init__(
        self,
        scout: Scout,
        sessions: ConsoleSessions,
        requesters: RequesterResolver,
        origin: Callable[[Request], str],
        *,
        describes_client: bool,
    ) -> None:
        """Take what finds the caller of a request, and the address of the console as a browser knows it.

        `describes_client` says whether the gateway serves the documents that describe it to issuers.
        """
        self._scout = scout
        self._sessions = sessions
        self._requesters = requesters
        self._origin = origin
        self._describes_client = describes_client

    async def begin(self, request: Request) -> Response:
        """Return the address at which the person signs in. The request has passed the gateway's authentication."""
        server, accounts = str(request.path_params["server"]), self._scout.servers.accounts
        assert accounts is not None  # noqa: S101 - a scout has a store
        browser, origin = secrets.token_urlsafe(32), self._origin(request)
        try:
            who = self._requesters.of(request)
            config = await self._config(server, who)
            pending = await accounts.begin(
                server,
                config,
                who.caller.scope if config.users_sign_in else Scope(),
                origin + CONSOLE_CALLBACK.format(server=server),
                browser=digest_of(browser),
                metadata_url=origin + CLIENT_DOCUMENT.format(server=server) if self._describes_client else None,
            )
            response = json_response({"link": pending.link})
            self._sessions.set(request, response, _COOKIE, {"browser": browser}, "", _LASTS_S)
        except ToolscoutError as error:
            return problem(error)
        return response

    async def finish(self, request: Request) -> Response:
        """Take the issuer's answer, and go back to the servers."""
        pairs = parse_qsl(request.url.query, keep_blank_values=True)
        answer, visit = dict(pairs), self._sessions.get(request, _COOKIE)
        if len(answer) != len(pairs) or visit is None or not answer.get("state"):
            return page("This sign-in did not begin here", "Go back to the console, and begin again.", status=400)
        server = str(request.path_params["server"])
        redirect_uri = self._origin(request) + CONSOLE_CALLBACK.format(server=server)
        try:
            await finish_sign_in(self._scout, server, answer, digest_of(visit["browser"]), redirect_uri)
        except ToolscoutError as error:
            return page(f"You are not signed in: {error.message}", error.hint, status=400)
        response = RedirectResponse("/#/servers", 303, SECURITY_HEADERS)
        self._sessions.end(request, response, _COOKIE)
        return response

    async def _config(self, server: str, who: Requester) -> ServerConfig:
        """Return the config of a server that the caller may sign in to."""
        config = self._scout.servers.config_of(server)
        if config is None or not (who.operator or await self._knows(who, server, config)):
            raise UnknownServerError(f"there is no server {server!r}", hint="ask the operator")
        if not config.allows_sign_in:
            raise SignInError(f"nobody signs in to {server}", hint="its config already holds its credentials")
        if config.users_sign_in and who.caller.user is None:
            raise ForbiddenError("your key belongs to no user", hint="ask the operator for a key of your own")
        if not config.users_sign_in and not who.operator:
            raise ForbiddenError(
                "only operators of this gateway may sign in to a server for everyone", hint="ask the operator"
            )
        return config

    async def _knows(self, who: Requester, server: str, config: ServerConfig) -> bool:
        """Return whether a caller may know of a server. What each user signs in to has no tools before that."""
        if not may_reach(self._scout, who.caller, server):
            return False
        return config.users_sign_in or any(status.server == server for status in await who.visible_servers())
