"""The process that works: it takes one piece of work after the other from its standard input."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
from contextlib import suppress
from typing import BinaryIO, Final

READY: Final = b"\x00" * 8
"""What a process writes when it has loaded its modules."""

_MEMORY_BYTES = 2 << 30
_NICENESS = 5


def _limit_process() -> None:
    """Give way to the gateway, and never take all memory of the machine."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        os.nice(_NICENESS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while head := requests.read(8):
        module, name, arguments, timeout_s = pickle.loads(requests.read(int.from_bytes(head, "big")))  # noqa: S301 - written by our own process
        # If the gateway is killed meanwhile, this ends the process, also in the middle of a pattern.
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, timeout_s * 2 + 1)
        try:
            answer = (True, getattr(importlib.import_module(module), name)(*arguments))
        except Exception as error:  # noqa: BLE001 - the gateway decides what a failure means
            answer = (False, f"{type(error).__name__}: {error}"[:1_000])
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        data = pickle.dumps(answer)
        answers.write(len(data).to_bytes(8, "big") + data)
        answers.flush()


def main() -> None:
    """Do the work that comes on standard input, until it is closed."""
    _limit_process()
    for module in ("toolscout.indexing.prepare", "toolscout.arguments", "jsonschema", "referencing"):
        importlib.import_module(module)
    answers, sys.stdout = sys.stdout, sys.stderr
    answers.buffer.write(READY)
    answers.buffer.flush()
    _serve(sys.stdin.buffer, answers.buffer)


if __name__ == "__main__":
    main()
