"""Config and policy files are followed: an edit is applied within a second, a broken one changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from toolscout.config import Config, read_config
from toolscout.errors import PolicyError, ToolscoutError
from toolscout.policy.policy_file import Policy, read_policy

_log = logging.getLogger("toolscout")


_LEAST_INTERVAL_S = 0.01
_SETTLED_S = 0.05
_EMPTIED_S = 1.0

Files = Callable[[], Sequence[Path]]
_State = tuple[tuple[str, int, int, int], ...]


async def watch_config(files: Files, apply: Callable[[Config], Awaitable[None]], interval_s: float) -> None:
    """Look at the files every now and then and apply what they say when one has changed; never return."""

    async def changed() -> None:
        try:
            config = await asyncio.to_thread(read_config, list(files()))
            await apply(config)
        except ToolscoutError as error:
            _log.warning("the config is not followed: %s (%s)", error.message, error.hint)
        else:
            _log.info("the config has changed: %d servers", len(config.servers))

    await _follow(files, changed, interval_s)


async def watch_policy(
    path: Path, apply: Callable[[Policy], None], refuse: Callable[[PolicyError], None], interval_s: float
) -> None:
    """Look at the policy file in the same way; one that is broken, or gone, leaves the policy that is in force."""

    async def changed() -> None:
        try:
            policy = await asyncio.to_thread(read_policy, path)
        except PolicyError as error:
            refuse(error)
            _log.warning("the policy is not followed, the last good one stays: %s (%s)", error.message, error.hint)
        else:
            apply(policy)
            _log.info("the policy has changed: %d allow, %d deny", len(policy.allow), len(policy.deny))

    await _follow(lambda: [path], changed, interval_s)


async def _follow(files: Files, changed: Callable[[], Awaitable[None]], interval_s: float) -> None:
    seen = await asyncio.to_thread(_state, files)
    while True:
        await asyncio.sleep(max(interval_s, _LEAST_INTERVAL_S))
        now = await asyncio.to_thread(_state, files)
        if now == seen:
            continue
        filled_by = asyncio.get_running_loop().time() + _EMPTIED_S
        while now != seen or (_emptied(now) and asyncio.get_running_loop().time() < filled_by):
            seen = now  # an editor may still be writing: half a file may read as a whole one that says less
            await asyncio.sleep(_SETTLED_S)
            now = await asyncio.to_thread(_state, files)
        await changed()


def _emptied(state: _State) -> bool:
    """Tell whether a file has nothing in it: most likely it is about to be written."""
    return any(size == 0 for *_, size in state)


def _state(files: Files) -> _State:
    found = []
    for path in files():
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((str(path), status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found)
