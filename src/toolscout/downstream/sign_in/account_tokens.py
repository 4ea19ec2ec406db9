"""The tokens of an account, renewed in time: one renewal at a time, everywhere, and none is lost half-way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import httpx2
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth, union_scopes

from toolscout.config import ServerConfig
from toolscout.downstream.http_client import NoTokenError
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.downstream.sign_in.issuers import IssuerClient, IssuerDownError, discover, names_issuer
from toolscout.downstream.sign_in.known_account import FRESH_S, KnownAccount, has_ended, is_due
from toolscout.downstream.sign_in.token_requests import FINAL, TokenRefusedError, refresh
from toolscout.errors import ServerUnavailableError, SignInError, SignInRequiredError, StoreError
from toolscout.models import Account, Scope
from toolscout.settings import PREFIX, Settings

_AFTER_FAILURE_S = 5.0
_AFTER_REFUSAL_S = 60.0
_CLOSE_S = 5.0
_USELESS = "it refuses the token that its issuer gave"


class AccountTokens:
    """The account of one user at one server, shared by all requests that are sent for this user."""

    def __init__(
        self,
        accounts: AccountStore,
        scope: Scope,
        server: str,
        config: ServerConfig,
        settings: Settings,
        *,
        on_sign_in: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the place of an account. `on_sign_in` is called when another sign-in is seen than the last time."""
        self._on_sign_in = on_sign_in
        self._signed_in_at: float | None = None
        self._known = KnownAccount(accounts, scope, server, config)
        self._server = server
        self._config = config
        self._settings = settings
        self._renewals: dict[str, asyncio.Future[Account]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._noting = asyncio.Lock()
        self._asking = asyncio.Lock()
        self._ask_again_at = 0.0
        self._names_issuer = False
        self._failed_at = -_AFTER_FAILURE_S
        self._failure = ""
        self._issued = ""
        self._refused = ""
        self._refused_at = 0.0

    async def current(self, *, fresh: bool = False) -> Account | None:
        """Return the account with a token that is valid for a while, or None if nobody is signed in.

        With `fresh`, it is read again.
        """
        account = await self._known.read(fresh=fresh)
        self._note_sign_in(account)
        if account is None or account.refused or not account.refresh_token or not is_due(account):
            return account
        try:
            return await self.renew(account)
        except ServerUnavailableError as error:
            if isinstance(error, SignInRequiredError) or has_ended(account):
                raise
            return account  # the issuer is down, but the token is still valid

    async def lacks_account(self) -> bool:
        """Return whether it is known that nobody is signed in, or that their tokens are of no use any more."""
        try:
            account = await self._known.read(fresh=False)
        except ServerUnavailableError:
            return False
        return account is None or bool(account.refused)

    def texts(self) -> list[str]:
        """Return the tokens of the account as it was read last."""
        account = self._known.latest
        return [text for text in (account.access_token, account.refresh_token) if text] if account else []

    async def renew(self, old: Account) -> Account:
        """Return an account with another token than that of `old`. Raise SignInRequiredError if there is none.

        The renewal goes on when the caller is cancelled: the issuer may have replaced the refresh token already.
        """
        renewal = self._renewals.get(old.access_token)
        if renewal is None:
            renewal = self._renewals[old.access_token] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._renew(old, renewal))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        account = await asyncio.shield(renewal)
        if account.refused:
            raise self.sign_in_required(account.refused)
        return account

    @property
    def renewing(self) -> bool:
        """Whether a token is being renewed now."""
        return bool(self._tasks)

    async def close(self) -> None:
        """Give a renewal some time to end, then cancel it."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def issued(self, account: Account) -> bool:
        """Return whether the issuer gave this process the token, not another one."""
        return account.access_token == self._issued

    def note_refused(self, account: Account) -> SignInRequiredError:
        """Record that the server refuses a token that was just renewed, so that not every call renews it again."""
        self._refused, self._refused_at = account.access_token, time.monotonic()
        return self.sign_in_required(_USELESS)

    async def note_wanted(self, refused: Account, scope: str | None) -> Account | None:
        """Record that the server wants more scopes, so that the next sign-in requests them too.

        If there is another token than the one that it refused, return the account with it, and record nothing.
        """
        async with self._noting, self._known.changing():
            account = await self._known.read()
            if account is None or account.access_token != refused.access_token:
                return account
            wanted = union_scopes(account.wanted, scope or "") or ""
            if wanted != account.wanted:
                self._known.hold(replace(account, wanted=wanted), instead_of=account)
            await self._known.store()
            return None

    def sign_in_required(self, why: str = "") -> SignInRequiredError:
        """Return the error that tells the person how to sign in."""
        return SignInRequiredError(
            f"{self._config.title} needs you to sign in{': ' + why if why else ''}; nothing was sent",
            hint=how_to_sign_in(self._server, self._config, self._settings),
            details={"server": self._server},
        )

    async def check_empty_list(self) -> None:
        """Raise SignInRequiredError if a server lists nothing because nobody is signed in to it."""
        account = await self.current()
        if account is not None and not account.refused:
            return
        try:
            async with IssuerClient(self._config, self._settings) as client:
                await discover(client, None)
        except IssuerDownError as error:
            raise ServerUnavailableError(error.message, hint=error.hint) from error
        except SignInError:
            return  # it names no issuer, so its list is empty for everybody
        raise self.sign_in_required()

    async def signed_in(self) -> bool:
        """Wait until there is an account that can be tried, other than the one that failed, but at most a minute.

        Return whether there is one.
        """
        failed, ends = self._known.latest, time.monotonic() + _AFTER_REFUSAL_S
        while time.monotonic() < ends:
            account = self._known.latest
            if account is not None and not account.refused and account != failed:
                return True
            await asyncio.sleep(FRESH_S)
            with suppress(ServerUnavailableError):
                await self._known.read()
        return False

    async def says_where_to_sign_in(self, refusal: httpx2.Response) -> bool:
        """Return whether a server that refused a request says, by its header or its metadata, where to sign in.

        Its metadata is not read for every call.
        """
        if extract_resource_metadata_from_www_auth(refusal):
            return True
        async with self._asking:
            if time.monotonic() >= self._ask_again_at:
                async with IssuerClient(self._config, self._settings) as client:
                    self._names_issuer = await names_issuer(client, refusal)
                self._ask_again_at = time.monotonic() + _AFTER_FAILURE_S
            return self._names_issuer

    def _note_sign_in(self, account: Account | None) -> None:
        before, self._signed_in_at = self._signed_in_at, account.signed_in_at if account else 0.0
        if account is not None and before not in (None, account.signed_in_at):
            self._on_sign_in()

    async def _renew(self, old: Account, renewal: asyncio.Future[Account]) -> None:
        """Renew a token and store the new one. Who waits for `renewal` gets it as soon as it can be used."""
        try:
            account = await self._renewed_by_another(old)
            if account is None:
                self._check_last_renewal(old)
                async with self._known.changing():
                    account = await self._renewed_by_another(old)
                    if account is None:
                        account = await self._store(await self._request(old), renewal)
            _resolve(renewal, account)
        except Exception as error:  # noqa: BLE001 - callers that wait for it must learn of every failure
            _resolve(renewal, error)
        finally:
            _resolve(renewal, self._cannot_renew("toolscout is closing"))
            del self._renewals[old.access_token]

    def _check_last_renewal(self, old: Account) -> None:
        now = time.monotonic()
        if old.access_token == self._refused and now - self._refused_at < _AFTER_REFUSAL_S:
            raise self.sign_in_required(_USELESS)
        if now - self._failed_at < _AFTER_FAILURE_S:
            raise self._cannot_renew(self._failure)

    async def _renewed_by_another(self, old: Account) -> Account | None:
        """Return the stored account if it has another token than `old`: another task or replica has renewed it."""
        account = await self._known.read()
        if account is None:
            raise self.sign_in_required()
        return account if account.refused or account.access_token != old.access_token else None

    async def _request(self, old: Account) -> Account:
        """Ask the issuer for new tokens, and return the account with them, or with the reason of a final refusal."""
        try:
            async with IssuerClient(self._config, self._settings) as client:
                account = await refresh(client, self._known.latest or old)
        except TokenRefusedError as error:
            if error.error not in FINAL:
                raise self._note_failure("its issuer refused") from error
            # Another process without the lease may have used the refresh token first. Its tokens stay in the store.
            why = "the issuer does not renew it any more" if old.refresh_token else "its token was refused"
            account = replace(self._known.latest or old, refused=why)
        except SignInError as error:
            raise self._note_failure("its issuer does not answer") from error
        self._known.hold(account, instead_of=old)
        self._issued = account.access_token
        return account

    async def _store(self, account: Account, renewal: asyncio.Future[Account]) -> Account:
        """Store an account, however often it takes. While the store is down, it is used from memory."""
        while True:
            try:
                stored = await self._known.store()
            except StoreError:
                _resolve(renewal, account)
                await asyncio.sleep(FRESH_S)
                continue
            if stored is None:
                raise self.sign_in_required()
            return stored

    def _note_failure(self, why: str) -> NoTokenError:
        self._failed_at, self._failure = time.monotonic(), why
        return self._cannot_renew(why)

    def _cannot_renew(self, why: str) -> NoTokenError:
        return NoTokenError(
            f"the sign-in at {self._config.title} cannot be renewed now: {why}; nothing was sent",
            hint="try again later",
        )


def how_to_sign_in(server: str, config: ServerConfig, settings: Settings) -> str:
    """Return what a person does to sign in to a server."""
    if not config.per_user:
        return f"run `toolscout login {server}`"
    if not settings.public_url:
        return f"the operator has to set {PREFIX}PUBLIC_URL, the address at which users sign in"
    return f"open {connect_url(server, settings)} and sign in"


def connect_url(server: str, settings: Settings) -> str:
    """Return the page of the gateway at which a user signs in to a server."""
    return f"{settings.public_url.rstrip('/')}/connect/{server}"


def _resolve(renewal: asyncio.Future[Account], result: Account | Exception) -> None:
    """End a renewal for those who wait for it, unless it has ended for them already."""
    if renewal.done():
        return
    if isinstance(result, Exception):
        renewal.set_exception(result)
        renewal.exception()  # marks it as retrieved: everybody who waited may be gone
    else:
        renewal.set_result(result)
