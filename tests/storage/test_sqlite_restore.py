"""Another file takes the place of an open catalogue, as when a backup is restored: it counts at once."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, StoreError
from toolscout.policy.api_keys import opens

pytestmark = guarantee("store:restore")

ROWS = [{"name": name, "server": "shop", "description": f"{name} an order"} for name in ("list", "cancel")]


def back_up(path: Path) -> Path:
    """Copy a catalogue that is in use, as SQLite's own backup does."""
    copy = path.with_name("backup.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def put(file: Path, place: Path) -> None:
    """Let a file take the place of another."""
    file.replace(place)


def remove(file: Path) -> None:
    file.unlink()


def write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


async def keys(scout: Scout) -> list[str]:
    return sorted(match.tool.key for match in await scout.list_tools())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalogue.db"


@pytest.fixture
async def scout(path: Path) -> AsyncIterator[Scout]:
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as opened:
        await opened.index_tools(ROWS)
        yield opened


async def test_switches_of_the_restored_file_are_seen_by_the_next_request(scout: Scout, path: Path) -> None:
    await scout.set_enabled("shop__cancel", enabled=False)
    backup = back_up(path)
    await scout.set_enabled("shop__cancel", enabled=True)
    assert await keys(scout) == ["shop__cancel", "shop__list"]
    put(backup, path)
    assert await keys(scout) == ["shop__list"]
    assert not (await scout.list_tools()).metadata.stale


async def test_a_key_that_is_revoked_in_the_restored_file_opens_nothing(scout: Scout, path: Path) -> None:
    text, key = await scout.api_keys.create(tenant="local")
    secret = text.split("_", 2)[2]
    backup = back_up(path)
    async with Scout.open(store=f"sqlite:///{backup}", embedder=HashEmbedder()) as copy:
        await copy.api_keys.revoke(key.id)
    found = await scout.api_keys.find(key.id, secret)
    assert found
    assert opens(found, secret, 1.0)
    put(backup, path)
    found = await scout.api_keys.find(key.id, secret)
    assert found
    assert not opens(found, secret, 1.0)


async def test_what_is_published_after_a_restore_is_in_the_restored_file(scout: Scout, path: Path) -> None:
    put(back_up(path), path)
    await scout.index_tools([{**ROWS[0], "name": "refund"}])
    assert await keys(scout) == ["shop__refund"]
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as other:
        assert await keys(other) == ["shop__refund"]


async def test_while_the_file_is_gone_no_key_is_looked_up_and_searches_are_stale(scout: Scout, path: Path) -> None:
    _, key = await scout.api_keys.create(tenant="local")
    backup = back_up(path)
    remove(path)
    with pytest.raises(StoreError, match="is gone"):
        await scout.api_keys.find(key.id, "x")
    with pytest.raises(StoreError, match="is gone"):
        await scout.index_tools(ROWS[:1])
    answer = await scout.search_tools("cancel an order")
    assert len(answer) == 2
    assert answer.metadata.stale
    put(backup, path)
    assert await scout.api_keys.find(key.id, "x")
    assert not (await scout.search_tools("cancel an order")).metadata.stale


async def test_a_store_whose_file_is_gone_can_be_closed(path: Path) -> None:
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as scout:
        await scout.index_tools(ROWS)
        remove(path)


async def test_a_file_that_cannot_be_read_answers_nothing_until_another_can(scout: Scout, path: Path) -> None:
    backup = back_up(path)
    letter = path.with_name("letter")
    write(letter, b"this is a letter, not a catalogue. " * 200)
    put(letter, path)
    for _ in range(2):
        with pytest.raises(StoreError, match="not a database"):
            await scout.search_tools("cancel an order")
        with pytest.raises(StoreError, match="not a database"):
            await scout.api_keys.find("x", "x")
    put(backup, path)
    assert await keys(scout) == ["shop__cancel", "shop__list"]
