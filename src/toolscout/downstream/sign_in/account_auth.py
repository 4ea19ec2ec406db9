"""Authorizes requests to a server with the token of an account, and renews it: one renewal at a time, everywhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace

import httpx2
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    union_scopes,
)

from toolscout.config import ServerConfig
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.downstream.sign_in.issuers import IssuerClient, names_issuer
from toolscout.downstream.sign_in.token_requests import FINAL, TokenRefusedError, refresh
from toolscout.errors import ServerUnavailableError, SignInError, SignInRequiredError, StoreError, ToolscoutError
from toolscout.models import Account, Scope
from toolscout.settings import Settings

_FRESH_S = 1.0
"""How long an account that was read is used without reading it again: another process may sign in or out."""

_AFTER_FAILURE_S = 5.0
_AFTER_REFUSAL_S = 60.0
_USELESS = "it refuses the token that its issuer gave"
_UNAUTHORIZED = 401
_FORBIDDEN = 403


class AccountTokens:
    """The account of one user at one server, shared by all requests that are sent for this user."""

    def __init__(
        self, accounts: AccountStore, scope: Scope, server: str, config: ServerConfig, settings: Settings
    ) -> None:
        self._accounts = accounts
        self._scope = scope
        self._server = server
        self._config = config
        self._settings = settings
        self._account: Account | None = None
        self._read_at = -_FRESH_S
        self._renewing = asyncio.Lock()
        self._failed_at = -_AFTER_FAILURE_S
        self._refused = ""
        self._refused_at = 0.0

    async def current(self, *, fresh: bool = False) -> Account | None:
        """Return the account with a token that is valid for a while, or None if nobody is signed in.

        With `fresh`, it is read again.
        """
        if fresh or time.monotonic() - self._read_at >= _FRESH_S:
            await self._read()
        account = self._account
        if account is None or account.refused or not account.refresh_token or not _is_due(account):
            return account
        try:
            return await self.renew(account)
        except ServerUnavailableError as error:
            if isinstance(error, SignInRequiredError) or _has_ended(account):
                raise
            return account  # the issuer is down, but the token is still valid

    def texts(self) -> list[str]:
        """Return the tokens of the account as it was read last."""
        account = self._account
        return [text for text in (account.access_token, account.refresh_token) if text] if account else []

    async def renew(self, old: Account) -> Account:
        """Return an account with another token than that of `old`. Raise SignInRequiredError if there is none."""
        async with self._renewing:
            if old.access_token == self._refused and time.monotonic() - self._refused_at < _AFTER_REFUSAL_S:
                raise self.sign_in_required(_USELESS)
            account = await self._renewed_by_another(old)
            if account is None:
                if time.monotonic() - self._failed_at < _AFTER_FAILURE_S:
                    raise self._issuer_down()
                async with self._accounts.changing(self._scope, self._server):
                    account = await self._renewed_by_another(old) or await self._renew(old)
            return account

    def note_refused(self, account: Account) -> SignInRequiredError:
        """Record that the server refuses a token that was just renewed, so that not every call renews it again."""
        self._refused, self._refused_at = account.access_token, time.monotonic()
        return self.sign_in_required(_USELESS)

    async def note_wanted(self, scope: str | None) -> SignInRequiredError:
        """Record that the server wants more scopes. The next sign-in requests them too."""
        async with self._renewing, self._accounts.changing(self._scope, self._server):
            account = await self._read()
            if account is not None and scope:
                wanted = union_scopes(account.wanted, scope) or ""
                if wanted != account.wanted:
                    await self._put(replace(account, wanted=wanted))
        return self.sign_in_required("it wants you to allow more")

    def sign_in_required(self, why: str = "") -> SignInRequiredError:
        """Return the error that tells the person how to sign in."""
        return SignInRequiredError(
            f"{self._config.title} needs you to sign in{': ' + why if why else ''}; nothing was sent",
            hint=how_to_sign_in(self._server, self._config, self._settings),
            details={"server": self._server},
        )

    async def signed_in(self) -> None:
        """Wait until there is an account that can be tried, other than the one that failed, but at most a minute."""
        failed, ends = self._account, time.monotonic() + _AFTER_REFUSAL_S
        while time.monotonic() < ends:
            if self._account is not None and not self._account.refused and self._account != failed:
                return
            await asyncio.sleep(_FRESH_S)
            with suppress(ServerUnavailableError):
                await self._read()

    async def says_where_to_sign_in(self, refusal: httpx2.Response) -> bool:
        """Return whether a server that refused a request says, by its header or its metadata, where to sign in."""
        async with IssuerClient(self._config, self._settings) as client:
            return await names_issuer(client, refusal)

    async def _renewed_by_another(self, old: Account) -> Account | None:
        """Return the stored account if it has another token than `old`: another task or replica has renewed it."""
        account = await self._read()
        if account is None:
            raise self.sign_in_required()
        if account.refused:
            raise self.sign_in_required(account.refused)
        return account if account.access_token != old.access_token else None

    async def _renew(self, old: Account) -> Account:
        try:
            async with IssuerClient(self._config, self._settings) as client:
                account = await refresh(client, self._account or old)
        except TokenRefusedError as error:
            if error.error not in FINAL:
                raise self._issuer_down() from error
            # Another process without the lease may have used the refresh token first. Its tokens count then.
            repaired = await self._renewed_by_another(old)
            if repaired is not None:
                return repaired
            why = "the issuer does not renew it any more" if old.refresh_token else "its token was refused"
            await self._put(replace(self._account or old, refused=why))
            raise self.sign_in_required(why) from error
        except SignInError as error:
            self._failed_at = time.monotonic()
            raise self._issuer_down() from error
        await self._put(account)
        return account

    def _issuer_down(self) -> ServerUnavailableError:
        return ServerUnavailableError(
            f"the sign-in at {self._config.title} cannot be renewed now: its issuer does not answer; nothing was sent",
            hint="try again later",
        )

    async def _read(self) -> Account | None:
        try:
            account = await self._accounts.find(self._scope, self._server)
        except ToolscoutError as error:
            if isinstance(error, StoreError) and self._account is not None and not _has_ended(self._account):
                return self._account
            raise ServerUnavailableError(
                f"the sign-in at {self._config.title} cannot be read: {error.message}; nothing was sent",
                hint=error.hint,
            ) from error
        # A token is sent to the address that it was given for, whatever the config says now.
        self._account = account if account is not None and account.url == self._config.url else None
        self._read_at = time.monotonic()
        return self._account

    async def _put(self, account: Account) -> None:
        await self._accounts.put(account)
        self._account, self._read_at = account, time.monotonic()


class AccountAuth(httpx2.Auth):
    """Adds the token of an account to every request. A request is sent again only if the server refused it with 401."""

    def __init__(self, tokens: AccountTokens) -> None:
        self._tokens = tokens

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Authorize one request."""
        tokens = self._tokens
        account = _authorize(request, await tokens.current(), tokens)
        response = yield request
        if response.status_code == _UNAUTHORIZED and account is None:
            # Somebody may have signed in a moment ago.
            account = _authorize(request, await tokens.current(fresh=True), tokens)
            if account is not None:
                response = yield request
            elif await tokens.says_where_to_sign_in(response):
                raise tokens.sign_in_required()
        if response.status_code == _UNAUTHORIZED and account is not None:
            account = _authorize(request, await tokens.renew(account), tokens)
            response = yield request
            if response.status_code == _UNAUTHORIZED and account is not None:
                raise tokens.note_refused(account)
        wants_more = extract_field_from_www_auth(response, "error") == "insufficient_scope"
        if response.status_code == _FORBIDDEN and account is not None and wants_more:
            raise await tokens.note_wanted(extract_scope_from_www_auth(response))


def _authorize(request: httpx2.Request, account: Account | None, tokens: AccountTokens) -> Account | None:
    """Add the token of an account to a request. Raise SignInRequiredError if the account is of no use any more."""
    if account is not None and account.refused:
        raise tokens.sign_in_required(account.refused)
    if account is not None:
        request.headers["Authorization"] = f"Bearer {account.access_token}"
    return account


def how_to_sign_in(server: str, config: ServerConfig, settings: Settings) -> str:
    """Return what a person does to sign in to a server."""
    if config.per_user and settings.public_url:
        return f"open {connect_url(server, settings)} and sign in"
    return f"run `toolscout login {server}`"


def connect_url(server: str, settings: Settings) -> str:
    """Return the page of the gateway at which a user signs in to a server."""
    return f"{settings.public_url.rstrip('/')}/connect/{server}"


def _is_due(account: Account) -> bool:
    return account.renew_at is not None and time.time() >= account.renew_at


def _has_ended(account: Account) -> bool:
    return account.expires_at is not None and time.time() >= account.expires_at
