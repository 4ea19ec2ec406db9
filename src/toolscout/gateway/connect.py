"""The pages at which users of a gateway sign in to servers for themselves, and out again: `/connect/SERVER`.

A browser does not send the caller's key by itself, so the page asks for it, or leads to the issuer whose tokens the
gateway accepts. The sign-in then belongs to that user and to that browser, which has a cookie. An answer of the issuer
that another browser brings is refused. So nobody can end a sign-in that somebody else began, and nobody can be led to
sign in for somebody else.

Each server has a callback of its own. An issuer that passes a browser on to the issuer of another server does not get
that one's code (mix-up, RFC 9700).
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.authentication import AuthenticationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolscout.config import ServerConfig
from toolscout.errors import LimitError, SettingError, SignInError, ToolscoutError
from toolscout.gateway.auth.authentication import Authentication
from toolscout.gateway.auth.code_login import PendingLogin
from toolscout.gateway.auth.jwks import is_safe
from toolscout.gateway.caller_login import LOGIN_CALLBACK, CallerLogin
from toolscout.gateway.denied import note_reason
from toolscout.gateway.http_limits import Refusals
from toolscout.gateway.identity import CALLER
from toolscout.gateway.pages import page
from toolscout.gateway.visits import Visits, check_of, digest_of
from toolscout.models import Account, Caller
from toolscout.scout import Scout
from toolscout.settings import PREFIX, Settings

CALLBACK: Final = "/sign-in/callback/{server}"
CONSOLE_CALLBACK: Final = "/console/signed-in/{server}"
CLIENT_DOCUMENT: Final = "/sign-in/client/{server}.json"
_UNAUTHORIZED = 401
_KEY_FORM = """<form method="post"><input type="hidden" name="check" value="{check}">
<p><label>Key or token <input name="key" type="password" autocomplete="off" required></label></p>
<p><button>Go on</button></p></form>"""
_LINK = '<p><a href="{link}" rel="noreferrer">Sign in at {host}</a></p>'
_LOGIN_FORM = """<form method="post"><input type="hidden" name="check" value="{check}">
<p><button name="login" value="yes">Sign in at {host}</button></p></form>"""
_DISCONNECT_FORM = """<form method="post" action="/connect/{server}"><input type="hidden" name="check" value="{check}">
<input type="hidden" name="ticket" value="{ticket}"><p><button>Disconnect</button></p></form>"""


class ConnectPages:
    """Lets authenticated users sign in to the servers that each user signs in to."""

    def __init__(self, scout: Scout, settings: Settings, authentication: Authentication, refusals: Refusals) -> None:
        """Take the gateway's public address from the settings. It must be https, except on this machine."""
        assert scout.servers.accounts is not None  # noqa: S101 - a scout has a store
        self._scout = scout
        self._accounts = scout.servers.accounts
        self._public = public_origin(settings)
        self._authentication = authentication
        self._refusals = refusals
        self._https = self._public.startswith("https://")
        self._visits = Visits(self._accounts, https=self._https)
        self._login = CallerLogin.of(settings, self._visits, self._public)

    def routes(self) -> list[Route]:
        """Return the routes of the pages, and of the documents that describe this client to issuers."""
        return [
            Route("/connect/{server}", self._ask, methods=["GET"]),
            Route("/connect/{server}", self._answer, methods=["POST"]),
            Route(LOGIN_CALLBACK, self._finish_login, methods=["GET"]),
            Route(CALLBACK, self._finish, methods=["GET"]),
            Route(CLIENT_DOCUMENT, self._describe, methods=["GET"]),
        ]

    async def _ask(self, request: Request) -> Response:
        """Ask who the user is. The page is the same for every server, whether or not it exists."""
        browser = self._visits.begin(request)
        text = "Who are you? Enter the key or token that your agent uses for this gateway."
        form = _KEY_FORM.format(check=check_of(browser))
        if self._login is not None:
            text = "Who are you? Sign in, or enter the key or token that your agent uses for this gateway."
            form = _LOGIN_FORM.format(check=check_of(browser), host=escape(self._login.host)) + form
        response = page("Sign in to a server", text, form=form)
        self._visits.remember(response, browser)
        return response

    async def _answer(self, request: Request) -> Response:
        """Take a form: of a user who entered a key or wants to sign in instead, or of one who then disconnects."""
        fields, browser = await self._visits.read_form(request), self._visits.browser_of(request)
        if fields is None:
            return page("This form has expired", "Open the link again.", status=403)
        server = str(request.path_params["server"])
        if "ticket" in fields:
            return await self._disconnect(server, fields["ticket"], browser)
        if "login" in fields and self._login is not None:
            return await self._begin_login(request, self._login, server, browser)
        caller = await self._identify(request, fields.get("key", ""))
        return await self._begin(server, caller, browser) if isinstance(caller, Caller) else caller

    async def _begin_login(self, request: Request, login: CallerLogin, server: str, browser: str) -> Response:
        """Lead to the issuer that knows the gateway's users. The page is the same for every server."""
        if wait_s := self._refusals.wait_s(request.scope):
            return _too_many_failures(wait_s)
        try:
            link, cookie = await login.begin(server, browser)
        except ToolscoutError as error:
            self._refusals.note(request.scope)
            return page(f"You cannot sign in: {error.message}", error.hint, status=502)
        text = "This tells the gateway who you are. Then you sign in to the server."
        response = page("Who are you?", text, form=_link_to(link))
        login.remember(response, cookie)
        return response

    async def _finish_login(self, request: Request) -> Response:
        """Take the answer of that issuer, in the browser that began, and go on as with a key."""
        if wait_s := self._refusals.wait_s(request.scope):
            return _too_many_failures(wait_s)
        pairs = parse_qsl(request.url.query, keep_blank_values=True)
        answer, login = dict(pairs), self._login
        began = await login.server_of(request, answer) if login is not None else None
        if login is None or began is None or len(answer) != len(pairs):
            return page("This sign-in did not begin here", "Open the link again in this browser.", status=400)
        response = await self._end_login(request, login, *began, answer)
        login.forget(response)
        return response

    async def _end_login(
        self, request: Request, login: CallerLogin, server: str, pending: PendingLogin, answer: Mapping[str, str]
    ) -> Response:
        try:
            token = await login.finish(pending, answer)
        except ToolscoutError as error:
            self._refusals.note(request.scope)
            return page(f"You are not signed in: {error.message}", error.hint, status=400)
        caller = await self._identify(request, token)
        if isinstance(caller, Caller):
            return await self._begin(server, caller, self._visits.browser_of(request))
        if caller.status_code == _UNAUTHORIZED:
            text = "Ask the operator: its log says why."
            return page("This gateway does not accept your sign-in", text, status=_UNAUTHORIZED)
        return caller

    async def _begin(self, server: str, caller: Caller, browser: str) -> Response:
        config = self._config_for(caller, server)
        if config is None:
            return page("There is no such server", "You cannot sign in to it here.", status=404)
        if caller.user is None:
            text = f"Each user signs in to {config.title} for themselves. Ask the operator for a key of your own."
            return page("This key belongs to no user", text, status=403)
        account, disconnect = None, ""
        try:
            account = await self._accounts.usable(caller.scope, server, config)
            if account is not None:
                ticket = await self._visits.ticket(caller.scope, server, browser)
                disconnect = _DISCONNECT_FORM.format(
                    server=escape(quote(server, safe="")), check=check_of(browser), ticket=ticket
                )
            pending = await self._accounts.begin(
                server,
                config,
                caller.scope,
                self._public + CALLBACK.format(server=server),
                browser=digest_of(browser),
                metadata_url=self._public + CLIENT_DOCUMENT.format(server=server) if self._https else None,
            )
        except ToolscoutError as error:
            return page(f"You cannot sign in: {error.message}", error.hint, form=disconnect, status=502)
        who = f"{caller.user} of {caller.tenant}"
        link = _link_to(pending.link)
        if account is not None and not account.refused:
            text = f"{who} is signed in at {account.issuer}. Sign in again to use another account, or to allow more."
            return page(f"You are connected to {config.title}", text, form=link + disconnect)
        text = f"The account will be used by {who}, and by nobody else."
        return page(f"Sign in to {config.title}", text, form=link + disconnect)

    async def _disconnect(self, server: str, ticket: str, browser: str) -> Response:
        scope = await self._visits.user_of(ticket, server, browser)
        if scope is None:
            return page("This form has expired", "Open the link again.", status=403)
        revoked = await self._accounts.forget(scope, server, self._scout.servers.config_of(server))
        text = "Your tokens are deleted and revoked."
        if not revoked:
            text = "Your tokens are deleted here. The issuer did not revoke them: they end by themselves."
        return page(f"You are not connected to {server} any more", text)

    async def _finish(self, request: Request) -> Response:
        pairs = parse_qsl(request.url.query, keep_blank_values=True)
        answer, browser = dict(pairs), self._visits.browser_of(request)
        if len(answer) != len(pairs) or not browser or not answer.get("state"):
            return page("This sign-in did not begin here", "Open the link again in this browser.", status=400)
        server = str(request.path_params["server"])
        try:
            redirect_uri = self._public + CALLBACK.format(server=server)
            account = await finish_sign_in(self._scout, server, answer, digest_of(browser), redirect_uri)
        except ToolscoutError as error:
            return page(f"You are not signed in: {error.message}", error.hint, status=400)
        return page(f"You are signed in to {account.server}", "You can close this page, and go back to your agent.")

    async def _describe(self, request: Request) -> Response:
        """Describe this client to issuers that read such documents, where the gateway has an https address.

        There is a document for every name, whether or not there is such a server.
        """
        if not self._https:
            return JSONResponse({}, status_code=404)
        server = str(request.path_params["server"])
        document = {
            "client_id": self._public + CLIENT_DOCUMENT.format(server=server),
            "client_name": "Toolscout",
            "redirect_uris": [self._public + path.format(server=server) for path in (CALLBACK, CONSOLE_CALLBACK)],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return JSONResponse(document, headers={"Cache-Control": "max-age=300"})

    def _config_for(self, caller: Caller, server: str) -> ServerConfig | None:
        """Return the config of a server that the caller may sign in to."""
        config = self._scout.servers.config_of(server)
        return config if config and config.users_sign_in and may_reach(self._scout, caller, server) else None

    async def _identify(self, request: Request, key: str) -> Caller | Response:
        """Return the owner of a key, or the page that refuses it. It is held to the limits that `/mcp` has."""
        wait_s = self._refusals.wait_s(request.scope)
        if not (wait_s and self._authentication.verifier.asks_store(key)):
            try:
                caller = await self._verify(key)
            except AuthenticationError:
                return page("Your key cannot be checked now", "Try again in a moment.", status=503)
            if caller is not None:
                try:
                    self._scout.access.count_request(caller)
                except LimitError as error:
                    note_reason(error.message)
                    return page(error.message, error.hint, retry_after_s=error.details["retry_after_s"])
                return caller
            self._refusals.note(request.scope)
        if wait_s:
            note_reason("too many wrong keys came from this address")
            return page("Too many wrong keys came from this address", "Try again later.", retry_after_s=wait_s)
        return page("This key is not valid", "Open the link again, and enter a valid one.", status=_UNAUTHORIZED)

    async def _verify(self, key: str) -> Caller | None:
        access = await self._authentication.verifier.verify_token(key)
        if access is None or not set(self._authentication.scopes) <= set(access.scopes):
            return None
        caller = (access.claims or {}).get(CALLER)
        return caller if isinstance(caller, Caller) else None


def _too_many_failures(wait_s: int) -> Response:
    note_reason("too many failed sign-ins came from this address")
    return page("Too many failed sign-ins came from this address", "Try again later.", retry_after_s=wait_s)


def _link_to(link: str) -> str:
    return _LINK.format(link=escape(link), host=escape(urlsplit(link).netloc))


def may_reach(scout: Scout, caller: Caller, server: str) -> bool:
    """Return whether a server is there for the caller's tenant, and no rule denies it to the caller."""
    live, reached = scout.servers.get(server), scout.narrow(caller).servers
    return (
        live is not None
        and reached is not None
        and server in reached
        and not scout.access.denies_server(caller, live.server)
    )


async def finish_sign_in(
    scout: Scout, server: str, answer: Mapping[str, str], browser: str, redirect_uri: str
) -> Account:
    """End a sign-in with the issuer's answer, and use the account at once. `browser` is the digest of its cookie."""
    accounts = scout.servers.accounts
    assert accounts is not None  # noqa: S101 - a scout has a store
    pending = await accounts.pending.take(answer["state"], browser)
    if pending.redirect_uri != redirect_uri:
        raise SignInError("this answer belongs to another server", hint="this can be an attack: begin again")
    config = scout.servers.config_of(server)
    if config is None or config.users_sign_in is (pending.scope.owner is None):
        raise SignInError("there is no such server any more", hint="ask the operator")
    account = await accounts.finish(config, pending, answer)
    if config.users_sign_in and scout.sync is not None:
        await scout.sync.list_user(account.server, account.scope)
    elif not config.users_sign_in:
        await scout.servers.restart(server)
    return account


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
