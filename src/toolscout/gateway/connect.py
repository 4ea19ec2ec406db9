"""The pages at which users of a gateway sign in to servers for themselves: `/connect/SERVER`.

A browser does not send the caller's key by itself, so the page asks for it. The sign-in then belongs to that user and
to that browser, which has a cookie. An answer of the issuer that another browser brings is refused. So nobody can end
a sign-in that somebody else began, and nobody can be led to sign in for somebody else.
"""

from __future__ import annotations

import hashlib
import secrets
from html import escape
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.authentication import AuthenticationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolscout.errors import SettingError, SignInError, ToolscoutError
from toolscout.gateway.auth.authentication import Authentication
from toolscout.gateway.auth.jwks import is_safe
from toolscout.gateway.identity import CALLER
from toolscout.gateway.pages import page
from toolscout.models import Caller
from toolscout.scout import Scout
from toolscout.settings import PREFIX, Settings

CALLBACK: Final = "/sign-in/callback"
CLIENT_DOCUMENT: Final = "/sign-in/client.json"
_MAX_FORM_BYTES = 16_384
_COOKIE_S = 900
_FORM = """<form method="post"><input type="hidden" name="check" value="{check}">
<p><label>Key or token <input name="key" type="password" autocomplete="off" required></label></p>
<p><button>Go on</button></p></form>"""
_LINK = '<p><a href="{link}" rel="noreferrer">Sign in at {host}</a></p>'


class ConnectPages:
    """Lets authenticated users sign in to the servers that each user signs in to."""

    def __init__(self, scout: Scout, settings: Settings, authentication: Authentication) -> None:
        """Take the gateway's public address from the settings. It must be https, except on this machine."""
        assert scout.servers.accounts is not None  # noqa: S101 - a scout has a store
        self._scout = scout
        self._accounts = scout.servers.accounts
        self._public = public_origin(settings)
        self._authentication = authentication
        https = self._public.startswith("https://")
        self._secure = https
        self._cookie = "__Host-toolscout" if https else "toolscout"
        self._document = f"{self._public}{CLIENT_DOCUMENT}" if https else None

    def routes(self) -> list[Route]:
        """Return the routes of the pages, and of the document that describes this client to issuers."""
        return [
            Route("/connect/{server}", self._ask, methods=["GET"]),
            Route("/connect/{server}", self._begin, methods=["POST"]),
            Route(CALLBACK, self._finish, methods=["GET"]),
            Route(CLIENT_DOCUMENT, self._describe, methods=["GET"]),
        ]

    async def _ask(self, request: Request) -> Response:
        """Ask for the user's key. The page is the same for every server, whether or not it exists."""
        browser = request.cookies.get(self._cookie) or secrets.token_urlsafe(32)
        form = _FORM.format(check=_check(browser))
        text = "Who are you? Enter the key or token that your agent uses for this gateway."
        response = page("Sign in to a server", text, form=form)
        response.set_cookie(
            self._cookie, browser, max_age=_COOKIE_S, secure=self._secure, httponly=True, samesite="lax", path="/"
        )
        return response

    async def _begin(self, request: Request) -> Response:
        browser = request.cookies.get(self._cookie, "")
        fields = await _read_form(request)
        if not browser or not secrets.compare_digest(fields.get("check", ""), _check(browser)):
            return page("This form has expired", "Open the link again.", status=403)
        caller = await self._verify(fields.get("key", ""))
        if caller is None:
            return page("This key is not valid", "Open the link again, and enter a valid one.", status=401)
        server = str(request.path_params["server"])
        config = self._scout.servers.config_of(server)
        reached = self._scout.narrow(caller).servers
        if config is None or not config.per_user or reached is None or server not in reached:
            return page("There is no such server", "You cannot sign in to it here.", status=404)
        try:
            pending = await self._accounts.begin(
                server,
                config,
                caller.scope,
                f"{self._public}{CALLBACK}",
                browser=_digest(browser),
                metadata_url=self._document,
            )
            await self._accounts.keep_pending(pending)
        except ToolscoutError as error:
            return page(f"You cannot sign in: {error.message}", error.hint, status=502)
        who = f"{caller.user or 'no user'} of {caller.tenant}"
        form = _LINK.format(link=escape(pending.link), host=escape(urlsplit(pending.link).netloc))
        return page(f"Sign in to {config.title}", f"The account will be used by {who}, and by nobody else.", form=form)

    async def _finish(self, request: Request) -> Response:
        pairs = parse_qsl(request.url.query, keep_blank_values=True)
        answer = dict(pairs)
        browser = request.cookies.get(self._cookie, "")
        if len(answer) != len(pairs) or not browser or not answer.get("state"):
            return page("This sign-in did not begin here", "Open the link again in this browser.", status=400)
        try:
            pending = await self._accounts.take_pending(answer["state"], _digest(browser))
            config = self._scout.servers.config_of(pending.server)
            if config is None or not config.per_user:
                raise SignInError("there is no such server any more", hint="ask the operator")
            account = await self._accounts.finish(config, pending, answer)
        except ToolscoutError as error:
            return page(f"You are not signed in: {error.message}", error.hint, status=400)
        if self._scout.sync is not None:
            await self._scout.sync.list_user(account.server, account.scope)
        return page(f"You are signed in to {account.server}", "You can close this page, and go back to your agent.")

    async def _describe(self, _request: Request) -> Response:
        """Describe this client to issuers that read such documents, where the gateway has an https address."""
        if self._document is None:
            return JSONResponse({}, status_code=404)
        document = {
            "client_id": self._document,
            "client_name": "Toolscout",
            "redirect_uris": [f"{self._public}{CALLBACK}"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return JSONResponse(document, headers={"Cache-Control": "max-age=300"})

    async def _verify(self, key: str) -> Caller | None:
        try:
            access = await self._authentication.verifier.verify_token(key)
        except AuthenticationError:
            return None
        if access is None or not set(self._authentication.scopes) <= set(access.scopes):
            return None
        caller = (access.claims or {}).get(CALLER)
        return caller if isinstance(caller, Caller) else None


def public_origin(settings: Settings) -> str:
    """Return the gateway's public address without a path, or "" if none is set."""
    if not settings.public_url:
        return ""
    parts = urlsplit(settings.public_url)
    if not is_safe(settings.public_url) or parts.path.strip("/") or parts.query:
        raise SettingError(
            f"{PREFIX}PUBLIC_URL is not an https address without a path",
            hint="write it as in https://tools.example.com. http is allowed on this machine only",
        )
    return f"{parts.scheme}://{parts.netloc}"


async def _read_form(request: Request) -> dict[str, str]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_FORM_BYTES:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace")))


def _check(browser: str) -> str:
    """Return what a form of this browser holds. Another site can neither read it nor set the cookie."""
    return hashlib.sha256(f"form {browser}".encode()).hexdigest()


def _digest(browser: str) -> str:
    return hashlib.sha256(f"browser {browser}".encode()).hexdigest()
