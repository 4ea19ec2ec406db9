"""The audit log: one JSON line for every call and every administrative act. Files are appended to and rotated."""

from __future__ import annotations

import errno
import getpass
import json
import logging
import os
import stat
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolscout.errors import AuditError, InputFileError, SettingError
from toolscout.models import Caller, Scope
from toolscout.telemetry.events import emit
from toolscout.telemetry.metrics import Metrics

NOWHERE = "none"
"""The value of the setting that turns the file off."""

_MAX_OLD_FILES = 10
_MAX_WAITING = 10_000
_LEAST_FREE_BYTES = 65_536
_LONGEST = 300
_PRIVATE = 0o600
_log = logging.getLogger("toolscout")
_ACTING: ContextVar[str] = ContextVar("toolscout_acting", default="")


class AuditLog:
    """Writes lines to a file. Several processes can share the file.

    A line is in the file whole or not at all. One that cannot be written, for example on a full disk, waits in memory
    and is written before the next one. Of more than `_MAX_WAITING` the oldest are lost, which is counted and written
    too. Without a path, a line is only an event for log handlers.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        max_bytes: int = 0,
        required: bool = False,
        metrics: Metrics | None = None,
    ) -> None:
        """Write to `path`, and rotate it when it exceeds `max_bytes`. Ten old files are kept.

        With `required`, `check_required` refuses calls while lines cannot be written. Each call that has a line is
        counted in `metrics` too.
        """
        self._path = path
        self._metrics = metrics or Metrics()
        self._max_bytes = max_bytes
        self._required = required
        self._waiting: deque[bytes] = deque(maxlen=_MAX_WAITING)
        self._lost = 0
        self._lock = threading.Lock()

    @classmethod
    def at(cls, path: str, max_bytes: int, *, required: bool = False, metrics: Metrics | None = None) -> AuditLog:
        """Open the log that the settings name."""
        return cls(audit_file(path), max_bytes=max_bytes, required=required, metrics=metrics)

    def check_required(self) -> None:
        """Raise AuditError if calls need a line and lines cannot be written now, or there is hardly space for one."""
        if not self._required or self._path is None:
            return
        try:
            with self._lock:
                self._write_waiting(self._path)
                os.close(self._open(self._path))
            if hasattr(os, "statvfs"):
                disk = os.statvfs(self._path.parent)
                if disk.f_bavail * disk.f_frsize < _LEAST_FREE_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise AuditError(
                f"the audit log cannot be written: {error.strerror}",
                hint="nothing was sent; the operator has to make the audit log writable, or make space for it",
            ) from error

    def check(self) -> None:
        """Raise SettingError if the file cannot be written."""
        if self._path is not None:
            try:
                os.close(self._open(self._path))
            except OSError as error:
                raise SettingError(
                    f"the audit log {self._path} cannot be written: {error.strerror}",
                    hint=f"set TOOLSCOUT_AUDIT to a file that can be written, or to {NOWHERE}",
                ) from error

    def write_call(
        self,
        caller: Caller,
        tool: str,
        *,
        server: str,
        fingerprint: str | None,
        refused: bool,
        outcome: str,
        ms: float,
        arguments: Any,
        result_bytes: int | None = None,
    ) -> None:
        """Write the line of a call. `arguments` is the shape of the arguments, without their values.

        `server` is the slug of the server, or "" if the tool does not exist for the caller. `result_bytes` is the size
        of the result as JSON, or None if there is none.
        """
        self._metrics.record_call(server, outcome, ms)
        self.write(
            "call",
            tenant=caller.tenant,
            user=caller.user,
            key_id=caller.key,
            tool=tool[:_LONGEST],
            fingerprint=fingerprint,
            decision="refused" if refused else "allowed",
            outcome=outcome,
            ms=round(ms, 3),
            bytes=result_bytes,
            arguments=arguments,
        )

    def write_act(self, act: str, scope: Scope | None = None, **fields: Any) -> None:
        """Write the line of an administrative act: who did it, and the tenant and user that it affects."""
        target = {} if scope is None else {"tenant": scope.tenant, "user": scope.owner}
        self.write(act, by=operator(), **target, **fields)

    def write(self, act: str, **fields: Any) -> None:
        """Write one line in ASCII. Other characters are escaped, so no name can break a line or colour a terminal.

        If the write fails, the line waits, and the failure is logged.
        """
        emit("audit", act=act, **fields)
        if self._path is None:
            return
        try:
            with self._lock:
                self._lost += len(self._waiting) == _MAX_WAITING  # the oldest makes room
                self._waiting.append(_line_of(act, fields))
                self._write_waiting(self._path)
        except OSError as error:
            lost = f"; {self._lost:,} lines are lost" if self._lost else ""
            _log.error("the audit log %s cannot be written: %s%s", self._path, error.strerror, lost)

    def _open(self, path: Path) -> int:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, _PRIVATE)

    def _write_waiting(self, path: Path) -> None:
        if self._lost:
            self._write_line(path, _line_of("audit.lost", {"lines": self._lost}))
            self._lost = 0
        while self._waiting:
            self._write_line(path, self._waiting[0])
            self._waiting.popleft()

    def _write_line(self, path: Path, line: bytes) -> None:
        self._rotate(path, len(line))
        handle = self._open(path)
        try:
            _append_line(handle, line)
        finally:
            os.close(handle)

    def _rotate(self, path: Path, more: int) -> None:
        if self._is_full(path, more):
            with _file_lock(path.with_name(f"{path.name}.lock")):
                if self._is_full(path, more):
                    for number in range(_MAX_OLD_FILES - 1, 0, -1):
                        with suppress(FileNotFoundError):
                            _old_file(path, number).replace(_old_file(path, number + 1))
                    path.replace(_old_file(path, 1))

    def _is_full(self, path: Path, more: int) -> bool:
        try:
            return bool(self._max_bytes) and path.stat().st_size + more > self._max_bytes
        except FileNotFoundError:
            return False


def _line_of(act: str, fields: Mapping[str, Any]) -> bytes:
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "act": act, **fields}
    return json.dumps(line, separators=(",", ":"), ensure_ascii=True, default=str).encode() + b"\n"


def audit_file(path: str) -> Path | None:
    """Return the file that the setting names, or None if it names none."""
    return Path(path).expanduser() if path not in ("", NOWHERE) else None


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines of the file and of its rotated files, oldest first. Incomplete lines are skipped."""
    paths = [*(_old_file(path, number) for number in range(_MAX_OLD_FILES, 0, -1)), path]
    files = [item for item in paths if item.exists()]
    if not files:
        raise InputFileError(f"there is no audit log at {path}", hint="the first call creates it")
    for file in files:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield row


def acting_as(caller: Caller) -> None:
    """Name a caller in the lines of the acts of this request: the acts are theirs, not the process's."""
    if caller.user or caller.key:
        name = f"{caller.tenant}/{caller.user or '-'}"
        _ACTING.set(f"{name} key {caller.key}" if caller.key else name)


def operator() -> str:
    """Return who acts: the caller of the request, or else the account that runs this process."""
    if acting := _ACTING.get():
        return acting
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "?"


def _old_file(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _append_line(handle: int, line: bytes) -> None:
    """Write a line whole, after the end of a torn one. If there is no space for all of it, take back what was written.

    The lock keeps another process from writing behind a part that is to be taken back. It ends with the handle.
    """
    locked = _flock(handle)
    before = os.fstat(handle)
    is_file = stat.S_ISREG(before.st_mode)
    if is_file and before.st_size:
        os.lseek(handle, -1, os.SEEK_END)  # Windows has no pread. Writes go to the end in any case.
        if os.read(handle, 1) != b"\n":
            line = b"\n" + line
    written = 0
    try:
        while written < len(line):
            written += os.write(handle, line[written:])
    except OSError:
        if written and locked and is_file:
            os.ftruncate(handle, before.st_size)
        raise


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Let one process at a time rotate the files."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, _PRIVATE)
    try:
        _flock(handle)
        yield
    finally:
        os.close(handle)


def _flock(handle: int) -> bool:
    """Lock a file until it is closed, and tell whether that worked. Systems without `fcntl` have no lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
    except (ImportError, OSError):
        return False
    return True
