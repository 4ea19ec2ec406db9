"""A process that forks writers of editions, for tests that kill them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE_S = 60.0


class Writers:
    """The process that forks writers, and its output."""

    def __init__(self) -> None:
        script = Path(__file__).parent / "editions.py"
        self._process = subprocess.Popen(
            [sys.executable, str(script), "loop"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        self._left = b""

    def start(self, path: Path | str, first: int, kill_at: int = 0) -> int:
        """Fork a writer and return its process id."""
        assert self._process.stdin
        self._process.stdin.write(f"{first} {kill_at} {path}\n".encode())
        self._process.stdin.flush()
        return next(number for word, number in self.said() if word == "writer")

    def said(self, patience_s: float = PATIENCE_S) -> Iterator[tuple[str, int]]:
        """Yield the lines of the output, each a word and a number, until `patience_s` have passed."""
        assert self._process.stdout
        until = time.monotonic() + patience_s
        while True:
            while b"\n" in self._left:
                line, _, self._left = self._left.partition(b"\n")
                word, number = line.split()
                yield word.decode(), int(number)
            if not select.select([self._process.stdout], [], [], max(until - time.monotonic(), 0))[0]:
                return
            more = os.read(self._process.stdout.fileno(), 65_536)
            assert more, "the forking process has ended"
            self._left += more

    def kill(self, writer: int, after_s: float) -> list[int]:
        """Kill the writer after a while. Return the editions that it has published."""
        early = [number for _, number in self.said(after_s)]
        os.kill(writer, signal.SIGKILL)
        return [*early, *self.last_words()]

    def last_words(self) -> list[int]:
        """Wait until the writer was killed. Return the editions that it has published."""
        published: list[int] = []
        for word, number in self.said():
            if word == "ended":
                assert number == -signal.SIGKILL
                return published
            published.append(number)
        raise TimeoutError("the writer has not ended")

    def close(self) -> None:
        """End the forking process."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()
