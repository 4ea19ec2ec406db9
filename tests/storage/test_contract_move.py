"""Every store: a catalogue that is exported and imported into another store is the same there."""

from __future__ import annotations

import io
from typing import Any

from catalogues import OpenStore, keys, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout
from toolscout.indexing.trust import write_pin
from toolscout.models import Caller, Pin, Scope
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.scout.transfer import ArchiveReport, export_catalogue, import_catalogue
from toolscout.settings import Settings
from toolscout.storage import open_store

pytestmark = guarantee("store:move")

ANN, RED = Caller(user="ann"), Caller(tenant="red")
STRANGE = "nul \x00, lone \ud800, bidi \u202e, ümlaut 猫"
STUDIO: list[dict[str, Any]] = [
    {"name": "paint", "server": "studio", "description": "Paint a wall", "tags": ["art"], "examples": ["paint it"]},
    {"name": "forge", "server": "studio", "description": STRANGE, "output_schema": {"type": "object"}},
]
QUERIES = ("create invoice", "delete the photo", "export a calendar or a song", "paint a wall", "read recipe")


async def export_archive(store: Store) -> tuple[bytes, ArchiveReport]:
    out = io.BytesIO()
    report = await export_catalogue(store, out)
    return out.getvalue(), report


async def import_archive(store: Store, archive: bytes, progress: Any = None) -> ArchiveReport:
    return await import_catalogue(store, lambda: io.BytesIO(archive), "the archive", progress)


async def fill(store: Store) -> None:
    await publish(store, [*many(120), *STUDIO], own={"ann": [STUDIO[0]]}, embedder=HashEmbedder())
    await publish(store, many(12), tenant="red", embedder=HashEmbedder())
    await store.set_enabled(Scope(), ["many__create_invoice_00000"], False)
    await store.set_enabled(Scope(), ["studio__paint"], True)
    await store.set_enabled(ANN.scope, ["studio__paint"], False)
    pin = Pin(key="gone__away", fingerprint="f", verdict="kept_out", at=7.5, before={"description": STRANGE})
    await store.put_records([write_pin(ANN.scope, pin)])


async def answers(store: Store) -> list[Any]:
    scout = Scout(store=store, embedder=HashEmbedder(), settings=Settings())
    rankings = []
    for text in QUERIES:
        for caller in (Caller(), ANN, RED):
            answer = await scout.search_tools(text, caller=caller)
            rankings.append([(match.tool.key, match.score, match.tool.fingerprint) for match in answer])
    return rankings


async def contents(store: Store) -> list[Any]:
    return [
        (
            scope,
            await store.servers(scope),
            await store.stored_tools(scope),
            await store.switches(scope),
            [await store.stamps(scope, server.key) for server in await store.servers(scope)],
        )
        for scope in await store.scopes()
    ]


async def test_a_catalogue_moved_there_and_back_is_the_same_and_gives_the_same_top_10(new_store: OpenStore) -> None:
    first, last = (open_store(Settings(store="memory:"), Rules()) for _ in range(2))
    await first.open()
    await last.open()
    middle = await new_store()
    await fill(first)
    archive, export_report = await export_archive(first)
    import_report = await import_archive(middle, archive)
    again, _ = await export_archive(middle)
    await import_archive(last, again)
    assert again == archive
    assert (
        export_report.tools,
        export_report.servers,
        export_report.scopes,
        export_report.switches,
        export_report.unembedded,
    ) == (135, 4, 3, 3, 0)
    assert (export_report.decisions, import_report.decisions, again.count(b'"kind":"pin"')) == (1, 1, 136)
    assert (import_report.tools, import_report.vectors, import_report.unembedded) == (135, export_report.vectors, 0)
    for store in (middle, last):
        assert await contents(store) == await contents(first)
        assert await store.unembedded("hash-1") == []
        assert await answers(store) == await answers(first)
    await first.close()
    await last.close()


async def test_indexing_the_same_servers_after_a_move_finds_nothing_to_do(store: Store) -> None:
    source = open_store(Settings(store="memory:"), Rules())
    await source.open()
    await fill(source)
    await import_archive(store, (await export_archive(source))[0])
    embedder = HashEmbedder()
    scout = Scout(store=store, embedder=embedder, settings=Settings())
    report = await scout.index_tools([*many(120), *STUDIO])
    assert (report.unchanged, report.new, report.changed, report.embedded) == (122, 0, 0, 0)
    assert embedder.documents == []
    await source.close()


async def test_servers_of_the_archive_replace_those_of_the_same_key_and_others_stay(store: Store) -> None:
    source = open_store(Settings(store="memory:"), Rules())
    await source.open()
    await publish(source, [STUDIO[0]], embedder=HashEmbedder())
    archive, _ = await export_archive(source)
    await publish(store, [STUDIO[1], *many(2)], embedder=HashEmbedder())
    await import_archive(store, archive)
    assert await keys(store) == ["many__create_invoice_00000", "many__read_invoice_00001", "studio__paint"]
    await source.close()


async def test_a_store_with_another_model_keeps_it_and_the_report_counts_tools_without_a_vector(store: Store) -> None:
    source = open_store(Settings(store="memory:"), Rules())
    await source.open()
    await publish(source, STUDIO, embedder=HashEmbedder())
    archive, _ = await export_archive(source)
    await publish(store, many(3), embedder=HashEmbedder("hash-2", dimension=32))
    report = await import_archive(store, archive)
    assert (report.model_id, report.unembedded) == ("hash-2", 2)
    assert (await store.overview(Caller())).model_id == "hash-2"
    assert {tool.name for tool in await store.unembedded("hash-2")} == {"paint", "forge"}
    await source.close()


async def test_an_empty_catalogue_moves_too(new_store: OpenStore) -> None:
    one, two = await new_store(), await new_store()
    archive, report = await export_archive(one)
    assert (report.tools, report.model_id) == (0, "")
    assert len(archive.splitlines()) == 2
    assert (await import_archive(two, archive)).tools == 0
    assert await two.scopes() == []


async def test_an_import_reports_its_progress(store: Store) -> None:
    await publish(store, many(30))
    archive, _ = await export_archive(store)
    reports: list[tuple[int, int]] = []
    await import_archive(store, archive, lambda done, total: reports.append((done, total)))
    assert reports[-1] == (30, 30)
