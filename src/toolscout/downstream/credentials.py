"""The tokens that requests to one server carry: of an account, in exchange for the caller's, or the gateway's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Final

import httpx2

from toolscout.config import ServerConfig
from toolscout.downstream.oauth import GatewayTokenAuth
from toolscout.downstream.sign_in.account_auth import AccountAuth
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.downstream.sign_in.account_tokens import AccountTokens, how_to_sign_in
from toolscout.downstream.token_exchange import CallerAuth, ExchangedTokens
from toolscout.errors import NotAllowedError
from toolscout.models import Caller, Scope
from toolscout.settings import Settings

MAX_USERS: Final = 4_096
"""How many users' accounts at a server are kept in memory. Those of others are read from the store when they call."""


class ServerCredentials:
    """Finds the token of a caller at one server. Without accounts, nobody is signed in."""

    def __init__(
        self,
        key: str,
        config: ServerConfig,
        settings: Settings,
        accounts: AccountStore | None,
        on_sign_in: Callable[[], None],
    ) -> None:
        """Take the server's slug and config. `on_sign_in` is called when somebody signed in for all callers."""
        self._key = key
        self._config = config
        self._settings = settings
        self._accounts = accounts
        self._on_sign_in = on_sign_in
        self._tokens: dict[Scope, AccountTokens] = {}
        self._exchanged = ExchangedTokens(config, settings)

    @property
    def each_caller(self) -> bool:
        """Whether each caller has a token of their own."""
        return self._config.per_user or self._config.exchanges_tokens

    @property
    def hint(self) -> str:
        """What a person does to sign in."""
        return how_to_sign_in(self._key, self._config, self._settings)

    def shared(self) -> AccountTokens | None:
        """Return the tokens of the account that all callers share, if people sign in."""
        return self._tokens_of(Scope())

    def own_auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Return what adds the token that all callers share, or that the gateway lists tools with."""
        tokens = self.shared()
        if tokens is not None and config.allows_sign_in:
            return AccountAuth(tokens)
        if config.exchanges_tokens:
            return CallerAuth(self._exchanged.own())
        if config.oauth is not None and config.oauth.grant_type == "client_credentials":
            return GatewayTokenAuth(config, config.oauth, self._settings)
        return None

    async def of(self, caller: Caller) -> tuple[httpx2.Auth | None, str]:
        """Return what adds a caller's own token, which is valid now, and what stands for the sign-in behind it."""
        if self._config.per_user and caller.user is None:
            raise NotAllowedError(
                f"each user signs in to {self._config.title}, and this call comes from no user; nothing was sent",
                hint="use a key or token that names a user, or remove `per_user` from the config of the server",
            )
        if self._config.exchanges_tokens:
            token = await self._exchanged.of(caller)
            return CallerAuth(token), token.subject_digest
        tokens = self._tokens_of(caller.scope) if self._config.per_user else None
        if tokens is None:
            return None, ""
        account = await tokens.current() or await tokens.current(fresh=True)
        if account is None or account.refused:
            raise tokens.sign_in_required(account.refused if account else "")
        return AccountAuth(tokens), str(account.signed_in_at)

    async def missing_sign_in(self, scope: Scope) -> str:
        """Return what a user does to sign in for themselves, or "" if they have, or if nobody does here."""
        tokens = self._tokens_of(scope) if self._config.users_sign_in and self._config.enabled else None
        return self.hint if tokens is not None and await tokens.lacks_account() else ""

    async def close(self) -> None:
        """Give renewals some time to end."""
        await asyncio.gather(*(tokens.close() for tokens in self._tokens.values()))

    def _tokens_of(self, scope: Scope) -> AccountTokens | None:
        """Return the tokens of an account: that of everybody, or of one user."""
        if self._accounts is None or not self._config.allows_sign_in:
            return None
        tokens = self._tokens.pop(scope, None)
        if tokens is None:
            on_sign_in = self._on_sign_in if scope == Scope() else lambda: None
            tokens = AccountTokens(
                self._accounts, scope, self._key, self._config, self._settings, on_sign_in=on_sign_in
            )
        self._tokens[scope] = tokens  # those that were asked for last are at the end
        self._forget_idle()
        return tokens

    def _forget_idle(self) -> None:
        """Forget the users who called longest ago, if there are many. What is in memory alone is not lost."""
        if len(self._tokens) <= MAX_USERS:
            return
        oldest = islice(self._tokens.items(), len(self._tokens) - MAX_USERS)
        for scope in [scope for scope, tokens in oldest if scope != Scope() and not tokens.renewing]:
            del self._tokens[scope]
