"""Marks the tests that start a process, and fails an unmarked test that starts one.

`make quick` runs everything without the marker `process`. A test gets it from a fixture in `PROCESS_FIXTURES`, from
`pytestmark` of its module, or from its own decorator. The guard below keeps this true: it listens to Python's audit
events, so a process that is started deep inside a library counts too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

POSTGRES_FIXTURES = {"postgres", "database", "fragile", "fragile_server"}
PROCESS_FIXTURES = POSTGRES_FIXTURES | {
    "authorization_server",
    "browser",
    "browser_page",
    "everything_http",
    "everything_server",
    "everything_sse",
    "filesystem_server",
    "git_server",
    "independent_issuer",
    "memory_server",
    "protected_server",
    "time_server",
}
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
_LOOKUPS = {"ldconfig", "gcc", "cc", "ld", "objdump"}
"""What `ctypes.util.find_library` runs when a library such as keyring is imported."""

_running: pytest.Item | None = None
_unmarked: list[str] = []


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _STARTS or _running is None or Path(str(arguments[0])).name in _LOOKUPS:
        return
    if _running.get_closest_marker("process") is None:
        _unmarked.append(f"{event}: {arguments[:2]!r:.200}")


sys.addaudithook(_listen)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by fixture, and by a parameter that names the engine; a test that needs PostgreSQL needs a process."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        parameters = getattr(item, "callspec", None)
        engines = [value for value in (parameters.params.values() if parameters else ()) if isinstance(value, str)]
        if fixtures & POSTGRES_FIXTURES or any(value.startswith("postgres") for value in engines):
            item.add_marker("postgres")
        if fixtures & PROCESS_FIXTURES or item.get_closest_marker("postgres"):
            item.add_marker("process")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Watch the fixtures of a test."""
    yield from _watched(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch the test."""
    yield from _watched(item)


def _watched(item: pytest.Item) -> Iterator[None]:
    global _running
    _running = item
    _unmarked.clear()
    try:
        yield
    finally:
        _running = None
    if _unmarked:
        pytest.fail(f"starts a process without the marker `process`: {_unmarked[0]}", pytrace=False)
