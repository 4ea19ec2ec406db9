"""The work on the text of definitions: screening, words, labels. It never delays the calls of other servers.

A little of it is done in a thread. More of it could hold the interpreter for long, because a stranger chose the text.
It is done in another process, in small parts, and a part that takes too long is stopped.
Without a process it is not done.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import pickle
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from cachetools import LRUCache

from toolscout.errors import ServerUnavailableError
from toolscout.indexing.prepare import Catalogued, ExaminedTool, describe_place, examine
from toolscout.models import Dropped, Server
from toolscout.ports import NoWorkerError, WorkStoppedError
from toolscout.settings import Settings
from toolscout.tool_keys import tool_key
from toolscout.worker import WorkerPool

_log = logging.getLogger("toolscout")

LITTLE_BYTES = 16_384
"""How much text is examined in a thread."""

_PART_BYTES = 131_072
_PART_TOOLS = 64
_PART_S = 5.0
_TOOL_S = 1.0
_MAX_STOPPED = 4
_BESIDE_BYTES = 1_048_576
TOO_SLOW = f"the check of its text took longer than {_TOOL_S:g} s"
"""Why a definition is dropped whose check was stopped."""

OTHERS_SLOW = "others of the server took too long"
"""Why a definition is dropped that was not checked any more."""

_Results = list[ExaminedTool | Dropped]
_Item = TypeVar("_Item", bound="Packed")
_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition as it is sent to the other process. `place` names it in a report."""

    number: int
    data: bytes
    key: str
    place: str


class Examiner:
    """Examines the definitions of live servers."""

    def __init__(self, pool: WorkerPool, settings: Settings) -> None:
        self._pool = pool
        self._settings = replace(settings, store="", embedder_key="")
        self._slow: LRUCache[bytes, bool] = LRUCache(1_024)

    async def examine(
        self,
        server: Server,
        definitions: Sequence[Mapping[str, Any]],
        catalogued: Catalogued,
        *,
        owner: str | None,
    ) -> _Results:
        """Normalize, screen and enrich definitions. What takes too long is dropped.

        Raise ServerUnavailableError if no process can be started for the work.
        """
        results: _Results = []
        items = [item async for item in self._pack(server, definitions, results)]
        if sum(len(item.data) for item in items) <= LITTLE_BYTES:
            work = partial(examine, definitions, server, catalogued, self._settings, owner=owner, live=True)
            return await asyncio.to_thread(work)

        async def run(part: Sequence[_Definition], timeout_s: float) -> _Results:
            return await self._run(server, part, catalogued, owner, timeout_s)

        def drop(item: _Definition, reason: str) -> Dropped:
            self._slow[digest_of(item.data)] = reason == TOO_SLOW
            return Dropped(where=item.place, reason=reason)

        return results + await work_in_parts(items, run, drop)

    async def _pack(self, server: Server, definitions: Sequence[Mapping[str, Any]], results: _Results) -> Any:
        """Yield the definitions that are worth the work, and let others run in between."""
        limit = 2 * self._settings.max_schema_bytes + 4 * self._settings.max_description_chars + _BESIDE_BYTES
        unyielded = 0
        for number, definition in enumerate(definitions, start=1):
            place = describe_place(server, definition, number)
            try:
                data = pickle.dumps(definition)
            except RecursionError:
                results.append(Dropped(where=place, reason="it is nested too deeply"))
                continue
            unyielded += len(data)
            if unyielded > _PART_BYTES:
                unyielded = 0
                await asyncio.sleep(0)
            if len(data) > limit:
                results.append(Dropped(where=place, reason=f"it has {len(data):,} bytes, over {limit:,}"))
            elif self._slow.get(digest_of(data)):
                results.append(Dropped(where=place, reason=TOO_SLOW))
            else:
                yield _Definition(number, data, _key_of(server, definition), place)

    async def _run(
        self, server: Server, part: Sequence[_Definition], catalogued: Catalogued, owner: str | None, timeout_s: float
    ) -> _Results:
        """Examine a part in the other process.

        It gets the pins and stamps of these tools only to save work: what is decided by them is decided here.
        """
        keys = {item.key for item in part}
        needed = Catalogued(
            stamps={key: catalogued.stamps[key] for key in keys & catalogued.stamps.keys()},
            pins={key: replace(catalogued.pins[key], before=None) for key in keys & catalogued.pins.keys()},
        )
        data = [(item.number, item.data) for item in part]
        work = (data, server, needed, self._settings, owner)
        try:
            results: _Results = await self._pool.run(
                examine_packed, *work, owner=("definitions", server.key), timeout_s=timeout_s
            )
        except NoWorkerError as error:
            reason = f"the definitions of {server.title} cannot be checked: {error}"
            _log.warning("%s", reason)
            raise ServerUnavailableError(reason, hint="allow the gateway more processes and memory") from error
        return results


def examine_packed(
    packed: Sequence[tuple[int, bytes]], server: Server, catalogued: Catalogued, settings: Settings, owner: str | None
) -> _Results:
    """Examine definitions in the other process."""
    results: _Results = []
    for number, data in packed:
        definition = pickle.loads(data)  # noqa: S301 - written by `Examiner`
        results += examine([definition], server, catalogued, settings, owner=owner, live=True, first=number)
    return results


class Packed(Protocol):
    """Something to be examined, as it is sent to the other process."""

    @property
    def data(self) -> bytes:
        """Return its bytes."""
        ...


async def work_in_parts(
    items: Sequence[_Item],
    run: Callable[[Sequence[_Item], float], Awaitable[list[_Outcome]]],
    give_up: Callable[[_Item, str], _Outcome],
) -> list[_Outcome]:
    """Run work on small parts, each within a few seconds. In a part that is stopped, each item is tried alone.

    `give_up` makes the outcome of an item that takes too long, and of all that follow when some have.
    """
    outcomes: list[_Outcome] = []
    stopped = 0
    for part in _parts(items):
        if stopped >= _MAX_STOPPED:
            outcomes += [give_up(item, OTHERS_SLOW) for item in part]
            continue
        try:
            outcomes += await run(part, _PART_S)
        except WorkStoppedError:
            for item in part:
                try:
                    if stopped >= _MAX_STOPPED:
                        raise WorkStoppedError
                    outcomes += await run([item], _TOOL_S)
                except WorkStoppedError:
                    stopped += 1
                    outcomes.append(give_up(item, TOO_SLOW))
    return outcomes


def _parts(items: Sequence[_Item]) -> Iterator[list[_Item]]:
    part: list[_Item] = []
    size = 0
    for item in items:
        if part and (len(part) >= _PART_TOOLS or size + len(item.data) > _PART_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += len(item.data)
    if part:
        yield part


def _key_of(server: Server, definition: Mapping[str, Any]) -> str:
    name = definition.get("name")
    return tool_key(server.key, unicodedata.normalize("NFC", name).strip()) if isinstance(name, str) else ""


def digest_of(data: bytes) -> bytes:
    """Return what identifies the bytes of a definition."""
    return hashlib.blake2b(data, digest_size=16).digest()
