"""A server as a child process: started without a shell, in a small environment, and ended with all its children."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from toolscout.config import ServerConfig
from toolscout.downstream.pace import MESSAGE_S, READ_S, REQUEST_S, Pace
from toolscout.downstream.reaper import MARK, Reaper, kill_marked, signal_group
from toolscout.errors import ServerUnavailableError
from toolscout.jsonrpc_lines import (
    LineReader,
    MessageQueue,
    MessageReadStream,
    MessageStream,
    SkippedLine,
    TooManyValuesError,
    decode_message,
    encode_message,
)
from toolscout.settings import Settings

TOO_LONG: Final = -32091
"""The code of the error that replaces an answer which was too long to read."""

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
"""The variables that a child inherits from our environment. Its config lists all others."""

_POLITE_S, _TERM_S, _KILL_S, _STEP_S = 1.0, 1.0, 2.0, 0.02
_LAST_OUTPUT_S = 0.25
_PART_BYTES = 8_192
_ENDLESS_LINES = 128
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,64}")')
_ID_WITHIN = 96


def child_environment(config: ServerConfig, mark: str) -> dict[str, str]:
    """Return the variables of a child: those it inherits, those of its config, and the mark for the reaper."""
    # Nothing else is passed on: our environment holds secrets of other servers and our own TOOLSCOUT_* settings.
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, **config.env, MARK: mark}


@asynccontextmanager
async def open_process(
    config: ServerConfig, settings: Settings, *, reaper: Reaper, errors: StderrBuffer, pace: Pace
) -> AsyncIterator[tuple[MessageReadStream, ChildWriteStream]]:
    """Start a server and yield its two streams. On exit its whole process group is ended, by force if necessary."""
    mark = reaper.mark()
    loop = asyncio.get_running_loop()
    try:
        transport, child = await loop.subprocess_exec(
            lambda: ChildProcess(settings.max_line_bytes, errors, pace),
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
            hint="check the command and the folder in its config; the command is looked up in the PATH of the gateway",
        ) from error
    group = transport.get_pid()
    try:
        reaper.add(group)
        yield MessageReadStream(child.messages), ChildWriteStream(child)
    finally:
        with anyio.CancelScope(shield=True):
            try:
                child.end()
                child.stdin.close()
                await _end_group(group, mark, child)
                reaper.remove(group)
            finally:  # the scope does not shield from a cancellation by asyncio itself
                transport.close()


async def _end_group(group: int, mark: str, child: ChildProcess) -> None:
    """Wait after standard input was closed, then send SIGTERM, then SIGKILL, always to the whole group."""
    with anyio.move_on_after(_POLITE_S):
        await child.exited.wait()
    for number, grace_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
        strays = await asyncio.to_thread(kill_marked, mark, number)
        if not signal_group(group, number) and not strays:
            return
        for _ in range(int(grace_s / _STEP_S)):
            if not signal_group(group, 0):
                break
            await asyncio.sleep(_STEP_S)


def _reason(error: OSError, config: ServerConfig) -> str:
    if config.cwd and not os.path.isdir(config.cwd):  # noqa: PTH112 - the path is a plain string
        return "its folder does not exist"
    if isinstance(error, FileNotFoundError):
        return f"the command {config.command!r} was not found"
    if isinstance(error, PermissionError):
        return f"the command {config.command!r} may not be executed"
    return f"the command {config.command!r} cannot be run ({error.strerror or type(error).__name__})"


class StderrBuffer:
    """The last bytes that a process wrote to standard error, and how the process ended."""

    def __init__(self, size: int) -> None:
        self.exit_status = ""
        self._size = size
        self._parts: deque[bytes] = deque()
        self._length = 0

    def add(self, data: bytes) -> None:
        """Append data and drop the oldest."""
        self._parts.append(data[-self._size :] if self._size else b"")
        self._length += len(self._parts[-1])
        while self._length > self._size and self._length - len(self._parts[0]) >= self._size:
            self._length -= len(self._parts.popleft())

    def text(self, chars: int) -> str:
        """Return the last `chars` characters."""
        return b"".join(self._parts)[-self._size :].decode("utf-8", "replace")[-chars:] if self._size else ""


class ChildProcess(asyncio.SubprocessProtocol):
    """The pipes of one process: standard output becomes messages, standard error goes into a buffer."""

    def __init__(self, max_line_bytes: int, errors: StderrBuffer, pace: Pace) -> None:
        self._max_line_bytes = max_line_bytes
        self._reader = LineReader(max_line_bytes)
        self._errors = errors
        self._pace = pace
        self._unread = b""
        self._lines: deque[bytes | SkippedLine] = deque()
        self._queue_full = self._resting = self._closed = False
        self._transport: asyncio.SubprocessTransport
        self.messages = MessageQueue(lambda: self)
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

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Note that the server reads again."""
        self.writable.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take output of the server. Lines that are not JSON-RPC are skipped and never end the session."""
        pause_s = self._pace.spend(len(data) * READ_S)
        if fd == 1:
            self._unread = self._unread + data if self._unread else data
            self._read()
            return
        self._errors.add(data)
        if pause_s:
            self._pipe(fd).pause_reading()
            asyncio.get_running_loop().call_later(pause_s, self._pipe(fd).resume_reading)

    def pause_reading(self) -> None:
        """Decode no further, because many messages wait for the SDK."""
        self._queue_full = True

    def resume_reading(self) -> None:
        """Decode what was received meanwhile."""
        self._queue_full = False
        self._read()

    def _read(self) -> None:
        """Decode what was received, as far as the pace allows. Until then the server waits in its own write."""
        started = time.monotonic()
        while (self._lines or self._unread) and not self._queue_full and not self._resting:
            cost_s = self._read_a_little()
            now = time.monotonic()
            if pause_s := self._pace.spend(now - started + cost_s):
                self._resting = True
                asyncio.get_running_loop().call_later(pause_s, self._rested)
            started = now
        waiting = bool(self._lines or self._unread)
        if self._reader.skipped_bytes > self._max_line_bytes * _ENDLESS_LINES or (self._closed and not waiting):
            self.end()
        elif waiting:
            self._pipe(1).pause_reading()
        else:
            self._pipe(1).resume_reading()

    def _rested(self) -> None:
        self._resting = False
        self._read()

    def _read_a_little(self) -> float:
        """Pass the message of one line on, or look for further lines. Return how long the rest of the work takes."""
        if not self._lines:
            # Without the end of a line there is nothing to decode, however much it is.
            size = _PART_BYTES if b"\n" in self._unread else len(self._unread)
            part, self._unread = self._unread[:size], self._unread[size:]
            self._lines.extend(self._reader.feed(part))
            return 0.0
        started = time.monotonic()
        message = read_line(self._lines.popleft(), self._max_line_bytes)
        if message is None:
            return 0.0
        self.messages.put(message)
        # A long result is looked through and written again, which takes about as long as it took to decode.
        return REQUEST_S if isinstance(message, JSONRPCRequest) else max(MESSAGE_S, time.monotonic() - started)

    def _pipe(self, fd: int) -> asyncio.ReadTransport:
        return cast("asyncio.ReadTransport", self._transport.get_pipe_transport(fd))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - required by asyncio
        """Note that a pipe was closed."""
        if fd == 1:
            self._end_of_output()
        elif fd == 0:
            self.writable.set()

    def process_exited(self) -> None:
        """Note how the process ended."""
        code = self._transport.get_returncode() or 0
        self._errors.exit_status = f"exit {code}" if code >= 0 else f"signal {-code}"
        self.exited.set()
        # The last answer may still be in the pipe. A grandchild may hold the pipe open, so we do not wait for its end.
        asyncio.get_running_loop().call_later(_LAST_OUTPUT_S, self._end_of_output)

    def _end_of_output(self) -> None:
        """End as soon as all that was received is decoded."""
        self._closed = True
        self._read()

    def end(self) -> None:
        """Expect nothing more from the server, and wake everyone who waits for it."""
        self.messages.end()
        self.writable.set()


class ChildWriteStream(MessageStream):
    """Messages to the server."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child

    async def send(self, item: SessionMessage) -> None:
        """Write one message once. While the server does not read, requests wait before their first byte is written."""
        line = encode_message(item)
        if isinstance(item.message, JSONRPCNotification) and not self._child.writable.is_set():
            return
        await self._child.writable.wait()
        if self.closed:
            raise anyio.ClosedResourceError
        if self._child.messages.ended or self._child.exited.is_set() or self._child.stdin.is_closing():
            raise anyio.BrokenResourceError
        self._child.stdin.write(line)


def read_line(line: bytes | SkippedLine, max_line_bytes: int) -> JSONRPCMessage | None:
    """Return the message of a line, an error in place of an answer that was too long, or None for anything else."""
    if isinstance(line, SkippedLine):
        return _unread(line, f"the answer has {line.size} bytes; more than {max_line_bytes} are not read")
    try:
        return decode_message(line)
    except TooManyValuesError as error:
        return _unread(SkippedLine.of(line), f"the answer is not read: {error}")
    except ValueError:
        return None


def _unread(line: SkippedLine, message: str) -> JSONRPCError | None:
    """Build an error for the skipped answer. Its id is written first by Python servers and last by TypeScript ones."""
    start, end = line.start[:_ID_WITHIN], line.end[-_ID_WITHIN:]
    match = _ID.search(start) or next(reversed(list(_ID.finditer(end))), None)
    if match is None or b'"method"' in start:
        return None
    text = match[1]
    request_id = text[1:-1].decode("utf-8", "replace") if text[:1] == b'"' else int(text)
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=TOO_LONG, message=message))
