"""Config files are followed: an edit is applied within a second, a broken one is told and changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from toolscout.config import Config, read_config
from toolscout.errors import ToolscoutError

_log = logging.getLogger("toolscout")


async def follow_config(
    files: Callable[[], Sequence[Path]], apply: Callable[[Config], Awaitable[None]], interval_s: float
) -> None:
    """Look at the files every now and then and apply what they say when one has changed; never return."""
    seen = await asyncio.to_thread(_state, files)
    while True:
        await asyncio.sleep(interval_s)
        now = await asyncio.to_thread(_state, files)
        if now == seen:
            continue
        seen = now
        try:
            config = await asyncio.to_thread(read_config, list(files()))
            await apply(config)
        except ToolscoutError as error:
            _log.warning("the config is not followed: %s (%s)", error.message, error.hint)
        else:
            _log.info("the config has changed: %d servers", len(config.servers))


def _state(files: Callable[[], Sequence[Path]]) -> tuple[tuple[str, int, int], ...]:
    found = []
    for path in files():
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(found)
