"""The audit log: one JSON line for every call and every administrative act. Files are appended to and rotated."""

from __future__ import annotations

import getpass
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolscout.errors import InputFileError, SettingError
from toolscout.models import Caller, Scope
from toolscout.telemetry.events import emit

NOWHERE = "none"
"""The value of the setting that turns the file off."""

_MAX_OLD_FILES = 10
_LONGEST = 300
_PRIVATE = 0o600
_log = logging.getLogger("toolscout")


class AuditLog:
    """Writes lines to a file. Each line is one write, so several processes can share the file.

    Without a path, a line is only an event for log handlers.
    """

    def __init__(self, path: Path | None = None, *, max_bytes: int = 0) -> None:
        """Write to `path`, and rotate it when it exceeds `max_bytes`. Ten old files are kept."""
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    @classmethod
    def at(cls, path: str, max_bytes: int) -> AuditLog:
        """Open the log that the settings name."""
        return cls(Path(path).expanduser() if path not in ("", NOWHERE) else None, max_bytes=max_bytes)

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
        fingerprint: str | None,
        refused: bool,
        outcome: str,
        ms: float,
        arguments: Any,
    ) -> None:
        """Write the line of a call. `arguments` is the shape of the arguments, without their values."""
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
            arguments=arguments,
        )

    def write_act(self, act: str, scope: Scope | None = None, **fields: Any) -> None:
        """Write the line of an administrative act: who did it, and the tenant and user that it affects."""
        target = {} if scope is None else {"tenant": scope.tenant, "user": scope.owner}
        self.write(act, by=operator(), **target, **fields)

    def write(self, act: str, **fields: Any) -> None:
        """Write one line in ASCII. Other characters are escaped, so no name can break a line or colour a terminal.

        If the write fails, for example on a full disk, the call continues. The failure is logged.
        """
        emit("audit", act=act, **fields)
        if self._path is None:
            return
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "act": act, **fields}
        data = json.dumps(line, separators=(",", ":"), ensure_ascii=True, default=str).encode() + b"\n"
        try:
            with self._lock:
                self._rotate(self._path, len(data))
                handle = self._open(self._path)
                try:
                    os.write(handle, data)
                finally:
                    os.close(handle)
        except OSError as error:
            _log.error("the audit log %s cannot be written: %s", self._path, error.strerror)

    def _open(self, path: Path) -> int:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _PRIVATE)

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


def operator() -> str:
    """Return the name of the account that runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "?"


def _old_file(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Let one process at a time rotate the files. Systems without `fcntl` have no lock."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, _PRIVATE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
