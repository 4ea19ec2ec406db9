"""The console: its files, signing in and out, and the sessions by which its page uses the REST API."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.authentication import AuthenticationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscout.api.callers import CONSOLE_OPERATOR, RequesterResolver
from toolscout.api.problems import problem
from toolscout.console.files import SECURITY_HEADERS, ConsoleFiles
from toolscout.console.links import FIRST_LINK_S, LinkTokens, RunningConsole
from toolscout.console.server_sign_in import ServerSignIn
from toolscout.console.sessions import LOCAL, ConsoleSessions, json_response
from toolscout.errors import AuthError, InvalidValueError, SettingError, ToolscoutError
from toolscout.gateway.auth.authentication import Authentication
from toolscout.gateway.auth.code_login import CodeLogin, PendingLogin
from toolscout.gateway.connect import CONSOLE_CALLBACK, public_origin
from toolscout.gateway.pages import page
from toolscout.scout import Scout
from toolscout.settings import Settings
from toolscout.token_keys import TokenKeys

_LOGIN_S = 600.0
_LARGEST_BODY = 16_384
_CALLBACK = "/console/callback"
_log = logging.getLogger("toolscout")


class _SignIn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    proof: Annotated[str, Field(min_length=32, max_length=128)]
    token: Annotated[str, Field(max_length=256)] = ""


class Console:
    """The console of one gateway."""

    def __init__(self, scout: Scout, settings: Settings, authentication: Authentication | None) -> None:
        """Without authentication, whoever has a one-time link is the operator."""
        self._authentication = authentication
        self._public = public_origin(settings)
        https = self._public.startswith("https://")
        self._sessions = ConsoleSessions(_sealing_key(settings), https=https)
        requesters = RequesterResolver(
            scout, authenticated=authentication is not None, operator_scope=settings.operator_scope
        )
        self._servers = ServerSignIn(
            scout, self._sessions, requesters, self._origin, describes_client=https and authentication is not None
        )
        self.secret = "" if authentication else secrets.token_urlsafe(32)
        self._links = LinkTokens(self.secret)
        self._login = CodeLogin.of(settings) if authentication else None
        self._file: Path | None = None

    def announce(self, url: str) -> str:
        """Leave the address of the console for `toolscout console`, and return the first link to it."""
        running = RunningConsole(self._public or url, self.secret, os.getpid())
        try:
            self._file = running.write()
        except OSError as error:
            _log.warning("`toolscout console` will not find this gateway: %s", error.strerror)
        return running.link(FIRST_LINK_S)

    def close(self) -> None:
        """Remove what `announce` left."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def admit(self, app: ASGIApp) -> ASGIApp:
        """Let requests with a session pass as if they carried its key or token."""
        return _SessionRequests(app, self._sessions, authenticated=self._authentication is not None)

    def routes(self, protect: Callable[[ASGIApp], ASGIApp]) -> list[Route]:
        """Return the routes. `protect` refuses requests without a valid key or token, as the REST API does."""
        begin = self.admit(protect(_Endpoint(self._servers.begin)))
        return [
            *ConsoleFiles().routes(),
            Route("/console/session", self._ways, methods=["GET"]),
            Route("/console/session", self._sign_out, methods=["DELETE"]),
            Route("/console/session", endpoint=protect(_Endpoint(self._sign_in)), methods=["POST"]),
            Route("/console/sign-in/{server}", endpoint=begin, methods=["POST"]),
            Route(CONSOLE_CALLBACK, self._servers.finish, methods=["GET"]),
            Route("/console/login", self._begin_login, methods=["POST"]),
            Route(_CALLBACK, self._finish_login, methods=["GET"]),
        ]

    async def _ways(self, request: Request) -> Response:
        """Say whether somebody is signed in, and how people sign in."""
        body = {"key": self._authentication is not None, "issuer": self._login.issuer if self._login else None}
        return json_response({**body, "signed_in": await self._is_signed_in(request)})

    async def _is_signed_in(self, request: Request) -> bool:
        authorization = self._sessions.authorization(request)
        if self._authentication is None or authorization is None or authorization == LOCAL:
            return authorization == LOCAL and self._authentication is None
        try:
            await self._verify(authorization.removeprefix("Bearer "))
        except AuthError:
            return False
        except AuthenticationError:  # keys cannot be looked up now, as the next request of the page is told
            pass
        return True

    async def _sign_in(self, request: Request) -> Response:
        """Begin a session with the key of the request, which was verified, or with the token of a link."""
        try:
            body = await _read(request)
            authorization = request.headers.get("authorization", "")
            if self._authentication is None:
                if not self._links.take(body.token):
                    raise AuthError("this link was used already, or is too old", hint="run `toolscout console`")
                authorization = LOCAL
            response = json_response({})
            self._sessions.begin(request, response, authorization, body.proof)
        except ToolscoutError as error:
            return problem(error)
        return response

    async def _sign_out(self, request: Request) -> Response:
        response = json_response({})
        self._sessions.end(request, response, "session")
        return response

    async def _begin_login(self, request: Request) -> Response:
        """Begin a sign-in at the issuer, and return the address where the person signs in."""
        try:
            body = await _read(request)
            if self._login is None:
                raise SettingError(
                    "nobody signs in to this console at an issuer", hint="set TOOLSCOUT_CONSOLE_CLIENT_ID"
                )
            pending = await self._login.begin(self._origin(request) + _CALLBACK)
            response = json_response({"link": pending.link})
            # The session that follows belongs to the page that begins, so its proof travels in the sealed cookie.
            self._sessions.set(request, response, "login", {**pending.kept, "page": body.proof}, body.proof, _LOGIN_S)
        except ToolscoutError as error:
            return problem(error)
        return response

    async def _finish_login(self, request: Request) -> Response:
        """Take the issuer's answer, in the browser that began."""
        kept, answer = self._sessions.get(request, "login"), dict(request.query_params)
        pending = PendingLogin.of(kept, self._origin(request) + _CALLBACK, answer) if kept is not None else None
        if self._login is None or kept is None or pending is None:
            return page("This sign-in did not begin here", "Go back to the console, and begin again.", status=400)
        try:
            token = await self._login.finish(pending, answer)
            await self._verify(token)
            response: Response = RedirectResponse("/", 303, SECURITY_HEADERS)
            self._sessions.begin(request, response, f"Bearer {token}", kept["page"])
        except ToolscoutError as error:
            response = page(f"You are not signed in: {error.message}", error.hint, status=400)
        self._sessions.end(request, response, "login")
        return response

    async def _verify(self, token: str) -> None:
        """Raise AuthError unless the gateway accepts a token. The reason is in its log."""
        assert self._authentication is not None  # noqa: S101 - there is an issuer
        access = await self._authentication.verifier.verify_token(token)
        if access is None or not set(self._authentication.scopes) <= set(access.scopes):
            raise AuthError(
                "this gateway does not accept the issuer's token", hint="ask the operator; the log says why"
            )

    def _origin(self, request: Request) -> str:
        return self._public or f"{request.url.scheme}://{request.headers['host']}"


class _SessionRequests:
    """Middleware that takes the key or token out of the session. A request that carries one itself has no session."""

    def __init__(self, app: ASGIApp, sessions: ConsoleSessions, *, authenticated: bool) -> None:
        self._app = app
        self._sessions = sessions
        self._authenticated = authenticated

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            authorization = self._sessions.authorization(Request(scope))
            if authorization is not None and self._authenticated and authorization != LOCAL:
                scope = {**scope, "headers": [*scope["headers"], (b"authorization", authorization.encode("latin-1"))]}
            elif authorization == LOCAL and not self._authenticated:
                scope = {**scope, CONSOLE_OPERATOR: True}
        await self._app(scope, receive, send)


class _Endpoint:
    """A handler as an application, so that middleware can protect it alone."""

    def __init__(self, handler: Callable[[Request], Any]) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        response = await self._handler(Request(scope, receive))
        await response(scope, receive, send)


async def _read(request: Request) -> _SignIn:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_BODY:
            raise InvalidValueError("the body is too large", hint="send a proof and a token")
    try:
        return _SignIn.model_validate_json(body)
    except ValidationError as error:
        raise InvalidValueError("the body is not a sign-in", hint="send `proof`, as the console does") from error


def _sealing_key(settings: Settings) -> Callable[[], bytes]:
    """Return what seals cookies: a key that follows from the one for tokens, or else one of this process."""
    keys, own = TokenKeys(settings), secrets.token_bytes(32)

    def key() -> bytes:
        try:
            return keys.cipher().derive_key("console sessions")
        except SettingError:  # PostgreSQL without TOOLSCOUT_TOKEN_KEY
            return own

    return key
