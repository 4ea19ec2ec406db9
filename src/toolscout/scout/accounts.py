"""Accounts at servers: people sign in and out, and see where they are signed in. Each change leaves an audit line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from toolscout.config import Config, ServerConfig
from toolscout.errors import SettingError, SignInError, UnknownServerError, UnreadableAccountError
from toolscout.models import ACCOUNT_KIND, Account, Scope, UnreadableAccount
from toolscout.ports import Store
from toolscout.scout.pending_sign_ins import PendingSignIns, name_of
from toolscout.scout.registered_clients import RegisteredClients
from toolscout.scout.revocations import Revocations
from toolscout.settings import Settings
from toolscout.suggestions import did_you_mean
from toolscout.telemetry import AuditLog
from toolscout.tool_keys import assign_slugs

if TYPE_CHECKING:
    from toolscout.downstream.sign_in.account_store import AccountStore, Resealed
    from toolscout.downstream.sign_in.device_code import DeviceCode
    from toolscout.downstream.sign_in.flow import Client, PendingSignIn
    from toolscout.downstream.sign_in.issuers import Issuer, IssuerClient
    from toolscout.token_keys import TokenKeys

_ASK_S = 5.0


class Accounts:
    """The accounts of all tenants and users."""

    def __init__(self, store: Store, settings: Settings, audit: AuditLog) -> None:
        self._store = store
        self._settings = settings
        self._audit = audit
        self.revocations = Revocations()
        """The tokens of removed accounts that are being revoked."""

    @cached_property
    def stored(self) -> AccountStore:
        """The accounts in the store."""
        from toolscout.downstream.sign_in.account_store import AccountStore

        return AccountStore(self._store, self._keys.cipher)

    @cached_property
    def pending(self) -> PendingSignIns:
        """The sign-ins that have begun."""
        return PendingSignIns(self.stored)

    @cached_property
    def clients(self) -> RegisteredClients:
        """The clients that were registered with issuers."""
        return RegisteredClients(self.stored)

    @cached_property
    def _keys(self) -> TokenKeys:
        from toolscout.token_keys import TokenKeys

        return TokenKeys(self._settings)

    async def slugs(self, config: Config) -> dict[str, ServerConfig]:
        """Return the servers of a config by the slugs that a gateway on this store gives them."""
        titles = {server.key: server.title for server in await self._store.servers(Scope())}
        by_title = {server.title: server for server in config.servers}
        return {slug: by_title[title] for title, slug in assign_slugs(by_title, titles).items()}

    async def pages(self, config: Config) -> dict[str, str]:
        """Return by slug the pages at which users sign in for themselves, or "" without a public address."""
        from toolscout.downstream.sign_in.account_tokens import connect_url

        slugs = [slug for slug, server in (await self.slugs(config)).items() if server.users_sign_in]
        return {slug: connect_url(slug, self._settings) if self._settings.public_url else "" for slug in slugs}

    def how_to_sign_in(self, server: str, config: ServerConfig) -> str:
        """Return what a person does to sign in to a server."""
        from toolscout.downstream.sign_in.account_tokens import how_to_sign_in

        return how_to_sign_in(server, config, self._settings)

    async def find_server(self, config: Config, name: str) -> tuple[str, ServerConfig]:
        """Return the slug and the config of a server that people can sign in to, by its slug or its title."""
        servers = await self.slugs(config)
        found = next((slug for slug, server in servers.items() if name in (slug, server.title)), None)
        if found is None:
            raise UnknownServerError(
                f"no server of the config is called {name!r}",
                hint="name it as in the config file, or name the file with --config",
                suggestions=did_you_mean(name, list(servers)),
            )
        if not servers[found].allows_sign_in:
            raise SignInError(
                f"nobody signs in to {name}", hint="it is a command, or its config already holds its credentials"
            )
        return found, servers[found]

    async def begin(
        self,
        server: str,
        config: ServerConfig,
        scope: Scope,
        redirect_uri: str,
        *,
        browser: str = "",
        metadata_url: str | None = None,
    ) -> PendingSignIn:
        """Begin a sign-in: find the issuer, and register with it where needed. `link` is what the person opens."""
        from toolscout.downstream.sign_in import flow
        from toolscout.downstream.sign_in.issuers import IssuerClient, challenge_of, discover

        await self.pending.check_key()
        async with IssuerClient(config, self._settings) as client:
            issuer = await discover(client, await challenge_of(client))
            before = await self.usable(scope, server, config)
            known = flow.known_client(client, issuer, redirect_uri, metadata_url)
            known = known or await self._registered(client, issuer, server, redirect_uri, before)
        pending = flow.begin(
            issuer,
            known,
            scope=scope,
            server=server,
            config=config,
            redirect_uri=redirect_uri,
            before=before,
            browser=browser,
        )
        await self.pending.keep(pending)
        return pending

    async def finish(self, config: ServerConfig, pending: PendingSignIn, answer: Mapping[str, str]) -> Account:
        """End a sign-in with the issuer's answer, and store the account, unless its user or server was removed."""
        from toolscout.downstream.sign_in import flow
        from toolscout.downstream.sign_in.issuers import IssuerClient

        try:
            async with IssuerClient(config, self._settings) as client:
                account = await flow.finish(client, pending, answer)
            await self.clients.note_end(account, pending.redirect_uri)
            await self._put(account, config, name_of(pending))
        finally:
            await self.pending.end(pending.scope, name_of(pending))
        return account

    async def users_of(self, server: str) -> list[Scope]:
        """Return which users have accounts at a server."""
        return [scope for scope, _ in await self.find_places(server) if scope.owner is not None]

    async def sign_in_with_device(
        self, server: str, config: ServerConfig, scope: Scope, show: Callable[[DeviceCode], None]
    ) -> Account:
        """Sign in with a code that the person enters on another device. `show` gets it. Waits for the person."""
        from toolscout.downstream.sign_in import flow
        from toolscout.downstream.sign_in.device_code import GRANT, LONGEST_S, REDIRECT, sign_in_with_device
        from toolscout.downstream.sign_in.issuers import IssuerClient, challenge_of, discover

        name = await self.pending.keep_device(scope, server, 2 * LONGEST_S)
        try:
            async with IssuerClient(config, self._settings) as client:
                issuer = await discover(client, await challenge_of(client))
                before = await self.usable(scope, server, config)
                known = flow.known_client(client, issuer, REDIRECT)
                known = known or await self._registered(client, issuer, server, REDIRECT, before, GRANT)
                account = await sign_in_with_device(
                    client, issuer, known, scope=scope, server=server, before=before, show=show
                )
            await self.clients.note_end(account, REDIRECT)
            await self._put(account, config, name)
        finally:
            await self.pending.end(scope, name)
        return account

    async def sign_out(self, account: Account | UnreadableAccount, config: ServerConfig | None) -> bool:
        """Remove an account, and revoke its tokens. Return whether the issuer revoked them."""
        return await self.forget(account.scope, account.server, config)

    async def forget(self, scope: Scope, server: str, config: ServerConfig | None = None) -> bool:
        """Remove whatever account a user has at a server, and revoke its tokens. Return whether the issuer did.

        Without the server's config, an issuer at a private address is not asked.
        """
        account = await self._take_away(scope, server)
        return account is not None and await self._revoke(account, config)

    async def forget_and_revoke_later(self, scope: Scope, server: str, config: ServerConfig | None = None) -> None:
        """Remove whatever account a user has at a server, and begin to revoke its tokens."""
        account = await self._take_away(scope, server)
        if account is not None:
            self.revocations.begin(partial(self._revoke, account, config))

    async def _take_away(self, scope: Scope, server: str) -> Account | None:
        """Remove whatever account a user has at a server, and return it with tokens that are to be revoked.

        It is removed at once, and again when a renewal has ended that was about to store new tokens. A sign-in that
        has begun stores none.
        """
        account = await self._readable(scope, server)
        if await self._remove(scope, server):
            self._audit.write_act("accounts.sign_out", scope, server=server)
        async with self.stored.changing(scope, server):
            account = await self._readable(scope, server) or account
            await self._remove(scope, server)
        return account

    async def find_all_places(self, server: str = "", scope: Scope | None = None) -> set[tuple[Scope, str]]:
        """Return who has an account where, or is signing in there now: at one server, of one user, or all."""
        begun = await self.pending.find_places(server, scope)
        return {*await self.find_places(server, scope), *begun}

    async def find_places(self, server: str = "", scope: Scope | None = None) -> list[tuple[Scope, str]]:
        """Return whose accounts there are at which servers: at one of them, of one user, or all."""
        prefix = f"{server} " if server else ""
        records = await self._store.records(ACCOUNT_KIND, scope, prefix)
        return [(record.scope, record.name.partition(" ")[0]) for record in records]

    async def rotate_key(self) -> Resealed:
        """Encrypt all accounts with the newest key. A key in the data folder is replaced by a new one."""
        async with self.stored.rotating():
            old = await asyncio.to_thread(self._keys.add_new)
            resealed = await self.stored.reseal()
            await asyncio.to_thread(self._keys.remove, old)
        self._audit.write_act("accounts.rotate_key", count=resealed.count)
        return resealed

    async def usable(self, scope: Scope, server: str, config: ServerConfig) -> Account | None:
        """Return the account of a user at a server, unless the config names another address or issuer.

        One that cannot be decrypted is none either.
        """
        from toolscout.downstream.sign_in.known_account import fits

        account = await self._readable(scope, server)
        return account if account is not None and fits(account, config) else None

    async def _registered(
        self,
        http: IssuerClient,
        issuer: Issuer,
        server: str,
        redirect_uri: str,
        before: Account | None,
        grant_type: str = "authorization_code",
    ) -> Client:
        """Return the client that is registered for a callback. It may be why an account was refused."""
        from toolscout.downstream.sign_in import flow

        client = await self.clients.find(server, issuer.issuer, redirect_uri)
        refused = before.client.get("client_id") if before is not None and before.refused else None
        if client is not None and client["client_id"] != refused:
            return flow.read_client(client)
        registered = await flow.register(http, issuer, redirect_uri, grant_type)
        kept = registered.model_dump(mode="json", exclude_none=True)
        await self.clients.keep(server, issuer.issuer, redirect_uri, kept)
        return registered

    async def _put(self, account: Account, config: ServerConfig, sign_in: str) -> None:
        """Store the account of a sign-in, unless that was removed. Revoke the tokens of the one that it replaces."""
        async with self.stored.changing(account.scope, account.server):
            before = await self._readable(account.scope, account.server)
            removed = not await self.pending.waits(account.scope, sign_in)
            if not removed:
                await self.stored.put(account)
        if removed:
            await self._revoke(account, config)
            raise SignInError(f"the sign-in to {config.title} was removed before it ended", hint="begin again")
        self._audit.write_act("accounts.sign_in", account.scope, server=account.server, issuer=account.issuer)
        if before is not None and before.access_token != account.access_token:
            await self._revoke(before, config)

    async def _revoke(self, account: Account, config: ServerConfig | None) -> bool:
        from toolscout.downstream.sign_in.issuers import IssuerClient
        from toolscout.downstream.sign_in.token_requests import revoke

        config = config or ServerConfig(title=account.server, transport="http", url=account.url)
        async with IssuerClient(config, self._settings) as client:
            return await revoke(client, account)

    async def _remove(self, scope: Scope, server: str) -> bool:
        """Remove the account and the sign-ins of a user at a server. Return whether there was an account."""
        await self.pending.forget(scope, server)
        records = await self._store.records(ACCOUNT_KIND, scope, f"{server} ")
        for record in records:
            await self._store.remove_record(ACCOUNT_KIND, scope, record.name)
        return bool(records)

    async def _readable(self, scope: Scope, server: str) -> Account | None:
        try:
            return await self.stored.find(scope, server)
        except (UnreadableAccountError, SettingError):
            return None


async def find_refusing(config: Config, settings: Settings) -> dict[str, bool]:
    """Ask the servers of a config without credentials. Return those that refuse, and whether they say where to sign in.

    They are named by their titles.
    """
    from toolscout.downstream.sign_in.issuers import IssuerClient, challenge_of, names_issuer

    async def says_where(server: ServerConfig) -> bool | None:
        try:
            async with asyncio.timeout(_ASK_S), IssuerClient(server, settings) as client:
                challenge = await challenge_of(client)
                return None if challenge is None else await names_issuer(client, challenge)
        except (SignInError, TimeoutError):
            return None

    # A server with headers has credentials of another kind, which are not sent here.
    asked = (server for server in config.servers if server.enabled and not server.problem and not server.headers)
    servers = [server for server in asked if server.allows_sign_in]
    answers = await asyncio.gather(*(says_where(server) for server in servers))
    return {server.title: answer for server, answer in zip(servers, answers, strict=True) if answer is not None}
