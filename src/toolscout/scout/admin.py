"""What an operator does: keys, switches, and decisions about definitions. Every act leaves an audit line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from typing import Any

from toolscout.errors import PolicyError, StoreError, ToolNotFoundError
from toolscout.indexing.enrich import enrich_tool, restamp
from toolscout.indexing.trust import KEPT_OUT, PIN_KIND, change_of, read_pin, write_pin
from toolscout.models import ApiKey, Caller, Change, Pin, Publication, Record, Scope, Tool, Verdict
from toolscout.policy.api_keys import KIND as KEY
from toolscout.policy.api_keys import mint_key
from toolscout.policy.limits import Limits
from toolscout.policy.policy_file import Act, Policy
from toolscout.policy.rules import Decision, Rules
from toolscout.ports import Store
from toolscout.scout.leases import Leases
from toolscout.settings import Settings
from toolscout.suggestions import did_you_mean, tool_not_found
from toolscout.telemetry import AuditLog, operator, shape_of
from toolscout.tool_keys import split_key

_USED = "api_key_use"
_TOUCH_S = 60.0
_TRIES = 20


class Admin:
    """The operator's side of a scout."""

    def __init__(self, store: Store, audit: AuditLog, rules: Rules, limits: Limits, settings: Settings) -> None:
        """Work on a store and on the rules in force; write down every act."""
        self._store = store
        self._audit = audit
        self._rules = rules
        self._limits = limits
        self._settings = settings

    def note(self, act: str, scope: Scope, **fields: Any) -> None:
        """Write down an administrative act, whom it is about, and who did it."""
        self._audit.write(act, by=operator(), tenant=scope.tenant, user=scope.owner, **fields)

    def note_unlisted(self, caller: Caller, name: str, arguments: Any) -> None:
        """Write down a call of a name that the caller is not shown, which goes no further."""
        self._audit.write_call(
            caller,
            name,
            fingerprint=None,
            refused=True,
            outcome=ToolNotFoundError.code,
            ms=0.0,
            arguments=shape_of(arguments, {}),
        )

    def apply_policy(self, policy: Policy | None) -> None:
        """Judge by another policy from now on, in every search and every call."""
        self._rules.apply(policy)
        self._limits.apply(policy)
        self._audit.write("policy.apply", by=operator(), source=policy.source if policy else None)

    def refuse_policy(self, error: PolicyError) -> None:
        """Write down that a policy file is broken; the policy in force stays in force."""
        self._audit.write("policy.refuse", by=operator(), reason=error.message)

    @property
    def policy_version(self) -> int:
        """Return a number that grows with every policy that is applied."""
        return self._rules.version

    async def explain(self, caller: Caller, key: str, act: Act) -> Decision:
        """Say whether a caller may see or call a tool, and which rule decides."""
        known: set[str] = set()
        for scope in dict.fromkeys((caller.scope, Scope(tenant=caller.tenant))):
            switches = await self._store.switches(scope)
            for tool in await self._store.stored_tools(scope):
                known.add(tool.key)
                if tool.key == key:
                    enabled = switches.get(key, tool.enabled)
                    return self._rules.explain(caller, replace(tool, enabled=enabled), act)
        return Decision(allowed=False, because="there is no such tool", suggestions=did_you_mean(key, known))

    async def holds_any(self, caller: Caller) -> bool:
        """Tell whether there is a server for the caller's tenant or for them, whether or not they may see its tools."""
        return any([await self._store.servers(scope) for scope in {caller.scope, Scope(tenant=caller.tenant)}])

    # Keys

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
        self.note("keys.create", Scope(tenant=tenant, owner=user), key_id=key.id)
        return text, key

    async def api_keys(self, tenant: str | None = None) -> list[ApiKey]:
        """Return the keys of a tenant, or of all, the newest first."""
        used = {item.name: float(item.body["at"]) for item in await self._store.records(_USED)}
        found = [_read_key(item, used.get(item.name)) for item in await self._store.records(KEY)]
        return sorted((key for key in found if tenant in (None, key.tenant)), key=lambda key: (-key.created_at, key.id))

    async def revoke_key(self, key_id: str) -> ApiKey:
        """Make a key worthless; every replica refuses it within a second or so."""
        found = await self._store.record(KEY, key_id)
        if found is None:
            known = [item.id for item in await self.api_keys()]
            raise ToolNotFoundError(
                f"no key has the id {key_id!r}",
                hint="`toolscout keys list` shows them",
                suggestions=did_you_mean(key_id, known),
            )
        key = _read_key(found)
        revoked = replace(key, revoked_at=key.revoked_at or time.time())
        await self._put(revoked)
        self.note("keys.revoke", Scope(tenant=key.tenant, owner=key.user), key_id=key.id)
        return revoked

    async def find_key(self, key_id: str) -> ApiKey | None:
        """Return a key that someone shows, and remember, to the minute and where that can be, when that was."""
        found, now = await self._store.record(KEY, key_id), time.time()
        if found is None:
            return None
        use = await self._store.record(_USED, key_id)
        key = _read_key(found, float(use.body["at"]) if use else None)
        if key.usable(now) and (key.last_used_at is None or now - key.last_used_at > _TOUCH_S):
            # A record of its own: written over the key, it could undo a revocation of the same moment.
            use = Record(kind=_USED, scope=Scope(tenant=key.tenant), name=key.id, body={"at": now})
            with suppress(StoreError):  # a key that cannot be written about is still good
                await self._store.put_records([use])
        return key

    async def _put(self, key: ApiKey) -> None:
        scope = Scope(tenant=key.tenant)
        await self._store.put_records([Record(kind=KEY, scope=scope, name=key.id, body=asdict(key))])

    # Tools

    async def switch(self, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
        """Switch tools on or off, all or none; the decision survives re-indexing."""
        for key in keys:
            if key not in await self._store.stamps(scope, split_key(key)[0]):
                raise tool_not_found(key, await self._store.stored_tools(scope))
        for key in keys:
            await self._store.set_enabled(scope, key, enabled)
            self.note("tools.enable" if enabled else "tools.disable", scope, tool=key)

    async def switched_off(self, caller: Caller) -> list[Tool]:
        """Return the caller's and their tenant's tools that were switched off by hand or by the config, by key."""
        found: dict[str, Tool] = {}
        for scope in (Scope(tenant=caller.tenant), caller.scope):
            switches = await self._store.switches(scope)
            tools = await self._store.stored_tools(scope)
            found |= {tool.key: replace(tool, enabled=switches.get(tool.key, tool.enabled)) for tool in tools}
        return [found[key] for key in sorted(found) if not found[key].enabled]

    async def changes(self, scope: Scope | None = None) -> list[Change]:
        """Return the tools of a scope, or of all, whose definition is not the pinned one or that are held back."""
        scopes = [scope] if scope else await self._store.scopes()
        return [change for item in scopes for change in await self._changes(item)]

    async def decide(self, scope: Scope, keys: Sequence[str], verdict: Verdict) -> list[Tool]:
        """Approve the definitions that tools have now, or keep them out, all or none; it survives re-indexing."""
        wanted = await self._wanted(scope, keys)
        async with self._turn(scope, {tool.server for tool in wanted.values()}):
            tools = {tool.key: tool for tool in await self._store.stored_tools(scope)}
            if any(tools.get(key) != tool for key, tool in wanted.items()):
                raise StoreError(
                    "a definition has changed while you decided; nothing was decided", hint="look at it again"
                )
            await self._pin(scope, wanted.values(), verdict)
            held = KEPT_OUT if verdict == "kept_out" else ""
            decided = [replace(tool, quarantine_reason=held) for tool in wanted.values()]
            await self._publish(scope, decided, tools)
        act = "definitions.keep_out" if verdict == "kept_out" else "definitions.approve"
        for tool in decided:
            self.note(act, scope, tool=tool.key, fingerprint=tool.fingerprint)
        return decided

    async def _changes(self, scope: Scope) -> list[Change]:
        pins = {item.name: read_pin(item) for item in await self._store.records(PIN_KIND, scope)}
        found = (change_of(scope, tool, pins.get(tool.key)) for tool in await self._store.stored_tools(scope))
        return [change for change in found if change is not None]

    async def _wanted(self, scope: Scope, keys: Sequence[str]) -> dict[str, Tool]:
        tools = {tool.key: tool for tool in await self._store.stored_tools(scope)}
        for key in keys:
            if key not in tools:
                raise ToolNotFoundError(
                    f"no tool has the key {key!r}",
                    hint="`toolscout changes` shows what waits for a decision; nothing was decided",
                    suggestions=did_you_mean(key, tools),
                )
        return {key: tools[key] for key in keys}

    @asynccontextmanager
    async def _turn(self, scope: Scope, servers: AbstractSet[str]) -> AsyncIterator[None]:
        """Hold back whoever indexes these servers, so that neither overwrites what the other does."""
        turns = Leases(self._store, scope, self._settings)
        for _ in range(_TRIES):
            async with turns.take(servers) as turn:
                if servers <= turn.until.keys():
                    yield
                    return
            await asyncio.sleep(turns.retry_s)
        raise StoreError("another process is indexing the server; nothing was decided", hint="try again in a moment")

    async def _pin(self, scope: Scope, tools: Iterable[Tool], verdict: Verdict) -> None:
        known = {item.name: read_pin(item) for item in await self._store.records(PIN_KIND, scope)}
        await self._store.put_records(
            [
                write_pin(
                    scope,
                    replace(
                        known.get(tool.key, Pin(key=tool.key, fingerprint="")),
                        fingerprint=tool.fingerprint,
                        verdict=verdict,
                        at=time.time(),
                        before=None,
                    ),
                )
                for tool in tools
            ]
        )

    async def _publish(self, scope: Scope, decided: Sequence[Tool], tools: Mapping[str, Tool]) -> None:
        servers = {server.key: server for server in await self._store.servers(scope)}
        overview = await self._store.overview(Caller(tenant=scope.tenant, user=scope.owner))
        changed = {tool.key for tool in decided}
        replaced = sorted({tool.server for tool in decided})
        stamps: dict[str, str] = {}
        for server in replaced:
            stamps |= await self._store.stamps(scope, server)
        await self._store.publish(
            Publication(
                scope=scope,
                servers=tuple(servers[server] for server in replaced),
                entries=tuple(
                    replace(enrich_tool(tool), stamp=restamp(tool, tools[tool.key], stamps[tool.key]))
                    for tool in decided
                ),
                unchanged_keys=frozenset(
                    tool.key for tool in tools.values() if tool.server in replaced and tool.key not in changed
                ),
                model_id=overview.model_id,
            )
        )


def _read_key(record: Record, last_used_at: float | None = None) -> ApiKey:
    body = dict(record.body)
    known = {**body, "groups": tuple(body["groups"]), "scopes": tuple(body["scopes"]), "last_used_at": last_used_at}
    return ApiKey(**known)
