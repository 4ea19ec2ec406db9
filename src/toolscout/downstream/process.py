"""A server as a child process: started without a shell, in a small environment, and ended with all its own children."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from toolscout.config import ServerConfig
from toolscout.downstream.lines import LineReader
from toolscout.downstream.pipes import Child, ReadEnd, Ring, WriteEnd
from toolscout.downstream.reaper import MARK, Reaper, kill_marked, signal_group
from toolscout.errors import ServerUnavailableError
from toolscout.settings import Settings

INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""What a child gets of our own environment; all else must be listed in its config."""

_POLITE_S, _TERM_S, _KILL_S, _STEP_S = 1.0, 1.0, 2.0, 0.02


def child_environment(config: ServerConfig, mark: str) -> dict[str, str]:
    """Return all that a child may know of our environment, what its config lists, and the mark that finds it again."""
    # Nothing else is handed on: our environment holds other servers' secrets and our own TOOLSCOUT_* settings.
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, **config.env, MARK: mark}


@asynccontextmanager
async def open_process(
    config: ServerConfig, settings: Settings, *, reaper: Reaper, errors: Ring
) -> AsyncIterator[tuple[ReadEnd, WriteEnd]]:
    """Start a server and give its two ends; leaving ends its whole group, whatever the server does."""
    mark = reaper.mark()
    loop = asyncio.get_running_loop()
    try:
        transport, child = await loop.subprocess_exec(
            lambda: Child(LineReader(settings.max_line_bytes), errors),
            config.command,
            *config.args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=config.cwd,
            env=child_environment(config, mark),
            start_new_session=True,
        )
    except OSError as error:
        raise ServerUnavailableError(
            f"{config.title} cannot be started: {_reason(error, config)}",
            hint="check the command and the folder in its config; PATH is the gateway's own",
        ) from error
    group = transport.get_pid()
    try:
        reaper.add(group)
        yield ReadEnd(child), WriteEnd(child)
    finally:
        with anyio.CancelScope(shield=True):
            try:
                child.end()
                child.stdin.close()
                await _end_group(group, mark, child)
                reaper.remove(group)
            finally:  # the scope does not shield from a task that is cancelled by asyncio itself
                transport.close()


async def _end_group(group: int, mark: str, child: Child) -> None:
    """Ask by closing standard input, then by signal, then kill; always the whole group, also if its leader has left."""
    with anyio.move_on_after(_POLITE_S):
        await child.exited.wait()
    for number, patience_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
        stray = await asyncio.to_thread(kill_marked, mark, number)
        if not signal_group(group, number) and not stray:
            return
        for _ in range(int(patience_s / _STEP_S)):
            if not signal_group(group, 0):
                break
            await asyncio.sleep(_STEP_S)


def _reason(error: OSError, config: ServerConfig) -> str:
    if config.cwd and not os.path.isdir(config.cwd):  # noqa: PTH112 - a plain question about a plain string
        return "its folder does not exist"
    if isinstance(error, FileNotFoundError):
        return f"the command {config.command!r} was not found"
    if isinstance(error, PermissionError):
        return f"the command {config.command!r} may not be executed"
    return f"the command {config.command!r} does not run ({error.strerror or type(error).__name__})"
