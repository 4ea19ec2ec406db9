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
from toolscout.indexing.publish import read_pins, store_pins
from toolscout.indexing.trust import JudgedTool, judge_tool, merge_pins
from toolscout.models import Caller, Pin, Scope, Server, Tool
from toolscout.policy.api_keys import KIND as KEY_KIND
from toolscout.ports import Progress, Store
from toolscout.scout.indexer import Indexer
from toolscout.settings import Settings

if TYPE_CHECKING:
    from toolscout.models import FloatArray

MAX_LINE_BYTES = archive.MAX_LINE_BYTES

_CHUNK = 1_000
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """The counts of an export or import. `unembedded` tools have no vector of the store's model."""

    scopes: int
    servers: int
    tools: int
    switches: int
    decisions: int
    quarantined: int
    """Tools in quarantine, in the store that was exported or imported into."""
    keys: int
    """API keys that were not exported: a copy of a catalogue gives nobody access."""
    vectors: int
    unembedded: int
    model_id: str


async def export_catalogue(store: Store, out: BinaryIO, progress: Progress | None = None) -> ArchiveReport:
    """Write everything that a store holds, except API keys. Each scope is read in a consistent state."""
    counts: Counter[str] = Counter()
    total = unembedded = 0
    model_id = await _model_of(store)
    out.writelines(archive.write_items([ArchiveHeader(model_id=model_id)]))
    written: set[str] = set()
    for scope in await store.scopes():
        servers, tools, switches, pins = await _read_scope(store, scope)
        total += len(tools)
        counts["decision"] += sum(pin.verdict != "seen" for pin in pins)
        counts["quarantined"] += sum(bool(item.tool.quarantine_reason) for item in tools)
        items: list[ArchiveItem] = [scope, *servers]
        items += [ArchivedSwitch(key=key, enabled=enabled) for key, enabled in switches.items()]
        items += pins
        for start in range(0, len(tools), _CHUNK):
            part = tools[start : start + _CHUNK]
            hashes = [text_hash(to_document(item.tool)) for item in part]
            unwritten = sorted({*hashes} - written)
            vectors = await store.vectors(model_id, unwritten) if model_id else {}
            written |= vectors.keys()
            unembedded += sum(item not in written for item in hashes)
            items += [*part, *(ArchivedVector(text_hash=item, vector=vectors[item]) for item in sorted(vectors))]
            counts.update(map(archive.kind_of, items))
            await asyncio.to_thread(out.writelines, archive.write_items(items))
            items = []
            if progress:
                progress(counts["tool"], total)
        counts.update(map(archive.kind_of, items))
        out.writelines(archive.write_items(items))
    out.write(archive.write_end(counts))
    counts["key"] = sum(not item.body.get("revoked_at") for item in await store.records(KEY_KIND))
    return _report(counts, unembedded, model_id)


async def import_catalogue(
    store: Store,
    read: Callable[[], Iterable[bytes]],
    where: str,
    progress: Progress | None = None,
    *,
    settings: Settings | None = None,
) -> ArchiveReport:
    """Import an archive: all of it is checked first, then each scope is published at once. Nothing is embedded.

    The servers of the archive replace those of the same key in the same scope. All others stay. A store that already
    has a model keeps it. Every definition is screened and judged again, by the decisions of the archive and of the
    store. That a tool was in use elsewhere proves nothing.
    """
    settings = settings or Settings()
    indexer = Indexer(store=store, embedder=None, settings=settings)
    total = await asyncio.to_thread(_check, read, where, settings)
    counts: Counter[str] = Counter()
    unembedded = 0
    current = model_id = await _model_of(store)
    async for archived in _read_scopes(store, read, where, counts, settings):
        model_id = current or archived.model_id
        counts["decision"] += sum(pin.verdict != "seen" for pin in archived.pins.values())
        if archived.servers or archived.switches or archived.pins:
            async with indexer.leases.hold(archived.scope, [server.key for server in archived.servers]) as leases:
                judged = await _judge(store, archived, settings)
                prepared = await _prepare(store, archived, judged)
                new_model = model_id != current
                await indexer.publish(
                    prepared, leases, model_id=model_id, everywhere=new_model, switches=archived.switches
                )
            counts["quarantined"] += sum(bool(item.tool.quarantine_reason) for item in judged)
            current = model_id
            hashes = [text_hash(to_document(item.tool)) for item in archived.tools]
            missing = await store.missing_vectors(model_id, hashes) if model_id else {*hashes}
            unembedded += sum(item in missing for item in hashes)
        if progress:
            progress(counts["tool"], total)
    return _report(counts, unembedded, model_id)


@dataclass(slots=True, kw_only=True)
class _ArchivedScope:
    """Everything that an archive holds of one scope."""

    scope: Scope
    model_id: str
    servers: list[Server] = field(default_factory=list)
    tools: list[ArchivedTool] = field(default_factory=list)
    switches: dict[str, bool] = field(default_factory=dict)
    pins: dict[str, Pin] = field(default_factory=dict)


def _check(read: Callable[[], Iterable[bytes]], where: str, settings: Settings) -> int:
    """Read an archive to its end and count its tools, so that a broken one fails before anything is changed."""
    return sum(isinstance(item, ArchivedTool) for item in archive.read_items(read(), where, settings))


async def _read_scopes(
    store: Store, read: Callable[[], Iterable[bytes]], where: str, counts: Counter[str], settings: Settings
) -> AsyncIterator[_ArchivedScope]:
    """Yield one scope after the other, once its vectors are stored."""
    model_id = ""
    vectors: list[ArchivedVector] = []
    archived: _ArchivedScope | None = None

    async def store_vectors() -> None:
        if vectors:
            await store.add_vectors(model_id, [item.text_hash for item in vectors], _stack(vectors))
            vectors.clear()

    for item in archive.read_items(read(), where, settings):
        counts[archive.kind_of(item)] += 1
        if isinstance(item, ArchiveHeader):
            model_id = item.model_id
        elif isinstance(item, Scope):
            await store_vectors()
            if archived is not None:
                yield archived
            archived = _ArchivedScope(scope=item, model_id=model_id)
        elif archived is None:
            continue
        elif isinstance(item, Server):
            archived.servers.append(item)
        elif isinstance(item, ArchivedTool):
            archived.tools.append(item)
        elif isinstance(item, ArchivedSwitch):
            archived.switches[item.key] = item.enabled
        elif isinstance(item, Pin):
            archived.pins[item.key] = item
        else:
            vectors.append(item)
            if len(vectors) >= _CHUNK:
                await store_vectors()
    await store_vectors()
    if archived is not None:
        yield archived


async def _judge(store: Store, archived: _ArchivedScope, settings: Settings) -> list[JudgedTool]:
    """Screen every definition, whatever the archive says of it, compare it with its pin, and store the pins."""
    stored_pins = await read_pins(store, archived.scope)
    stored = {tool.key: tool for tool in await store.stored_tools(archived.scope)}
    offered = {item.tool.key: item.tool for item in archived.tools}
    pins = dict(stored_pins)
    for key in archived.pins.keys() | (stored_pins.keys() & offered.keys()):
        pins[key] = merge_pins(
            stored_pins.get(key), archived.pins.get(key), offered=offered.get(key), stored=stored.get(key)
        )
    now = time.time()
    unscreened = {key: replace(pin, screened="", found="") for key, pin in pins.items()}
    screened, strict = settings.quarantine, settings.strict_definitions
    judged = await asyncio.to_thread(
        lambda: [
            judge_tool(item.tool, unscreened.get(item.tool.key), screened=screened, strict=strict, now=now)
            for item in archived.tools
        ]
    )
    new_pins = {key: pin for key, pin in pins.items() if stored_pins.get(key) != pin}
    new_pins |= {item.tool.key: item.pin for item in judged if item.pin}
    await store_pins(store, archived.scope, new_pins, pins, replaced={item.tool.key for item in judged if item.changed})
    return judged


async def _prepare(store: Store, archived: _ArchivedScope, judged: Sequence[JudgedTool]) -> list[PreparedServer]:
    """Prepare the servers of a scope. A tool that is published under the same stamp is unchanged."""
    stamps = {
        item.tool.key: restamp(now.tool, item.tool, item.stamp)
        for item, now in zip(archived.tools, judged, strict=True)
    }
    tools: dict[str, list[Tool]] = {server.key: [] for server in archived.servers}
    for item in judged:
        tools[item.tool.server].append(item.tool)

    def prepare(server: Server, published: Mapping[str, str]) -> PreparedServer:
        changed = [tool for tool in tools[server.key] if published.get(tool.key) != stamps[tool.key]]
        entries = tuple(replace(enrich_tool(tool), stamp=stamps[tool.key]) for tool in changed)
        unchanged = frozenset(tool.key for tool in tools[server.key]) - {tool.key for tool in changed}
        return PreparedServer(server=server, entries=entries, unchanged=unchanged)

    return [
        await asyncio.to_thread(prepare, server, await store.stamps(archived.scope, server.key))
        for server in archived.servers
    ]


async def _read_scope(
    store: Store, scope: Scope
) -> tuple[Sequence[Server], list[ArchivedTool], Mapping[str, bool], list[Pin]]:
    """Read a scope. Its stamps, read before and after, show whether it changed meanwhile."""
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


def _stack(vectors: Sequence[ArchivedVector]) -> FloatArray:
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
