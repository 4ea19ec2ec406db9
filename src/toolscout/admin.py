"""What an operator does: keys, and decisions about definitions. Every act leaves an audit line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from toolscout.discovery.suggest import did_you_mean
from toolscout.errors import ToolNotFoundError
from toolscout.indexing.enrich import enrich_tool
from toolscout.indexing.trust import KIND as PIN
from toolscout.indexing.trust import definition_of, read_pin, write_pin
from toolscout.models import ApiKey, Caller, Change, Pin, Publication, Record, Scope, Tool, Verdict
from toolscout.policy.document import Act, Policy
from toolscout.policy.keys import mint_key
from toolscout.policy.limits import Limits
from toolscout.policy.rules import Decision, Rules
from toolscout.ports import Store
from toolscout.telemetry import AuditLog

_KEY = "api_key"
_TOUCH_S = 60.0


class Admin:
    """The operator's side of a scout."""

    def __init__(self, store: Store, audit: AuditLog, rules: Rules, limits: Limits) -> None:
        """Work on a store and on the rules in force; write down every act."""
        self._store = store
        self._audit = audit
        self._rules = rules
        self._limits = limits

    def apply_policy(self, policy: Policy | None) -> None:
        """Judge by another policy from now on, in every search and every call."""
        self._rules.apply(policy)
        self._limits.apply(policy)
        self._audit.write("policy.apply", source=policy.source if policy else None)

    async def explain(self, caller: Caller, key: str, act: Act) -> Decision:
        """Say whether a caller may see or call a tool, and which rule decides."""
        for scope in (caller.scope, Scope(tenant=caller.tenant)):
            for tool in await self._store.stored_tools(scope):
                if tool.key == key:
                    return self._rules.explain(caller, tool, act)
        return Decision(allowed=False, because="there is no such tool")

    async def create_key(
        self,
        *,
        tenant: str,
        user: str | None = None,
        groups: Sequence[str] = (),
        scopes: Sequence[str] = (),
        note: str = "",
        expires_at: float | None = None,
    ) -> tuple[str, ApiKey]:
        """Make a key; the text that is returned first is shown once and kept nowhere."""
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
        self._audit.write("keys.create", tenant=tenant, user=user, key_id=key.id)
        return text, key

    async def api_keys(self, tenant: str | None = None) -> list[ApiKey]:
        """Return the keys of a tenant, or of all, the newest first."""
        found = [_read_key(item) for item in await self._store.records(_KEY)]
        return sorted((key for key in found if tenant in (None, key.tenant)), key=lambda key: (-key.created_at, key.id))

    async def revoke_key(self, key_id: str) -> ApiKey:
        """Make a key worthless; every replica refuses it within a second or so."""
        key = await self._key(key_id)
        if key is None:
            known = [item.id for item in await self.api_keys()]
            raise ToolNotFoundError(
                f"no key has the id {key_id!r}",
                hint="`toolscout keys list` shows them",
                suggestions=did_you_mean(key_id, known),
            )
        revoked = replace(key, revoked_at=key.revoked_at or time.time())
        await self._put(revoked)
        self._audit.write("keys.revoke", tenant=key.tenant, user=key.user, key_id=key.id)
        return revoked

    async def find_key(self, key_id: str) -> ApiKey | None:
        """Return a key that someone shows, and remember, to the minute, when that was."""
        key, now = await self._key(key_id), time.time()
        if key is not None and key.usable(now) and (key.last_used_at is None or now - key.last_used_at > _TOUCH_S):
            await self._put(replace(key, last_used_at=now))
        return key

    async def changes(self, scope: Scope) -> list[Change]:
        """Return the tools whose definition is not the pinned one, and those that are held back."""
        pins = {item.name: read_pin(item) for item in await self._store.records(PIN, scope)}
        found = []
        for tool in await self._store.stored_tools(scope):
            pin = pins.get(tool.key)
            changed = pin is not None and pin.fingerprint != tool.fingerprint
            if tool.held or changed:
                before = pin.before if pin and changed else None
                found.append(
                    Change(
                        key=tool.key,
                        held=tool.held,
                        before=before,
                        after=definition_of(tool),
                        at=pin.at if pin else 0.0,
                    )
                )
        return found

    async def decide(self, scope: Scope, key: str, verdict: Verdict) -> Tool:
        """Approve the definition that a tool has now, or keep it out; the decision survives re-indexing."""
        tools = {tool.key: tool for tool in await self._store.stored_tools(scope)}
        tool = tools.get(key)
        if tool is None:
            near = did_you_mean(key, tools)
            raise ToolNotFoundError(
                f"no tool has the key {key!r}",
                hint="`toolscout changes` shows what waits for a decision",
                suggestions=near,
            )
        pin = Pin(key=key, fingerprint=tool.fingerprint, verdict=verdict, at=time.time())
        await self._store.put_records([write_pin(scope, pin)])
        tool = replace(tool, held="" if verdict == "approved" else "kept out by hand")
        servers = {server.key: server for server in await self._store.servers(scope)}
        overview = await self._store.overview(Caller(tenant=scope.tenant, user=scope.owner))
        await self._store.publish(
            Publication(
                scope=scope,
                servers=(servers[tool.server],),
                entries=(enrich_tool(tool),),
                kept=frozenset(item.key for item in tools.values() if item.server == tool.server and item.key != key),
                model_id=overview.model_id,
            )
        )
        self._audit.write(verdict, tenant=scope.tenant, user=scope.owner, tool=key, fingerprint=tool.fingerprint)
        return tool

    async def _key(self, key_id: str) -> ApiKey | None:
        found = await self._store.record(_KEY, key_id)
        return _read_key(found) if found else None

    async def _put(self, key: ApiKey) -> None:
        scope = Scope(tenant=key.tenant)
        await self._store.put_records([Record(kind=_KEY, scope=scope, name=key.id, body=asdict(key))])


def _read_key(record: Record) -> ApiKey:
    body = dict(record.body)
    return ApiKey(**{**body, "groups": tuple(body["groups"]), "scopes": tuple(body["scopes"])})
