"""Accounts in the store: one encrypted record for each tenant, user, server and issuer."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from toolscout.errors import StoreError, UnreadableAccountError
from toolscout.models import ACCOUNT_KIND, Account, Record, Scope, UnreadableAccount
from toolscout.ports import Store
from toolscout.token_cipher import TokenCipher

_LEASE_S = 60.0
_LEASE_PAUSE_S = 0.05
_PLACE = ("scope", "server", "issuer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resealed:
    """What became of the accounts when they were encrypted with a new key."""

    count: int
    """How many had an older key."""
    unreadable: tuple[UnreadableAccount, ...]
    """Those that stay as they are."""


class AccountStore:
    """Reads and writes accounts. The cipher is opened on first use, so that a scout without accounts needs no key."""

    def __init__(self, store: Store, open_cipher: Callable[[], TokenCipher]) -> None:
        """Take what returns the cipher with the keys as they are now. It may block, so a thread calls it."""
        self.store = store
        self._open_cipher = open_cipher
        self._opened: TokenCipher | None = None

    async def find(self, scope: Scope, server: str) -> Account | None:
        """Return the account of a user at a server. Raise UnreadableAccountError if it cannot be decrypted."""
        records = await self.store.records(ACCOUNT_KIND, scope, f"{server} ")
        return await self._read(records[0]) if records else None

    async def look_up(self, scope: Scope, server: str) -> Account | UnreadableAccount | None:
        """Return the account of a user at a server, also one that cannot be decrypted."""
        records = await self.store.records(ACCOUNT_KIND, scope, f"{server} ")
        return await self._try_read(records[0]) if records else None

    async def find_all(self, scope: Scope | None = None) -> list[Account]:
        """Return the accounts of one user, or of everybody, without those that cannot be decrypted."""
        return [item for item in await self._look_up_all(scope) if isinstance(item, Account)]

    async def find_unreadable(self, scope: Scope | None = None) -> list[UnreadableAccount]:
        """Return the accounts of one user, or of everybody, that cannot be decrypted."""
        return [item for item in await self._look_up_all(scope) if isinstance(item, UnreadableAccount)]

    @asynccontextmanager
    async def changing(self, scope: Scope, server: str) -> AsyncIterator[None]:
        """Hold the right to change an account, across all tasks and processes that share the store."""
        name = f"account:{json.dumps([scope.tenant, scope.owner, server])}"
        async with self._leased(name, "another process is changing this account"):
            yield

    @asynccontextmanager
    async def rotating(self) -> AsyncIterator[None]:
        """Hold the right to change the keys of all accounts."""
        async with self._leased("token_keys", "another process is rotating the key"):
            yield

    @asynccontextmanager
    async def _leased(self, name: str, busy: str) -> AsyncIterator[None]:
        holder, ends = secrets.token_hex(8), time.monotonic() + _LEASE_S
        while not await self.store.lease(name, holder, _LEASE_S):
            if time.monotonic() > ends:
                raise StoreError(busy, hint="try again later")
            await asyncio.sleep(_LEASE_PAUSE_S)
        try:
            yield
        finally:
            with suppress(StoreError):  # it expires by itself
                await self.store.release(name, holder)

    async def put(self, account: Account) -> None:
        """Store an account. One of the same user and server at another issuer is removed."""
        name = f"{account.server} {account.issuer}"
        await self._put(account.scope, name, _body(account))
        for other in await self.store.records(ACCOUNT_KIND, account.scope, f"{account.server} "):
            if other.name != name:
                await self.store.remove_record(ACCOUNT_KIND, account.scope, other.name)

    async def remove(self, account: Account | UnreadableAccount) -> None:
        """Remove an account."""
        await self.store.remove_record(ACCOUNT_KIND, account.scope, f"{account.server} {account.issuer}")

    async def reseal(self) -> Resealed:
        """Encrypt all accounts with the newest key. Those that cannot be decrypted stay as they are."""
        done = [await self._reseal(record) for record in await self.store.records(ACCOUNT_KIND)]
        unreadable = tuple(item for item in done if isinstance(item, UnreadableAccount))
        return Resealed(count=done.count(True), unreadable=unreadable)

    async def seal(self, kind: str, scope: Scope, name: str, body: Mapping[str, Any]) -> Record:
        """Return a record that is encrypted with the newest key, and can be opened in its own place only."""
        cipher = await self._reopened()
        return Record(kind=kind, scope=scope, name=name, body=cipher.seal(body, _place(kind, scope, name)))

    async def unseal(self, record: Record) -> dict[str, Any]:
        """Decrypt a record. The key may have been rotated since it was read."""
        cipher = self._opened
        if cipher is None or not cipher.knows(record.body):
            cipher = await self._reopened()
        return cipher.open(record.body, _place(record.kind, record.scope, record.name))

    async def _reopened(self) -> TokenCipher:
        self._opened = await asyncio.to_thread(self._open_cipher)
        return self._opened

    async def _put(self, scope: Scope, name: str, body: Mapping[str, Any]) -> None:
        """Store an account with the newest key. If that was replaced meanwhile, its rotation may have missed it."""
        sealed: Mapping[str, Any] = {}
        while not (await self._reopened()).is_newest(sealed):
            record = await self.seal(ACCOUNT_KIND, scope, name, body)
            await self.store.put_records([record])
            sealed = record.body

    async def _reseal(self, listed: Record) -> bool | UnreadableAccount:
        """Encrypt one account again, as it is now. Return whether it had an older key."""
        server, _, _ = listed.name.partition(" ")
        async with self.changing(listed.scope, server):
            records = await self.store.records(ACCOUNT_KIND, listed.scope, listed.name)
            record = next((item for item in records if item.name == listed.name), None)
            if record is None or (await self._reopened()).is_newest(record.body):
                return False
            try:
                await self._put(record.scope, record.name, await self.unseal(record))
            except UnreadableAccountError as error:
                return _unreadable(record, error)
        return True

    async def _look_up_all(self, scope: Scope | None) -> list[Account | UnreadableAccount]:
        return [await self._try_read(record) for record in await self.store.records(ACCOUNT_KIND, scope)]

    async def _try_read(self, record: Record) -> Account | UnreadableAccount:
        try:
            return await self._read(record)
        except UnreadableAccountError as error:
            return _unreadable(record, error)

    async def _read(self, record: Record) -> Account:
        server, _, issuer = record.name.partition(" ")
        return Account(scope=record.scope, server=server, issuer=issuer, **await self.unseal(record))


def _unreadable(record: Record, error: UnreadableAccountError) -> UnreadableAccount:
    server, _, issuer = record.name.partition(" ")
    return UnreadableAccount(scope=record.scope, server=server, issuer=issuer, reason=error.message)


def _body(account: Account) -> dict[str, Any]:
    return {name: value for name, value in asdict(account).items() if name not in _PLACE}


def _place(kind: str, scope: Scope, name: str) -> str:
    return json.dumps([kind, scope.tenant, scope.owner, name])
