"""The clients that toolscout registered with issuers by itself, so that not every sign-in registers another one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from toolscout.errors import SettingError, StoreError
from toolscout.models import Scope

if TYPE_CHECKING:
    from toolscout.downstream.sign_in.account_store import AccountStore
    from toolscout.models import Account, Record

_KIND = "client"
DOUBTED_S: Final = 60.0
"""How long a client is used with which somebody began a sign-in that has not ended."""


class RegisteredClients:
    """One client for each server, issuer and callback.

    An issuer that has forgotten a client tells the person, but not toolscout. So a client with which nobody ended a
    sign-in for a while is not used again.
    """

    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts
        self._store = accounts.store

    async def find(self, server: str, issuer: str, redirect_uri: str) -> dict[str, Any] | None:
        """Return the client to begin a sign-in with, or None if one has to be registered."""
        record = await self._record(server, issuer, redirect_uri)
        if record is None:
            return None
        now, began_at = time.time(), float(record.body.get("began_at") or 0)
        if (began_at and now - began_at > DOUBTED_S) or 0 < float(record.body.get("ends_at") or 0) < now + DOUBTED_S:
            return None
        try:
            client = await self._accounts.unseal(record)
        except (StoreError, SettingError):
            return None
        if not began_at:
            await self._store.put_records([replace(record, body={**record.body, "began_at": now})])
        return client

    async def keep(self, server: str, issuer: str, redirect_uri: str, client: Mapping[str, Any]) -> None:
        """Keep a client that was registered for a sign-in now. Of a loopback callback, one port stays."""
        name = _name(server, issuer, redirect_uri)
        record = await self._accounts.seal(_KIND, Scope(), name, client)
        times = {"began_at": time.time(), "ends_at": client.get("client_secret_expires_at") or 0}
        await self._store.put_records([replace(record, body={**record.body, **times, "client": _digest_of(client)})])
        for other in await self._of(server):
            if _port_of(other) and _port_of(record) and other.name != name:
                await self._store.remove_record(_KIND, Scope(), other.name)

    async def note_end(self, account: Account, redirect_uri: str) -> None:
        """Note that a sign-in with a client came to its end, so the issuer knows the client.

        That says nothing about another client that was registered meanwhile.
        """
        record = await self._record(account.server, account.issuer, redirect_uri)
        if record is not None and record.body.get("client") == _digest_of(account.client):
            await self._store.put_records([replace(record, body={**record.body, "began_at": 0})])

    async def forget(self, server: str) -> None:
        """Forget the clients for a server."""
        for record in await self._of(server):
            await self._store.remove_record(_KIND, Scope(), record.name)

    async def loopback_port(self, server: str) -> int:
        """Return the port of the callback on this machine that a client was registered with, or 0."""
        return next((port for record in await self._of(server) if (port := _port_of(record))), 0)

    async def _of(self, server: str) -> list[Record]:
        return list(await self._store.records(_KIND, Scope(), f"{server} "))

    async def _record(self, server: str, issuer: str, redirect_uri: str) -> Record | None:
        return await self._store.record(_KIND, _name(server, issuer, redirect_uri))


def _name(server: str, issuer: str, redirect_uri: str) -> str:
    return f"{server} {issuer} {redirect_uri}"


def _digest_of(client: Mapping[str, Any]) -> str:
    return hashlib.sha256(str(client.get("client_id")).encode()).hexdigest()


def _port_of(record: Record) -> int:
    parts = urlsplit(record.name.rpartition(" ")[2])
    return (parts.port or 0) if (parts.hostname, parts.path) == ("127.0.0.1", "/callback") else 0
