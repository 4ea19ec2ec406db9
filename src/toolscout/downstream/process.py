"""A server as a child process: started without a shell, in a small environment, and ended with all its children."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification

from toolscout.config import ServerConfig
from toolscout.downstream.lines import LineReader
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
_QUEUE_HIGH, _QUEUE_LOW = 256, 32
_LAST_WORDS_S = 0.25


def child_environment(config: ServerConfig, mark: str) -> dict[str, str]:
    """Return all that a child may know of our environment, what its config lists, and the mark that finds it again."""
    # Nothing else is handed on: our environment holds other servers' secrets and our own TOOLSCOUT_* settings.
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, **config.env, MARK: mark}


@asynccontextmanager
async def open_process(
    config: ServerConfig, settings: Settings, *, reaper: Reaper, errors: StderrBuffer
) -> AsyncIterator[tuple[ChildReadStream, ChildWriteStream]]:
    """Start a server and give its two ends; leaving ends its whole group, whatever the server does."""
    mark = reaper.mark()
    loop = asyncio.get_running_loop()
    try:
        transport, child = await loop.subprocess_exec(
            lambda: ChildProcess(LineReader(settings.max_line_bytes), errors),
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
        yield ChildReadStream(child), ChildWriteStream(child)
    finally:
        with anyio.CancelScope(shield=True):
            try:
                child.end()
                child.stdin.close()
                await _end_group(group, mark, child)
                reaper.remove(group)
            finally:  # the scope does not shield from a task that is cancelled by asyncio itself
                transport.close()


async def _end_group(group: int, mark: str, child: ChildProcess) -> None:
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


class StderrBuffer:
    """What is left of a process: the last bytes that it wrote to standard error, and how it ended."""

    def __init__(self, size: int) -> None:
        """Keep that many bytes."""
        self.ended = ""
        self._size = size
        self._parts: deque[bytes] = deque()
        self._length = 0

    def add(self, data: bytes) -> None:
        """Take more and forget the oldest."""
        self._parts.append(data[-self._size :] if self._size else b"")
        self._length += len(self._parts[-1])
        while self._length > self._size and self._length - len(self._parts[0]) >= self._size:
            self._length -= len(self._parts.popleft())

    def text(self, chars: int) -> str:
        """Return the end of what was kept."""
        return b"".join(self._parts)[-self._size :].decode("utf-8", "replace")[-chars:] if self._size else ""


class ChildProcess(asyncio.SubprocessProtocol):
    """The pipes of one process: lines become messages, standard error goes into a ring."""

    def __init__(self, reader: LineReader, errors: StderrBuffer) -> None:
        """Read lines with `reader`, and keep what is said on standard error."""
        self._reader = reader
        self._errors = errors
        self._transport: asyncio.SubprocessTransport
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self.queue: deque[JSONRPCMessage] = deque()
        self.ended = False
        self.exited = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the process."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    @property
    def stdin(self) -> asyncio.WriteTransport:
        """The process's standard input."""
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    @property
    def stdout(self) -> asyncio.ReadTransport:
        """The process's standard output."""
        return cast("asyncio.ReadTransport", self._transport.get_pipe_transport(1))

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Note that it reads again."""
        self.writable.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the server wrote."""
        if fd == 2:
            self._errors.add(data)
            return
        self.queue.extend(self._reader.feed(data))
        if self._reader.flooded:
            self.end()
        if len(self.queue) > _QUEUE_HIGH and not self._paused:
            # A server that writes faster than we read waits in its own write, not in our memory.
            self._paused = True
            self.stdout.pause_reading()
        self.wake()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the interface's
        """Note that a pipe was closed."""
        if fd == 1:
            self.end()
        elif fd == 0:
            self.writable.set()

    def process_exited(self) -> None:
        """Note how the process ended."""
        code = self._transport.get_returncode() or 0
        self._errors.ended = f"exit {code}" if code >= 0 else f"signal {-code}"
        self.exited.set()
        # The last answer may still be in the pipe; a grandchild that holds the pipe open must not look like life.
        asyncio.get_running_loop().call_later(_LAST_WORDS_S, self.end)

    def end(self) -> None:
        """Expect nothing more of the server."""
        self.ended = True
        self.writable.set()
        self.wake()

    def wake(self) -> None:
        """Wake whoever waits for a message."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> JSONRPCMessage:
        """Return the next message; raise EndOfStream when there will be none."""
        while not self.queue:
            if self.ended:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        message = self.queue.popleft()
        if self._paused and len(self.queue) < _QUEUE_LOW:
            self._paused = False
            self.stdout.resume_reading()
        return message


class _Stream:
    """What both ends share: they close at once, and the process is ended by whoever started it."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child
        self._closed = False

    async def aclose(self) -> None:
        self._closed = True
        self._child.wake()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class ChildReadStream(_Stream):
    """Messages from the server."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message; garbage has been skipped."""
        if self._closed:
            raise anyio.ClosedResourceError
        return SessionMessage(await self._child.next())

    def __aiter__(self) -> Self:
        """Iterate over messages until the server is gone."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class ChildWriteStream(_Stream):
    """Messages to the server."""

    async def send(self, item: SessionMessage) -> None:
        """Write one message once; while a server does not read, requests wait before their first byte is written."""
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        if isinstance(item.message, JSONRPCNotification) and not self._child.writable.is_set():
            return
        await self._child.writable.wait()
        if self._closed:
            raise anyio.ClosedResourceError
        if self._child.ended or self._child.exited.is_set() or self._child.stdin.is_closing():
            raise anyio.BrokenResourceError
        self._child.stdin.write(line)
