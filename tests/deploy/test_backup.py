"""The commands of docs/deploy.md back up the catalogue of a running gateway, and restore it after it was lost."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from conftest import SharedEmbedder
from container_image import ROOT
from guarantees import guarantee
from postgres_server import PostgresServer, binary, with_database
from serving import serving
from toolscout import Scout, Settings
from toolscout.models import Scope
from toolscout.policy.api_keys import opens, split_token

pytestmark = [pytest.mark.process, guarantee("store:restore")]

ROWS = [
    {"server": "shop", "name": "list_orders", "description": "List the orders of a customer."},
    {"server": "shop", "name": "cancel_order", "description": "Cancel an order of a customer."},
    {"server": "shop", "name": "export_orders", "description": "Export the orders of all customers."},
]


def block(page: str, heading: str, number: int) -> str:
    """Return a block of text of a section of the documentation."""
    section = re.search(
        rf"^##+ {heading}\n(.*?)(?=^## |^### |\Z)", (ROOT / "docs" / page).read_text("utf-8"), re.S | re.M
    )
    assert section
    return re.findall(r"^```text\n(.*?)^```", section[1], re.S | re.M)[number]


def run(commands: str) -> None:
    """Run commands as the page has them."""
    subprocess.run(["bash", "-e", "-c", commands], check=True, timeout=60)


async def decide(store: str, embedder: SharedEmbedder) -> str:
    """Index tools, create a key, disable one tool and keep another one out. Return the key."""
    async with Scout.open(settings=Settings(store=store), embedder=embedder) as scout:
        await scout.index_tools(ROWS)
        await scout.set_enabled("shop__cancel_order", enabled=False)
        await scout.decisions.decide(Scope(), ["shop__export_orders"], "kept_out")
        return (await scout.api_keys.create(tenant="local", user="ann"))[0]


async def assert_all_is_there(store: str, key: str, embedder: SharedEmbedder) -> None:
    """Check the key, the decisions, the tools and their vectors."""
    async with Scout.open(settings=Settings(store=store), embedder=embedder) as scout:
        key_id, secret = split_token(key) or ("", "")
        found = await scout.api_keys.find(key_id, secret)
        assert found
        assert opens(found, secret, time.time())
        embedded = embedder.documents
        for query in ("list orders of a customer", "cancel an order", "export orders"):
            answer = await scout.search_tools(query)
            assert [match.tool.key for match in answer] == ["shop__list_orders"]
            assert not answer.metadata.degraded
        assert embedder.documents == embedded


async def test_sqlite_is_backed_up_while_it_is_in_use_and_restored(embedder: SharedEmbedder, tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    data.mkdir()
    backup.mkdir()

    def here(commands: str) -> str:
        return commands.replace("/var/lib/toolscout/", f"{data}/").replace("/backup/", f"{backup}/")

    store = f"sqlite:///{data / 'catalogue.db'}"
    first_key = await decide(store, embedder)
    with serving(data, "--auth") as gateway:
        async with Scout.open(settings=Settings(store=store), embedder=embedder) as scout:
            key = (await scout.api_keys.create(tenant="local", user="bob"))[0]  # so far only in the log beside the file
            run(here(block("deploy.md", "SQLite", 0)))
        gateway.process.kill()
    for file in data.glob("catalogue.db*"):
        file.write_bytes(b"lost")
    run(here(block("deploy.md", "SQLite", 1)))
    for known in (first_key, key):
        await assert_all_is_there(store, known, embedder)


@dataclass(frozen=True)
class Cluster:
    """A server with the roles and the database that docs/scaling.md sets up."""

    server: PostgresServer

    @property
    def url(self) -> str:
        return with_database(self.server.url, "tools").replace("postgres@", "toolscout@")

    def set_up(self) -> None:
        """Do what the page has an administrator do once."""
        before, after = block("scaling.md", "Setting up the database", 0).split("\\c tools\n")
        for url, script in ((self.server.url, before), (with_database(self.server.url, "tools"), after)):
            with psycopg.connect(url, autocommit=True) as admin:
                for statement in filter(str.strip, script.split(";")):
                    admin.execute(statement.encode())

    def lose(self) -> None:
        """Delete the database and its roles."""
        with psycopg.connect(self.server.url, autocommit=True) as admin:
            for statement in ("DATABASE tools WITH (FORCE)", "ROLE toolscout", "ROLE toolscout_app"):
                admin.execute(f"DROP {statement}".encode())


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    server = PostgresServer()
    server.start()
    made = Cluster(server)
    made.set_up()
    yield made
    server.remove()


async def test_postgres_is_backed_up_while_it_is_in_use_and_restored(
    cluster: Cluster, embedder: SharedEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(binary("pg_dump")).parent), prepend=":")

    def here(commands: str) -> str:
        return commands.replace("postgresql://toolscout@db/tools", cluster.url).replace("/backup/", f"{tmp_path}/")

    key = await decide(cluster.url, embedder)
    with serving(tmp_path, "--auth", "--store", cluster.url):
        run(here(block("deploy.md", "PostgreSQL", 0)))
    cluster.lose()
    cluster.set_up()
    run(here(block("deploy.md", "PostgreSQL", 1)))
    await assert_all_is_there(cluster.url, key, embedder)
