"""The archive of a catalogue: a broken one is refused with its line, before anything is imported."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from catalogues import many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.errors import InputFileError
from toolscout.indexing.archive import (
    ArchivedSwitch,
    ArchivedTool,
    ArchiveHeader,
    read_items,
    write_end,
    write_items,
)
from toolscout.models import Caller, Pin, Scope, Server, Tool
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.scout.transfer import export_catalogue, import_catalogue
from toolscout.settings import Settings
from toolscout.storage import open_store

pytestmark = guarantee("store:move")

INFINITE = base64.b64encode(bytes.fromhex("007c") * 64).decode()


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """Return an empty store."""
    empty = open_store(Settings(store="memory:"), Rules())
    await empty.open()
    yield empty
    await empty.close()


@pytest.fixture
async def archive() -> bytes:
    """Return a whole archive with an item of every kind."""
    source, out = open_store(Settings(store="memory:"), Rules()), io.BytesIO()
    await source.open()
    await publish(source, many(40), own={"ann": many(2)}, embedder=HashEmbedder())
    await source.set_enabled(Scope(), ["many__create_invoice_00000"], False)
    await export_catalogue(source, out)
    await source.close()
    return out.getvalue()


async def import_archive(store: Store, archive: bytes) -> None:
    await import_catalogue(store, lambda: io.BytesIO(archive), "the archive")


def first_of(rows: list[dict[str, Any]], kind: str) -> int:
    return next(number for number, row in enumerate(rows) if row.get("kind") == kind)


def change(kind: str, **fields: Any) -> Callable[[list[Any]], int]:
    def edit(rows: list[Any]) -> int:
        number = first_of(rows, kind)
        rows[number].update(fields)
        return number + 1

    return edit


def twice(kind: str) -> Callable[[list[Any]], int]:
    def edit(rows: list[Any]) -> int:
        number = first_of(rows, kind)
        rows.insert(number, rows[number])
        return number + 2

    return edit


def replace_row(number: int, row: Any) -> Callable[[list[Any]], int]:
    def edit(rows: list[Any]) -> int:
        rows[number] = row
        return number + 1 if number >= 0 else len(rows) + number + 1

    return edit


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (replace_row(0, {"format": "something else"}), "does not begin with"),
        (replace_row(0, {"format": "toolscout-catalogue", "version": 2, "model": ""}), "of version 2"),
        (replace_row(3, []), "not a JSON object"),
        (replace_row(3, {"kind": "secret"}), "unknown kind"),
        (replace_row(1, {"kind": "server", "key": "a", "title": "a", "trusted": True}), "before any scope"),
        (twice("scope"), "comes twice"),
        (twice("server"), "comes twice"),
        (twice("tool"), "comes twice"),
        (change("scope", tenant=""), "`tenant` must not be empty"),
        (change("scope", owner=7), "`owner` must be text"),
        (change("tool", server="elsewhere"), "not in its scope"),
        (change("tool", key="elsewhere__x"), "does not consist of its server and its name"),
        (change("tool", name="delete_repo"), "does not consist of its server and its name"),
        (change("tool", description="x" * 40_000), "its description has 40,000 characters"),
        (change("tool", input_schema={"a": "x" * 300_000}), "its input_schema has 300,008 bytes"),
        (change("tool", meta={"a": "x" * 300_000}), "bytes beside its schemas"),
        (change("tool", meta={"a": "x" * 9_000_000}), "it has more than 8,388,608 bytes"),
        (change("tool", fingerprint=""), "`fingerprint` must not be empty"),
        (change("tool", tags=["art", 1]), "`tags.1` must be text"),
        (change("tool", name=None), "`name` must be text"),
        (change("tool", tags="art"), "`tags` must be a list"),
        (change("tool", input_schema=[]), "`input_schema` must be an object"),
        (change("tool", enabled="no"), "`enabled` must be true or false"),
        (change("tool", stamp=None), "`stamp` must be text"),
        (change("switch", enabled=1), "`enabled` must be true or false"),
        (twice("pin"), "comes twice"),
        (change("pin", key=""), "`key` must not be empty"),
        (change("pin", fingerprint=None), "`fingerprint` must be text"),
        (change("pin", verdict="trusted"), "`verdict` is wrong: Input should be 'seen', 'approved' or 'kept_out'"),
        (change("pin", at="now"), "`at` must be a number"),
        (change("pin", at=float("nan")), "`at` must be a finite number"),
        (change("pin", before=[]), "`before` must be an object"),
        (change("end", pin=0), "but 42 came"),
        (change("vector", text="zz"), "hexadecimal"),
        (change("vector", text="00"), "not a hash of 16 bytes"),
        (change("vector", f2="???"), "not base64"),
        (change("vector", f2="AAA="), None),
        (change("vector", f2=INFINITE), "a number that is not finite"),
        (change("end", tool=1), "but 42 came"),
        (replace_row(-1, {"kind": "tool"}), None),
    ],
)
@guarantee("catalog:archive")
async def test_a_broken_archive_is_refused_with_its_line_and_nothing_is_imported(
    store: Store, archive: bytes, broken: Callable[[list[Any]], int], reason: str | None
) -> None:
    rows = [json.loads(line) for line in archive.splitlines()]
    number = broken(rows)
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    with pytest.raises(InputFileError, match=reason) as caught:
        await import_archive(store, lines)
    if reason:
        assert f"the archive, line {number}: " in caught.value.message
    assert await store.scopes() == []
    assert (await store.overview(Caller())).generation == 0


@pytest.mark.parametrize("count", [0, 1, 40, -1])
async def test_an_archive_that_was_cut_off_is_refused(store: Store, archive: bytes, count: int) -> None:
    cut = b"".join(archive.splitlines(keepends=True)[:count])
    with pytest.raises(InputFileError, match="before its last line"):
        await import_archive(store, cut)
    with pytest.raises(InputFileError, match="it is not JSON"):
        await import_archive(store, cut + b'{"kind": "to')
    assert await store.scopes() == []


async def test_a_line_nested_without_end_is_refused(store: Store) -> None:
    with pytest.raises(InputFileError, match="line 1: "):
        await import_archive(store, b"[" * 100_000 + b"\n")


def test_an_item_comes_back_as_it_was_written_also_text_that_utf8_cannot_encode() -> None:
    tool = Tool(
        key="mail__send",
        id="\ud800",
        server="mail",
        server_title="Mail",
        name="send",
        meta={"\udfff": ["\ud800"]},
        tags=("a", "\ud800"),
        examples=({"to": "ann"}, 1),
        fingerprint="f" * 64,
        quarantine_reason="kept out by hand",
    )
    items = [
        ArchiveHeader(model_id=""),
        Scope(),
        Server(key="mail", title="Mail"),
        ArchivedTool(tool=tool, stamp="s"),
        ArchivedSwitch(key="mail__send", enabled=False),
        Pin(key="mail__send", fingerprint="f" * 64, verdict="approved", at=1.5, before={"name": "\ud800"}),
    ]
    lines = [*write_items(cast("Any", items)), write_end({"scope": 1, "server": 1, "tool": 1, "switch": 1, "pin": 1})]
    assert list(read_items(lines, "the archive")) == items
    assert json.loads(lines[3])["held"] == "kept out by hand"


def test_a_tool_of_an_earlier_version_gets_defaults_for_fields_that_it_lacks() -> None:
    tool = {"key": "a__b", "id": "a__b", "server": "a", "server_title": "a", "name": "b", "fingerprint": "f"}
    rows = [
        {"format": "toolscout-catalogue", "version": 1, "model": ""},
        {"kind": "scope", "tenant": "local"},
        {"kind": "server", "key": "a", "title": "a", "trusted": True},
        {"kind": "tool", "stamp": "", **tool, "a_field_of_another_version": 1},
        {"kind": "end", "scope": 1, "server": 1, "tool": 1},
    ]
    *_, item = read_items((json.dumps(row).encode() for row in rows), "the archive")
    assert item == ArchivedTool(tool=Tool(**cast("Any", tool)), stamp="")
