"""Tokens for a server in exchange for the tokens of callers: RFC 8693, or on-behalf-of as Microsoft's issuers have it.

A caller's token goes to the issuer that the operator names, and to nobody else: not to the server, and not to an issuer
that the server names. What comes back is kept in memory only, and used for calls that come with the same token.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator

import httpx2
from cachetools import TTLCache
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import OAuthToken
from mcp.shared.auth_utils import resource_url_from_server_url

from toolscout.config import OAuthConfig, ServerConfig
from toolscout.downstream.http_client import NoTokenError
from toolscout.downstream.sign_in.issuers import IssuerClient, authorization_server, secret_method
from toolscout.downstream.sign_in.token_requests import TokenRefusedError, post_as, read_token, times_of
from toolscout.errors import NotAllowedError, SignInError
from toolscout.models import Caller, Scope
from toolscout.settings import PREFIX, Settings

_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a type
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_BEHALF = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_AFTER_FAILURE_S = 5.0
_AFTER_REFUSAL_S = 60.0
_MAX_TOKENS = 4_096
_KEPT_S = 600.0


class ExchangeRefusedError(NoTokenError):
    """The issuer gives no token for a caller. The same call will be refused again."""


class TokenExchange:
    """Asks the operator's issuer for tokens of one server."""

    def __init__(self, config: ServerConfig, settings: Settings) -> None:
        self.title = config.title
        self._config = config
        self._settings = settings
        self._found: tuple[str, str | None] | None = None

    async def request(self, subject: str | None, scope: str) -> OAuthToken:
        """Return a token in exchange for that of a caller, or one of the gateway's own without one.

        Raise NoTokenError if there is none. The issuer must not give back what it got: that would be forwarded.
        """
        oauth = self._config.oauth
        assert oauth is not None  # noqa: S101 - without it, nothing is exchanged
        try:
            async with IssuerClient(self._config, self._settings) as http:
                endpoint, method = await self._endpoint(http, oauth)
                client = {"client_id": oauth.client_id, "token_endpoint_auth_method": method}
                token = read_token(http, await post_as(http, client, endpoint, self._form(oauth, subject, scope)))
        except TokenRefusedError as error:
            raise ExchangeRefusedError(
                f"{error.message}; nothing was sent to the server",
                hint="its operator has to allow the exchange for this client, or this user the access",
            ) from error
        except SignInError as error:
            self._found = None
            raise NoTokenError(f"{error.message}; nothing was sent to the server", hint=error.hint) from error
        if token.access_token == subject:
            raise ExchangeRefusedError(
                f"the issuer of {self.title} gave back the caller's token, which is never forwarded",
                hint="the operator has to set the `audience` of the server",
            )
        return token

    async def _endpoint(self, http: IssuerClient, oauth: OAuthConfig) -> tuple[str, str | None]:
        """Return the token endpoint and how the client authenticates there. Only the operator decides where it is."""
        if oauth.token_url:
            return oauth.token_url, None
        if self._found is None:
            issuer = oauth.issuer or self._settings.auth_issuer
            if not issuer:
                raise SignInError(
                    f"no issuer exchanges tokens for {self.title}",
                    hint=f'set {PREFIX}AUTH_ISSUER, or issuer or token_url in its "oauth" object',
                )
            metadata, _ = await authorization_server(http, issuer, signs_in=False)
            self._found = str(metadata.token_endpoint), secret_method(metadata)
        return self._found

    def _form(self, oauth: OAuthConfig, subject: str | None, scope: str) -> dict[str, str]:
        form = {"scope": scope} if scope else {}
        if oauth.grant_type == "token_exchange":
            named = {"audience": oauth.audience} if oauth.audience else {}
            form |= named or {"resource": resource_url_from_server_url(self._config.url)}
        if subject is None:
            return {**form, "grant_type": "client_credentials"}
        if oauth.grant_type == "on_behalf_of":
            return {**form, "grant_type": _BEHALF, "assertion": subject, "requested_token_use": "on_behalf_of"}
        return {
            **form,
            "grant_type": _EXCHANGE,
            "subject_token": subject,
            "subject_token_type": _ACCESS_TOKEN,
            "requested_token_type": _ACCESS_TOKEN,
        }


class CallerToken:
    """The token of one caller at one server, or of the gateway itself. One request for it runs at a time."""

    def __init__(self, exchange: TokenExchange, subject: str | None, scopes: tuple[str, ...]) -> None:
        """Take the caller's own token, or None for the gateway, and the scopes to ask for."""
        self._exchange = exchange
        self._subject = subject
        self._scope = " ".join(scopes)
        self._granted = ""
        self._token = ""
        self._expires_at: float | None = None
        self._renew_at: float | None = None
        self._lock = asyncio.Lock()
        self._failure: NoTokenError | None = None
        self._failed_until = 0.0

    @property
    def subject_digest(self) -> str:
        """What stands for the caller's own token."""
        return hashlib.sha256((self._subject or "").encode()).hexdigest()

    async def current(self) -> str:
        """Return a token that is valid for a while. Raise NoTokenError if there is none."""
        token, now = self._token, time.time()
        if token and (self._renew_at is None or now < self._renew_at):
            return token
        try:
            return await self.renew(token)
        except ExchangeRefusedError:
            raise
        except NoTokenError:
            if not token or (self._expires_at is not None and now >= self._expires_at):
                raise
            return token  # the issuer is down, but the token is still valid

    async def renew(self, old: str) -> str:
        """Return another token than `old`."""
        async with self._lock:
            return await self._request(self._scope) if self._token == old else self._token

    async def widen(self, old: str, more: str) -> str | None:
        """Return another token than `old`, for more scopes. Return None if they were asked for before."""
        async with self._lock:
            if self._token != old:
                return self._token
            scope = union_scopes(union_scopes(self._scope, self._granted), more) or ""
            if scope == self._scope:
                return None
            token, self._scope = await self._request(scope), scope
            return token

    async def _request(self, scope: str) -> str:
        if self._failure is not None and time.monotonic() < self._failed_until:
            raise self._failure
        try:
            given = await self._exchange.request(self._subject, scope)
        except NoTokenError as error:
            self._fail(error, _AFTER_FAILURE_S)
            raise
        self._token, self._granted = given.access_token, given.scope or self._granted
        self._expires_at, self._renew_at = times_of(given)
        return self._token

    def note_useless(self, token: str) -> NoTokenError:
        """Record that the server refuses a new token, so that not every call asks for another one."""
        error = ExchangeRefusedError(
            f"{self._exchange.title} refuses the token that its issuer gave",
            hint="the operator has to correct its `audience` or `scopes`",
        )
        if token == self._token:
            self._fail(error, _AFTER_REFUSAL_S)
        return error

    def texts(self) -> list[str]:
        """Return the tokens that a server may quote."""
        return [text for text in (self._token, self._subject) if text]

    def _fail(self, error: NoTokenError, lasts_s: float) -> None:
        self._failure, self._failed_until = error, time.monotonic() + lasts_s


class ExchangedTokens:
    """The tokens of callers at one server, for a while. Each belongs to the token that it was given for."""

    def __init__(self, config: ServerConfig, settings: Settings) -> None:
        self._exchange = TokenExchange(config, settings)
        self._scopes = config.oauth.scopes if config.oauth else ()
        self._tokens: TTLCache[tuple[Scope, str], CallerToken] = TTLCache(_MAX_TOKENS, _KEPT_S)

    async def of(self, caller: Caller) -> CallerToken:
        """Return the token of a caller, which is valid now. Raise NotAllowedError if the issuer gives them none."""
        if caller.token is None:
            raise NotAllowedError(
                f"{self._exchange.title} gets a token in exchange for the caller's, and this call has none; nothing "
                "was sent",
                hint="use this gateway with a token of its issuer, not with an API key",
            )
        key = caller.scope, caller.token
        token = self._tokens.get(key)
        if token is None:
            token = self._tokens[key] = CallerToken(self._exchange, caller.token, self._scopes)
        try:
            await token.current()
        except ExchangeRefusedError as error:
            raise NotAllowedError(error.message, hint=error.hint) from error
        return token

    def own(self) -> CallerToken:
        """Return the gateway's own token, which it lists tools with."""
        return CallerToken(self._exchange, None, self._scopes)


class CallerAuth(httpx2.Auth):
    """Adds the token of a caller to every request.

    A request is sent again only if the server refused it: with 401, or with 403 because the token allows too little.
    """

    def __init__(self, token: CallerToken) -> None:
        self._token = token

    def texts(self) -> list[str]:
        """Return the tokens that the server may quote."""
        return self._token.texts()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Authorize one request."""
        sent = _authorize(request, await self._token.current())
        response = yield request
        if response.status_code == _UNAUTHORIZED:
            sent = _authorize(request, await self._token.renew(sent))
            response = yield request
            if response.status_code == _UNAUTHORIZED:
                raise self._token.note_useless(sent)
        if response.status_code == _FORBIDDEN and (more := _wanted(response)):
            wider = await self._token.widen(sent, more)
            if wider is not None:
                _authorize(request, wider)
                yield request


def _authorize(request: httpx2.Request, token: str) -> str:
    request.headers["Authorization"] = f"Bearer {token}"
    return token


def _wanted(response: httpx2.Response) -> str:
    """Return the scopes that a server wants besides, or ""."""
    insufficient = extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return (extract_scope_from_www_auth(response) or "") if insufficient else ""
