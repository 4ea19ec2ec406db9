"""API keys: an operator creates, rotates and revokes them, a gateway looks them up. Each act leaves an audit line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from toolscout.errors import ConflictError, StoreError, ToolNotFoundError
from toolscout.models import ApiKey, Record, Scope
from toolscout.policy.api_keys import KIND, mint_key, opens
from toolscout.ports import Store
from toolscout.suggestions import did_you_mean
from toolscout.telemetry import AuditLog

_LAST_USE = "api_key_use"
_LAST_USE_S = 60.0


class ApiKeys:
    """The API keys of all tenants."""

    def __init__(self, store: Store, audit: AuditLog) -> None:
        self._store = store
        self._audit = audit

    async def create(
        self,
        *,
        tenant: str,
        user: str | None = None,
        groups: Sequence[str] = (),
        scopes: Sequence[str] = (),
        note: str = "",
        expires_at: float | None = None,
    ) -> tuple[str, ApiKey]:
        """Create a key and return its text and its record. The text is shown once and stored nowhere."""
        text, key = mint_key(
            tenant=tenant,
            user=user,
            groups=groups,
            scopes=scopes,
            note=note,
            now=time.time(),
            expires_at=expires_at,
        )
        await self._put(key)
        self._audit.write_act("keys.create", Scope(tenant=tenant, owner=user), key_id=key.id)
        return text, key

    async def list_all(self, tenant: str | None = None) -> list[ApiKey]:
        """Return the keys of a tenant, or of all, the newest first."""
        used_at = {item.name: float(item.body["at"]) for item in await self._store.records(_LAST_USE)}
        keys = [_read_key(record, used_at.get(record.name)) for record in await self._store.records(KIND)]
        return sorted((key for key in keys if tenant in (None, key.tenant)), key=lambda key: (-key.created_at, key.id))

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key. Every replica refuses it within about a second."""
        key = await self._existing(key_id)
        revoked = replace(key, revoked_at=key.revoked_at or time.time())
        await self._put(revoked)
        self._audit.write_act("keys.revoke", Scope(tenant=key.tenant, owner=key.user), key_id=key.id)
        return revoked

    async def rotate(self, key_id: str, *, expires_at: float | None = None) -> tuple[str, ApiKey]:
        """Create a key for the same caller in place of one, which is revoked. Return the new text and record.

        Both are written at once, so that a failure never leaves the caller without a key.
        """
        old, now = await self._existing(key_id), time.time()
        if not old.usable(now):
            raise ConflictError(
                f"the key {old.id!r} is {'revoked' if old.revoked_at else 'expired'}; nothing was changed",
                hint="create a new one with `toolscout keys create`",
            )
        text, new = mint_key(
            tenant=old.tenant,
            user=old.user,
            groups=old.groups,
            scopes=old.scopes,
            note=old.note,
            now=now,
            expires_at=expires_at if expires_at is not None else old.expires_at,
        )
        await self._put(new, replace(old, revoked_at=now))
        scope = Scope(tenant=old.tenant, owner=old.user)
        self._audit.write_act("keys.create", scope, key_id=new.id)
        self._audit.write_act("keys.revoke", scope, key_id=old.id)
        return text, new

    async def find(self, key_id: str, secret: str) -> ApiKey | None:
        """Return a key that a caller presents. If the secret is right, record, to the minute, when it was last used."""
        record, now = await self._store.record(KIND, key_id), time.time()
        if record is None:
            return None
        use = await self._store.record(_LAST_USE, key_id)
        key = _read_key(record, float(use.body["at"]) if use else None)
        if opens(key, secret, now) and (key.last_used_at is None or now - key.last_used_at > _LAST_USE_S):
            # A record of its own: written over the key, it could undo a revocation at the same moment.
            use = Record(kind=_LAST_USE, scope=Scope(tenant=key.tenant), name=key.id, body={"at": now})
            with suppress(StoreError):  # a key is valid even when its use cannot be recorded
                await self._store.put_records([use])
        return key

    async def _existing(self, key_id: str) -> ApiKey:
        record = await self._store.record(KIND, key_id)
        if record is None:
            raise ToolNotFoundError(
                f"no key has the id {key_id!r}",
                hint="`toolscout keys list` shows them",
                suggestions=did_you_mean(key_id, [key.id for key in await self.list_all()]),
            )
        return _read_key(record)

    async def _put(self, *keys: ApiKey) -> None:
        await self._store.put_records(
            [Record(kind=KIND, scope=Scope(tenant=key.tenant), name=key.id, body=asdict(key)) for key in keys]
        )


def _read_key(record: Record, last_used_at: float | None = None) -> ApiKey:
    body = dict(record.body)
    return ApiKey(
        **{**body, "groups": tuple(body["groups"]), "scopes": tuple(body["scopes"]), "last_used_at": last_used_at}
    )
