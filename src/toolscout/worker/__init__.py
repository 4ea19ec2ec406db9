"""Processes of our own for work on strangers' text: such work can be stopped, and nothing else waits for it.

A pattern that backtracks holds the interpreter until it ends, also in a thread. So the screening of definitions and
the check of arguments by a schema, where they may be slow, run in a process that is killed when its time is over.
"""

from toolscout.worker.pool import WorkerPool

__all__ = ["WorkerPool"]
