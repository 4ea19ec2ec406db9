"""One account as this process knows it: read from the store, or with tokens that the store does not have yet."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscout.config import ServerConfig
from toolscout.downstream.http_client import NoTokenError
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.downstream.sign_in.token_requests import is_of_issuer
from toolscout.errors import StoreError, ToolscoutError
from toolscout.models import Account, Scope

FRESH_S = 1.0
"""How long an account that was read is used without reading it again: another process may sign in or out."""


class KnownAccount:
    """The account of one user at one server.

    An issuer gives new tokens once. So they are used from memory until the store has taken them.
    """

    def __init__(self, accounts: AccountStore, scope: Scope, server: str, config: ServerConfig) -> None:
        self._accounts = accounts
        self._scope = scope
        self._server = server
        self._config = config
        self._read_at = -FRESH_S
        self._unstored: Account | None = None
        self._replaced = ""
        self.latest: Account | None = None
        """The account as it was read last, or None if nobody is signed in."""

    async def read(self, *, fresh: bool = True) -> Account | None:
        """Return the account, or None if nobody is signed in. Without `fresh`, it may be a second old."""
        if not fresh and time.monotonic() - self._read_at < FRESH_S:
            return self.latest
        try:
            stored = await self._accounts.find(self._scope, self._server)
        except ToolscoutError as error:
            if isinstance(error, StoreError) and self.latest is not None and not has_ended(self.latest):
                return self.latest
            raise self._unusable(error, "read") from error
        return self._take(stored)

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Hold the right to change the account, in all processes. Raise NoTokenError if the store fails."""
        try:
            async with self._accounts.changing(self._scope, self._server):
                yield
        except StoreError as error:
            raise self._unusable(error, "changed") from error

    def hold(self, account: Account, *, instead_of: Account) -> None:
        """Use an account from memory from now on. `store` puts it into the place of another."""
        if self._unstored is None:
            self._replaced = instead_of.access_token
        self._unstored = account
        self.latest, self._read_at = account, time.monotonic()

    async def store(self) -> Account | None:
        """Store the account that is held, and return the one that counts.

        One that was removed meanwhile stays removed, and one that somebody else has replaced stays as they left it.
        """
        account = self._take(await self._accounts.find(self._scope, self._server))
        if account is not None and account is self._unstored:
            await self._accounts.put(account)
            self._unstored = None
        return account

    def _take(self, stored: Account | None) -> Account | None:
        account = stored if stored is not None and fits(stored, self._config) else None
        if account is None or account.access_token != self._replaced:
            self._unstored = None
        self.latest, self._read_at = self._unstored or account, time.monotonic()
        return self.latest

    def _unusable(self, error: ToolscoutError, done: str) -> NoTokenError:
        return NoTokenError(
            f"the sign-in at {self._config.title} cannot be {done}: {error.message}; nothing was sent",
            hint=error.hint,
        )


def fits(account: Account, config: ServerConfig) -> bool:
    """Tell whether an account is for a server as its config is now: for its address, and from the issuer it names.

    A token is sent nowhere else, and one of another issuer is not used.
    """
    return account.url == config.url and is_of_issuer(account, config)


def is_due(account: Account) -> bool:
    """Tell whether a token should be renewed."""
    return account.renew_at is not None and time.time() >= account.renew_at


def has_ended(account: Account) -> bool:
    """Tell whether a token has expired."""
    return account.expires_at is not None and time.time() >= account.expires_at
