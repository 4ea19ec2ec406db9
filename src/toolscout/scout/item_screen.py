"""Which resources and prompts of servers are withheld because of their text. Each text is screened once."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache

from toolscout.indexing.server_items import screen_items
from toolscout.models import Server
from toolscout.ports import NoWorkerError
from toolscout.scout.examination import LITTLE_BYTES, OTHERS_SLOW, digest_of, work_in_parts
from toolscout.settings import Settings
from toolscout.telemetry import AuditLog
from toolscout.tool_keys import tool_key
from toolscout.worker import WorkerPool

_MAX_KNOWN = 65_536
_MAX_KEY = 300
_MAX_LINES = 20
_TEXTS_PER_TURN = 200
_WAIT_S = 20.0
_NOT_SCREENED = "its text was not screened in time"

_log = logging.getLogger("toolscout")


@dataclass(frozen=True, slots=True)
class _ListedText:
    """An item as it is sent to the other process. `digest` identifies its text and whether its server is trusted."""

    key: str
    data: bytes
    digest: bytes


class ItemScreen:
    """Screens what servers list beside tools, with the rules and the thresholds for tools."""

    def __init__(self, pool: WorkerPool, settings: Settings, audit: AuditLog) -> None:
        self._pool = pool
        self._enabled = settings.quarantine
        self._audit = audit
        self._known: LRUCache[bytes, str] = LRUCache(_MAX_KNOWN)

    async def reasons(self, server: Server, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return for each item why it is withheld, "" if it is not. What cannot be screened is withheld."""
        if not self._enabled:
            return [""] * len(items)
        texts: list[_ListedText] = []
        for item in items:
            texts.append(_pack(server, item))
            if len(texts) % _TEXTS_PER_TURN == 0:
                await asyncio.sleep(0)  # others have their turn
        unknown = {text.digest: text for text in texts if text.digest not in self._known}
        if unknown:
            try:
                async with asyncio.timeout(_WAIT_S):
                    found = await self._screen(server, list(unknown.values()))
                self._remember(server, unknown.values(), found)
            except (TimeoutError, NoWorkerError) as error:
                reason = error if isinstance(error, NoWorkerError) else _NOT_SCREENED
                _log.warning("resources and prompts of %s are withheld: %s", server.key, reason)
        return [self._known.get(text.digest, _NOT_SCREENED) for text in texts]

    def _remember(self, server: Server, texts: Iterable[_ListedText], reasons: Sequence[str]) -> None:
        """Remember the reasons, and report those that are new. A server cannot fill the logs with them."""
        lines = 0
        for text, reason in zip(texts, reasons, strict=True):
            if reason == OTHERS_SLOW:
                continue
            self._known[text.digest] = reason
            lines += bool(reason)
            if reason and lines <= _MAX_LINES:
                _log.warning("%s is withheld: %s", text.key, reason)
                self._audit.write_act("items.withhold", tool=text.key, reason=reason)
        if lines > _MAX_LINES:
            reason = f"{lines - _MAX_LINES} more of the same list are withheld"
            _log.warning("%s: %s", server.key, reason)
            self._audit.write_act("items.withhold", server=server.key, reason=reason)

    async def _screen(self, server: Server, texts: Sequence[_ListedText]) -> list[str]:
        if sum(len(text.data) for text in texts) <= LITTLE_BYTES:
            return await asyncio.to_thread(screen_packed, [text.data for text in texts], server.trusted)

        async def run(part: Sequence[_ListedText], timeout_s: float) -> list[str]:
            work = ([text.data for text in part], server.trusted)
            owner = ("definitions", server.key)
            reasons: list[str] = await self._pool.run(screen_packed, *work, owner=owner, timeout_s=timeout_s)
            return reasons

        return await work_in_parts(texts, run, lambda _, reason: reason)


def screen_packed(packed: Sequence[bytes], trusted: bool) -> list[str]:
    """Screen items in the other process."""
    return screen_items([pickle.loads(data) for data in packed], trusted=trusted)  # noqa: S301 - written by `_pack`


def _pack(server: Server, item: Mapping[str, Any]) -> _ListedText:
    name = item.get("name") or item.get("uri") or item.get("uriTemplate")
    data = pickle.dumps(dict(item))
    digest = digest_of(data + bytes([server.trusted]))
    return _ListedText(key=tool_key(server.key, str(name))[:_MAX_KEY], data=data, digest=digest)
