"""Sign-ins that wait for a person, in the store: any replica may end one, once, unless it was removed meanwhile."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from toolscout.errors import SignInError, StoreError
from toolscout.models import Scope

if TYPE_CHECKING:
    from toolscout.downstream.sign_in.account_store import AccountStore
    from toolscout.downstream.sign_in.flow import PendingSignIn

_KIND = "sign_in"


class PendingSignIns:
    """A record stays until its account is stored. Where it is gone, the user or the server was removed."""

    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts
        self._store = accounts.store

    async def check_key(self) -> None:
        """Fail before the person signs in if what they get could not be stored."""
        await self._accounts.seal(_KIND, Scope(), "check", {})

    async def keep(self, pending: PendingSignIn) -> None:
        """Keep a sign-in until it ends."""
        body = {name: value for name, value in asdict(pending).items() if name != "scope"}
        await self._keep(pending.scope, pending.server, name_of(pending), body, pending.lasts_s)

    async def keep_device(self, scope: Scope, server: str, lasts_s: float) -> str:
        """Keep the sign-in of a device until it ends, and return its name."""
        name = secrets.token_hex(32)
        await self._keep(scope, server, name, {}, lasts_s)
        return name

    async def take(self, state: str, browser: str) -> PendingSignIn:
        """Return the sign-in that an answer belongs to, once, and only for the browser that began it."""
        from toolscout.downstream.sign_in.flow import PendingSignIn

        name = _digest(state)
        record = await self._store.record(_KIND, name)
        if record is None:
            raise SignInError("this sign-in has ended already", hint="begin again")
        pending = PendingSignIn(**{**await self._accounts.unseal(record), "scope": record.scope})
        if not secrets.compare_digest(pending.browser, browser):
            raise SignInError("this sign-in did not begin in this browser", hint="begin again in this browser")
        if not await self._store.lease(f"sign_in:{name}", secrets.token_hex(8), pending.lasts_s):
            raise SignInError("this sign-in has ended already", hint="begin again")
        return pending

    async def waits(self, scope: Scope, name: str) -> bool:
        """Return whether nobody has removed a sign-in."""
        record = await self._store.record(_KIND, name)
        return record is not None and record.scope == scope

    async def end(self, scope: Scope, name: str) -> None:
        """Remove a sign-in that has ended. If the store fails, it is removed later."""
        with suppress(StoreError):
            await self._store.remove_record(_KIND, scope, name)

    async def forget(self, scope: Scope, server: str) -> None:
        """Remove the sign-ins of a user at a server, also those whose codes are being redeemed."""
        for record in await self._store.records(_KIND, scope):
            if record.body.get("server") == server:
                await self._store.remove_record(_KIND, scope, record.name)

    async def find_places(self, server: str = "", scope: Scope | None = None) -> list[tuple[Scope, str]]:
        """Return who is signing in where: at one server, of one user, or all."""
        records = await self._store.records(_KIND, scope)
        found = [(record.scope, str(record.body.get("server", ""))) for record in records]
        return [place for place in found if server in ("", place[1])]

    async def _keep(self, scope: Scope, server: str, name: str, body: Mapping[str, Any], lasts_s: float) -> None:
        """Store a sign-in, and remove those that nobody ended in time."""
        record = await self._accounts.seal(_KIND, scope, name, body)
        place = {"server": server, "ends": time.time() + lasts_s}
        await self._store.put_records([replace(record, body={**record.body, **place})])
        for other in await self._store.records(_KIND):
            if time.time() > float(other.body.get("ends", 0)):
                await self._store.remove_record(_KIND, other.scope, other.name)


def name_of(pending: PendingSignIn) -> str:
    """Return the name under which a sign-in is kept. It does not tell the `state`."""
    return _digest(pending.state)


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()
