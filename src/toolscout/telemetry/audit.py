"""The audit log: one JSON line for every call and every administrative act, appended, rotated, never changed."""

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
"""What the setting says where no file is wanted."""

_KEPT = 10
_LONGEST = 300
_PRIVATE = 0o600
_log = logging.getLogger("toolscout")


class AuditLog:
    """Lines in a file; a process writes each of them at once, so that several can share the file.

    Without a path, a line is an event that the program's own logging may keep.
    """

    def __init__(self, path: Path | None = None, *, max_bytes: int = 0) -> None:
        """Write to `path`, moving it aside when it has grown past `max_bytes`; the last ten are kept."""
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    @classmethod
    def at(cls, path: str, max_bytes: int) -> AuditLog:
        """Open the log that the settings name."""
        return cls(Path(path).expanduser() if path not in ("", NOWHERE) else None, max_bytes=max_bytes)

    def check(self) -> None:
        """Refuse, before anything is done, a file that cannot be written."""
        if self._path is not None:
            try:
                os.close(self._open(self._path))
            except OSError as error:
                raise SettingError(
                    f"the audit log {self._path} cannot be written: {error.strerror}",
                    hint=f"let TOOLSCOUT_AUDIT name a file that can, or say {NOWHERE}",
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
        """Write the one line of a call; `arguments` are their shape already."""
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
        """Write the line of an administrative act: who did it, and the tenant and user that it is about."""
        about = {} if scope is None else {"tenant": scope.tenant, "user": scope.owner}
        self.write(act, by=operator(), **about, **fields)

    def write(self, act: str, **fields: Any) -> None:
        """Write one line. Everything but ASCII is escaped: no name in it can break a line or colour a terminal.

        A disk that is full by then stops no call: the failure is logged, and so is the line, as an event.
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
            with _one_process(path.with_name(f"{path.name}.lock")):
                if self._is_full(path, more):
                    for number in range(_KEPT - 1, 0, -1):
                        with suppress(FileNotFoundError):
                            _older(path, number).replace(_older(path, number + 1))
                    path.replace(_older(path, 1))

    def _is_full(self, path: Path, more: int) -> bool:
        try:
            return bool(self._max_bytes) and path.stat().st_size + more > self._max_bytes
        except FileNotFoundError:
            return False


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines, oldest first, of the file and of those that were moved aside; a torn line is passed over."""
    found = [item for item in (*(_older(path, number) for number in range(_KEPT, 0, -1)), path) if item.exists()]
    if not found:
        raise InputFileError(f"there is no audit log at {path}", hint="it begins with the first call")
    for item in found:
        with item.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    said = json.loads(line)
                except ValueError:
                    continue
                if isinstance(said, dict):
                    yield said


def operator() -> str:
    """Name whoever runs this process, by the account."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may know no name for its user
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "?"


def _older(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


@contextmanager
def _one_process(path: Path) -> Iterator[None]:
    """Let one process at a time move files aside; where the system has no such lock, each trusts to luck."""
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
