"""The reaper: a small process that ends the servers when the gateway ends, even by a crash.

The gateway holds one end of a pipe and this file, run as a program, the other. When the gateway dies, even by
`kill -9`, the pipe closes, and the reaper ends every process group that was announced. On Linux it also ends every
process that has the gateway's mark in its environment, which finds those that started their own session.

A process can also empty its environment. `toolscout serve` therefore adopts orphans: whatever its servers start stays
below it in the tree of processes, whoever of them ends. The reaper looks at that tree every half second, and ends what
it saw last. A program that uses the library does not adopt orphans, because it may have children of its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

MARK = "TOOLSCOUT_CHILD"
"""The environment variable that marks a child, so that it can be found when its parent is gone."""

_SUBREAPER = 36
_LOOK_S = 0.5
_TERM_S = 0.5
_STEP_S = 0.02


class Reaper:
    """The gateway's side: announces process groups to the reaper, and starts the reaper again if it is gone."""

    def __init__(self, *, adopt: bool = False) -> None:
        """With `adopt`, every process below this one belongs to the servers, and none may outlive it."""
        self._adopt = adopt and _adopt_orphans()
        self._token = secrets.token_hex(8)
        self._children = 0
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._zombies: set[int] = set()

    @property
    def adopts(self) -> bool:
        """Whether orphans become children of this process."""
        return self._adopt

    def collect(self) -> None:
        """Collect adopted orphans that have ended. Those of asyncio are collected by it, and at once."""
        zombies = {pid for pid in _children(os.getpid()) if not start_of(pid) and pid != self.pid}
        for pid in zombies & self._zombies:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        self._zombies = zombies

    @property
    def pid(self) -> int | None:
        """The id of the reaper's process, if it was started."""
        return self._process.pid if self._process else None

    def mark(self) -> str:
        """Return the value of `MARK` for a new child."""
        self._children += 1
        return f"{self._token}:{self._children}"

    def add(self, group: int) -> None:
        """Announce a process group that must not outlive us."""
        self._groups.add(group)
        self._send(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Withdraw a group that has ended, before its number can be given to another."""
        self._groups.discard(group)
        self._send(f"-{group}\n")

    def close(self) -> None:
        """End all remaining groups and the reaper itself."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _send(self, line: str) -> None:
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._write(self._process, line)
                return
        if self._groups:
            self._process = self._start()
            with contextlib.suppress(OSError):
                self._write(self._process, "".join(f"+{group}\n" for group in self._groups))

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        return subprocess.Popen(  # noqa: S603 - this file, run by this interpreter
            [sys.executable, "-I", "-S", __file__, self._token, *([str(os.getpid())] if self._adopt else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={},
            bufsize=0,
        )

    @staticmethod
    def _write(process: subprocess.Popen[bytes], text: str) -> None:
        if process.stdin is not None:
            process.stdin.write(text.encode())


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a group and return whether it has processes."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def marked_processes(mark: str) -> list[int]:
    """Return the processes with this mark, or with one that starts with this token. It works on Linux only."""
    entry = f"{MARK}={mark}".encode()
    processes = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - faster without Path objects
            if name.isdigit() and int(name) != os.getpid():
                with contextlib.suppress(OSError):
                    environ = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
                    if any(item == entry or (item.startswith(entry) and ":" not in mark) for item in environ):
                        processes.append(int(name))
    return processes


def kill_marked(mark: str, number: int) -> bool:
    """Send a signal to every marked process and return whether there was one."""
    processes = marked_processes(mark)
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, number)
    return bool(processes)


def _adopt_orphans() -> bool:
    """Become the parent of every orphan below this process. It works on Linux only."""
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0) == 0)


def descendants(root: int) -> dict[int, str]:
    """Return the processes below one, each with the time of its start, by which it is known again."""
    starts: dict[int, str] = {}
    queue = [root]
    while queue:
        children = [pid for pid in _children(queue.pop()) if pid not in starts and pid != os.getpid()]
        starts |= {pid: start_of(pid) for pid in children}
        queue += children
    return {pid: start for pid, start in starts.items() if start}


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                children += map(int, (task / "children").read_text().split())
    return children


def start_of(pid: int) -> str:
    """Return when a process started, "" if there is none or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _signal_adopted(adopted: Mapping[int, str], number: int) -> bool:
    """Send a signal to the processes that were seen, and return whether one of them is still there."""
    alive = [pid for pid, start in adopted.items() if start_of(pid) == start]
    for pid in alive:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
    return bool(alive)


def _end(groups: Iterable[int], token: str, adopted: Mapping[int, str]) -> None:
    """End groups, marked processes and adopted ones: with SIGTERM, then with SIGKILL."""
    for number, grace_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _TERM_S)):
        alive = [group for group in groups if signal_group(group, number)]
        others = [kill_marked(token, number), _signal_adopted(adopted, number)]
        if not (alive or any(others)):
            return
        for _ in range(int(grace_s / _STEP_S)):
            time.sleep(_STEP_S)
            groups_alive = any(signal_group(group, 0) for group in alive)
            if not (groups_alive or marked_processes(token) or _signal_adopted(adopted, 0)):
                return


def main() -> None:
    """Wait for the end of the gateway, then end its servers."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    gateway = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    adopted: dict[int, str] = {}
    groups: set[int] = set()
    rest = b""
    while True:
        if gateway:
            # Once the gateway is dead, what it had adopted is no longer below it. So the last view counts.
            adopted = descendants(gateway) or adopted
            if not select.select([0], [], [], _LOOK_S)[0]:
                continue
        if not (data := os.read(0, 65_536)):
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
    for pid in list(adopted):
        adopted |= descendants(pid)
    _end(groups, sys.argv[1], adopted)


if __name__ == "__main__":
    main()
