"""Accounts in the store: one encrypted record for each tenant, user, server and issuer."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Any

from toolscout.errors import StoreError
from toolscout.models import ACCOUNT_KIND, Account, Record, Scope
from toolscout.ports import Store
from toolscout.token_cipher import TokenCipher

_LEASE_S = 60.0
_LEASE_PAUSE_S = 0.05
_PLACE = ("scope", "server", "issuer")


class AccountStore:
    """Reads and writes accounts. The cipher is opened on first use, so that a scout without accounts needs no key."""

    def __init__(self, store: Store, open_cipher: Callable[[], TokenCipher]) -> None:
        self.store = store
        self._open_cipher = open_cipher
        self._opened: TokenCipher | None = None

    @property
    def _cipher(self) -> TokenCipher:
        self._opened = self._opened or self._open_cipher()
        return self._opened

    async def find(self, scope: Scope, server: str) -> Account | None:
        """Return the account of a user at a server."""
        records = await self.store.records(ACCOUNT_KIND, scope, f"{server} ")
        return self._read(records[0]) if records else None

    async def find_all(self, scope: Scope | None = None) -> list[Account]:
        """Return the accounts of one user, or of everybody."""
        return [self._read(record) for record in await self.store.records(ACCOUNT_KIND, scope)]

    @asynccontextmanager
    async def changing(self, scope: Scope, server: str) -> AsyncIterator[None]:
        """Hold the right to change an account, across all tasks and processes that share the store."""
        name, holder = f"account:{json.dumps([scope.tenant, scope.owner, server])}", secrets.token_hex(8)
        ends = time.monotonic() + _LEASE_S
        while not await self.store.lease(name, holder, _LEASE_S):
            if time.monotonic() > ends:
                raise StoreError("another process is changing this account", hint="try again later")
            await asyncio.sleep(_LEASE_PAUSE_S)
        try:
            yield
        finally:
            with suppress(StoreError):  # it expires by itself
                await self.store.release(name, holder)

    async def put(self, account: Account) -> None:
        """Store an account. One of the same user and server at another issuer is removed."""
        record = self.seal(ACCOUNT_KIND, account.scope, f"{account.server} {account.issuer}", _body(account))
        await self.store.put_records([record])
        for other in await self.store.records(ACCOUNT_KIND, account.scope, f"{account.server} "):
            if other.name != record.name:
                await self.store.remove_record(ACCOUNT_KIND, account.scope, other.name)

    async def remove(self, account: Account) -> None:
        """Remove an account."""
        await self.store.remove_record(ACCOUNT_KIND, account.scope, f"{account.server} {account.issuer}")

    async def reseal(self) -> int:
        """Encrypt all accounts with the newest key. Return how many were encrypted with an older one."""
        old = [item for item in await self.store.records(ACCOUNT_KIND) if not self._cipher.is_newest(item.body)]
        for record in old:
            body = self.unseal(record)
            await self.store.put_records([self.seal(ACCOUNT_KIND, record.scope, record.name, body)])
        return len(old)

    def seal(self, kind: str, scope: Scope, name: str, body: Mapping[str, Any]) -> Record:
        """Return an encrypted record, which can be opened in its own place only."""
        return Record(kind=kind, scope=scope, name=name, body=self._cipher.seal(body, _place(kind, scope, name)))

    def unseal(self, record: Record) -> dict[str, Any]:
        """Decrypt a record. The key may have been rotated since it was read."""
        if not self._cipher.knows(record.body):
            self._opened = None
        return self._cipher.open(record.body, _place(record.kind, record.scope, record.name))

    def _read(self, record: Record) -> Account:
        server, _, issuer = record.name.partition(" ")
        return Account(scope=record.scope, server=server, issuer=issuer, **self.unseal(record))


def _body(account: Account) -> dict[str, Any]:
    return {name: value for name, value in asdict(account).items() if name not in _PLACE}


def _place(kind: str, scope: Scope, name: str) -> str:
    return json.dumps([kind, scope.tenant, scope.owner, name])
