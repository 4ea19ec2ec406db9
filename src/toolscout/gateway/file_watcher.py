"""A watcher of config and policy files. An edit is applied within a second, a broken file changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from toolscout.config import Config, read_config
from toolscout.config.read import unreadable_files
from toolscout.errors import PolicyError, ToolscoutError
from toolscout.policy.policy_file import Policy, read_policy

_log = logging.getLogger("toolscout")

_MIN_INTERVAL_S = 0.01
_SETTLE_S = 0.05
_EMPTY_S = 1.0

Files = Callable[[], Sequence[Path]]
_State = tuple[tuple[str, int, int, int], ...]


async def watch_config(files: Files, apply: Callable[[Config], Awaitable[None]], interval_s: float) -> None:
    """Poll the files and apply the config when one of them changes. Runs until it is cancelled.

    A file that an edit broke changes nothing. One that never could be read does not stop changes of the others.
    """
    broken = await asyncio.to_thread(unreadable_files, list(files()))

    async def reload() -> None:
        nonlocal broken
        try:
            now = await asyncio.to_thread(unreadable_files, list(files()))
            for file in now.keys() - broken.keys():
                raise now[file]
            broken = now
            config = await asyncio.to_thread(read_config, list(files()), partial=True)
            await apply(config)
        except ToolscoutError as error:
            _log.warning("the changed config was not applied: %s (%s)", error.message, error.hint)
        else:
            _log.info("the config has changed: %d servers", len(config.servers))

    await _poll(files, reload, interval_s)


async def watch_policy(
    path: Path, apply: Callable[[Policy], None], refuse: Callable[[PolicyError], None], interval_s: float
) -> None:
    """Poll the policy file in the same way. While it is broken or missing, the last policy stays in force."""

    async def reload() -> None:
        try:
            policy = await asyncio.to_thread(read_policy, path)
        except PolicyError as error:
            refuse(error)
            _log.warning(
                "the changed policy was not applied, the last one stays in force: %s (%s)", error.message, error.hint
            )
        else:
            apply(policy)
            _log.info("the policy has changed: %d allow, %d deny", len(policy.allow), len(policy.deny))

    await _poll(lambda: [path], reload, interval_s)


async def _poll(files: Files, reload: Callable[[], Awaitable[None]], interval_s: float) -> None:
    last = await asyncio.to_thread(_state, files)
    while True:
        await asyncio.sleep(max(interval_s, _MIN_INTERVAL_S))
        now = await asyncio.to_thread(_state, files)
        if now == last:
            continue
        deadline = asyncio.get_running_loop().time() + _EMPTY_S
        while now != last or (_has_empty_file(now) and asyncio.get_running_loop().time() < deadline):
            last = now  # an editor may still be writing, and a partial file can be valid
            await asyncio.sleep(_SETTLE_S)
            now = await asyncio.to_thread(_state, files)
        await reload()


def _has_empty_file(state: _State) -> bool:
    """Tell whether a file is empty, which usually means that an editor is about to write it."""
    return any(size == 0 for *_, size in state)


def _state(files: Files) -> _State:
    state = []
    for path in files():
        try:
            status = path.stat()
        except OSError:
            continue
        state.append((str(path), status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(state)
