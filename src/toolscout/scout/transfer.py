"""Export of a whole catalogue into an archive, and import of an archive into another store, vectors included."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

import toolscout.indexing.archive as archive
from toolscout.errors import StoreError
from toolscout.indexing.archive import ArchivedSwitch, ArchivedTool, ArchivedVector, ArchiveHeader, ArchiveItem
from toolscout.indexing.enrich import enrich_tool, restamp, text_hash, to_document
from toolscout.indexing.prepare import PreparedServer
from toolscout.indexing.publish import publish, read_pins, store_pins
from toolscout.indexing.trust import JudgedTool, judge_tool, merge_pins
from toolscout.models import Caller, Pin, Scope, Server, Tool
from toolscout.policy.api_keys import KIND as KEY
from toolscout.ports import Progress, Store
from toolscout.scout.leases import Leases
from toolscout.settings import Settings

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_CHUNK = 1_000
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What was carried, counted; `unembedded` tools have no vector of the store's model."""

    scopes: int
    servers: int
    tools: int
    switches: int
    decisions: int
    quarantined: int
    """Tools that are kept from everyone where they were read, or where they arrived."""
    keys: int
    """API keys that are not carried: a copy of a catalogue lets nobody in."""
    vectors: int
    unembedded: int
    model_id: str


async def export_catalogue(store: Store, out: BinaryIO, progress: Progress | None = None) -> ArchiveReport:
    """Write everything that a store holds; each scope is read as it is at one moment."""
    counts: Counter[str] = Counter()
    known = unembedded = 0
    model_id = await _model_of(store)
    out.writelines(archive.write_items([ArchiveHeader(model_id=model_id)]))
    written: set[str] = set()
    for scope in await store.scopes():
        servers, tools, switches, pins = await _read_scope(store, scope)
        known += len(tools)
        counts["decision"] += sum(pin.verdict != "seen" for pin in pins)
        counts["quarantined"] += sum(bool(item.tool.quarantine_reason) for item in tools)
        items: list[ArchiveItem] = [scope, *servers]
        items += [ArchivedSwitch(key=key, enabled=enabled) for key, enabled in switches.items()]
        items += pins
        for start in range(0, len(tools), _CHUNK):
            part = tools[start : start + _CHUNK]
            hashes = [text_hash(to_document(item.tool)) for item in part]
            fresh = sorted({*hashes} - written)
            vectors = await store.vectors(model_id, fresh) if model_id else {}
            written |= vectors.keys()
            unembedded += sum(item not in written for item in hashes)
            items += [*part, *(ArchivedVector(text_hash=item, vector=vectors[item]) for item in sorted(vectors))]
            counts.update(map(archive.kind_of, items))
            await asyncio.to_thread(out.writelines, archive.write_items(items))
            items = []
            if progress:
                progress(counts["tool"], known)
        counts.update(map(archive.kind_of, items))
        out.writelines(archive.write_items(items))
    out.write(archive.write_end(counts))
    counts["key"] = sum(not item.body.get("revoked_at") for item in await store.records(KEY))
    return _report(counts, unembedded, model_id)


async def import_catalogue(
    store: Store,
    read: Callable[[], Iterable[bytes]],
    where: str,
    progress: Progress | None = None,
    *,
    settings: Settings | None = None,
) -> ArchiveReport:
    """Bring an archive in: all of it is checked first, then each scope is one publication; nothing is embedded.

    The servers of the archive replace those of the same key in the same scope; all others stay. A store that already
    has a model keeps it. Every definition is judged here, by the decisions of both places: what the archive says of
    its being in use counts for nothing.
    """
    settings = settings or Settings()
    leases = Leases(store, settings)
    total = await asyncio.to_thread(_check, read, where)
    counts: Counter[str] = Counter()
    unembedded = 0
    current = model_id = await _model_of(store)
    async for arrived in _arrivals(store, read, where, counts):
        model_id = current or arrived.model_id
        counts["decision"] += sum(pin.verdict != "seen" for pin in arrived.pins.values())
        if arrived.servers or arrived.switches or arrived.pins:
            async with leases.hold(arrived.scope, [server.key for server in arrived.servers]):
                judged = await _judged(store, arrived, settings)
                prepared = await _prepare(store, arrived, judged)
                await publish(
                    store,
                    arrived.scope,
                    prepared,
                    model_id=model_id,
                    everywhere=model_id != current,
                    switches=arrived.switches,
                )
            counts["quarantined"] += sum(bool(item.tool.quarantine_reason) for item in judged)
            current = model_id
            hashes = [text_hash(to_document(item.tool)) for item in arrived.tools]
            missing = await store.missing_vectors(model_id, hashes) if model_id else {*hashes}
            unembedded += sum(item in missing for item in hashes)
        if progress:
            progress(counts["tool"], total)
    return _report(counts, unembedded, model_id)


@dataclass(slots=True, kw_only=True)
class _Arrived:
    """All of one scope."""

    scope: Scope
    model_id: str
    servers: list[Server] = field(default_factory=list)
    tools: list[ArchivedTool] = field(default_factory=list)
    switches: dict[str, bool] = field(default_factory=dict)
    pins: dict[str, Pin] = field(default_factory=dict)


def _check(read: Callable[[], Iterable[bytes]], where: str) -> int:
    """Read an archive to its end, so that a broken one fails before anything is done; count its tools."""
    return sum(isinstance(item, ArchivedTool) for item in archive.read_items(read(), where))


async def _arrivals(
    store: Store, read: Callable[[], Iterable[bytes]], where: str, counts: Counter[str]
) -> AsyncIterator[_Arrived]:
    """Give one scope after the other, once its vectors are kept."""
    model_id = ""
    vectors: list[ArchivedVector] = []
    arrived: _Arrived | None = None

    async def keep_vectors() -> None:
        if vectors:
            await store.add_vectors(model_id, [item.text_hash for item in vectors], _stacked(vectors))
            vectors.clear()

    for item in archive.read_items(read(), where):
        counts[archive.kind_of(item)] += 1
        if isinstance(item, ArchiveHeader):
            model_id = item.model_id
        elif isinstance(item, Scope):
            await keep_vectors()
            if arrived is not None:
                yield arrived
            arrived = _Arrived(scope=item, model_id=model_id)
        elif arrived is None:
            continue
        elif isinstance(item, Server):
            arrived.servers.append(item)
        elif isinstance(item, ArchivedTool):
            arrived.tools.append(item)
        elif isinstance(item, ArchivedSwitch):
            arrived.switches[item.key] = item.enabled
        elif isinstance(item, Pin):
            arrived.pins[item.key] = item
        else:
            vectors.append(item)
            if len(vectors) >= _CHUNK:
                await keep_vectors()
    await keep_vectors()
    if arrived is not None:
        yield arrived


async def _judged(store: Store, arrived: _Arrived, settings: Settings) -> list[JudgedTool]:
    """Screen every definition, whatever the archive says was found, hold it against its pin, and keep the pins."""
    own = await read_pins(store, arrived.scope)
    stored = {tool.key: tool for tool in await store.stored_tools(arrived.scope)}
    offered = {item.tool.key: item.tool for item in arrived.tools}
    pins = dict(own)
    for key in arrived.pins.keys() | (own.keys() & offered.keys()):
        pins[key] = merge_pins(own.get(key), arrived.pins.get(key), offered=offered.get(key), stored=stored.get(key))
    now = time.time()
    unscreened = {key: replace(pin, screened="", found="") for key, pin in pins.items()}
    screened, strict = settings.quarantine, settings.strict_definitions
    judged = await asyncio.to_thread(
        lambda: [
            judge_tool(item.tool, unscreened.get(item.tool.key), screened=screened, strict=strict, now=now)
            for item in arrived.tools
        ]
    )
    fresh = {key: pin for key, pin in pins.items() if own.get(key) != pin}
    fresh |= {item.tool.key: item.pin for item in judged if item.pin}
    await store_pins(store, arrived.scope, fresh, pins, replaced={item.tool.key for item in judged if item.changed})
    return judged


async def _prepare(store: Store, arrived: _Arrived, judged: Sequence[JudgedTool]) -> list[PreparedServer]:
    """Prepare the servers of a scope; a tool that is published under the same stamp is unchanged."""
    stamps = {
        item.tool.key: restamp(now.tool, item.tool, item.stamp) for item, now in zip(arrived.tools, judged, strict=True)
    }
    prepared = []
    for server in arrived.servers:
        published = await store.stamps(arrived.scope, server.key)
        tools = [item.tool for item in judged if item.tool.server == server.key]
        changed = [tool for tool in tools if published.get(tool.key) != stamps[tool.key]]
        entries = await asyncio.to_thread(
            lambda changed=changed: tuple(replace(enrich_tool(tool), stamp=stamps[tool.key]) for tool in changed)  # type: ignore[misc]
        )
        unchanged = frozenset(tool.key for tool in tools) - {tool.key for tool in changed}
        prepared.append(PreparedServer(server=server, entries=entries, unchanged=unchanged))
    return prepared


async def _read_scope(
    store: Store, scope: Scope
) -> tuple[Sequence[Server], list[ArchivedTool], Mapping[str, bool], list[Pin]]:
    """Read a scope between two looks at its stamps: equal ones mean that nothing changed meanwhile."""
    for _ in range(_TRIES):
        servers, stamps = await _stamps(store, scope)
        tools: Sequence[Tool] = await store.stored_tools(scope)
        switches = await store.switches(scope)
        pins = list((await read_pins(store, scope)).values())
        if (servers, stamps) == await _stamps(store, scope) and stamps.keys() == {tool.key for tool in tools}:
            return servers, [ArchivedTool(tool=tool, stamp=stamps[tool.key]) for tool in tools], switches, pins
    raise StoreError("the catalogue changes faster than it can be read", hint="export it when less is indexed")


async def _stamps(store: Store, scope: Scope) -> tuple[Sequence[Server], dict[str, str]]:
    servers = await store.servers(scope)
    stamps: dict[str, str] = {}
    for server in servers:
        stamps |= await store.stamps(scope, server.key)
    return servers, stamps


async def _model_of(store: Store) -> str:
    """Return the model of the catalogue, "" where nothing was embedded yet."""
    for scope in await store.scopes():
        overview = await store.overview(Caller(tenant=scope.tenant, user=scope.owner))
        if overview.model_id:
            return overview.model_id
    return ""


def _stacked(vectors: Sequence[ArchivedVector]) -> FloatArray:
    import numpy as np

    return np.stack([item.vector for item in vectors])


def _report(counts: Counter[str], unembedded: int, model_id: str) -> ArchiveReport:
    return ArchiveReport(
        scopes=counts["scope"],
        servers=counts["server"],
        tools=counts["tool"],
        switches=counts["switch"],
        decisions=counts["decision"],
        quarantined=counts["quarantined"],
        keys=counts["key"],
        vectors=counts["vector"],
        unembedded=unembedded,
        model_id=model_id,
    )
