"""An imported archive brings its decisions, but cannot approve a poisoned definition."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from definitions import OTHER, POISON, OpenScout, decide, scout_over
from guarantees import guarantee
from toolscout import Scout
from toolscout.models import KEPT_OUT, Scope, Verdict
from toolscout.scout.transfer import ArchiveReport, export_catalogue, import_catalogue

pytestmark = guarantee("catalog:pin", "catalog:quarantine", "store:move")

HERE = Scope()
SYNC = {"server": "notes", "name": "sync", "description": "Sync the notes."}
EVIL = {"server": "notes", "name": "evil", "description": POISON}
CHANGED = {**SYNC, "description": "Sync the notes!"}


async def archive_of(*rows: dict[str, Any], **verdicts: Verdict) -> list[dict[str, Any]]:
    """Index rows, make decisions, and return the rows of an export."""
    out = io.BytesIO()
    async with scout_over(list(rows)) as scout:
        for name, verdict in verdicts.items():
            await decide(scout, HERE, [f"notes__{name}"], verdict)
        await export_catalogue(scout.store, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def without_pins(archive: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Omit the decisions."""
    return [{**row, "pin": 0} if row.get("kind") == "end" else row for row in archive if row.get("kind") != "pin"]


def forged(archive: list[dict[str, Any]], **lie: Any) -> list[dict[str, Any]]:
    """Change the tool of an archive, but keep its fingerprint."""
    return [
        {**row, **lie, "stamp": "another"} if row.get("kind") == "tool" and row["name"] == "sync" else row
        for row in archive
    ]


async def bring(scout: OpenScout, archive: list[dict[str, Any]]) -> ArchiveReport:
    lines = [json.dumps(row).encode() for row in archive]
    return await import_catalogue(scout.store, lambda: iter(lines), "the archive", settings=scout.settings)


async def shown(scout: Scout) -> list[str]:
    return [match.tool.name for match in await scout.list_tools()]


async def test_what_was_kept_out_stays_out_after_an_import_also_when_it_changes() -> None:
    archive = await archive_of(SYNC, OTHER, sync="kept_out")
    async with scout_over() as scout:
        report = await bring(scout, archive)
        assert (report.decisions, report.quarantined, await shown(scout)) == (1, 1, ["list"])
        (change,) = await scout.decisions.changes()
        assert (change.quarantine_reason, change.verdict) == (KEPT_OUT, "kept_out")
        for row in (SYNC, CHANGED):
            await scout.index_tools([row, OTHER])
            assert await shown(scout) == ["list"]


async def test_only_the_approved_definition_stays_approved_after_an_import() -> None:
    archive = await archive_of(EVIL, OTHER, evil="approved")
    async with scout_over() as scout:
        await bring(scout, archive)
        assert await shown(scout) == ["evil", "list"]
        report = await scout.index_tools([EVIL, OTHER])
        assert (report.unchanged, await shown(scout)) == (2, ["evil", "list"])
        await scout.index_tools([{**EVIL, "description": POISON + "!"}, OTHER])
        assert await shown(scout) == ["list"]


async def test_a_definition_that_changes_after_an_import_is_noticed() -> None:
    archive = await archive_of(SYNC)
    async with scout_over() as scout:
        await bring(scout, archive)
        report = await scout.index_tools([CHANGED])
        assert report.offered == ("notes__sync",)
        (change,) = await scout.decisions.changes()
        assert change.before is not None
        assert change.before["description"] == SYNC["description"]


async def test_a_tool_that_the_archive_calls_clean_is_screened_all_the_same() -> None:
    archive = await archive_of(EVIL, OTHER)
    for row in archive:
        if row.get("key") == "notes__evil":
            row.update({"held": ""} if row["kind"] == "tool" else {"screened": "1:x:y", "found": ""})
    async with scout_over() as scout:
        report = await bring(scout, archive)
        assert (report.quarantined, await shown(scout)) == (1, ["list"])
        (change,) = await scout.decisions.changes()
        assert " in /description: " in change.quarantine_reason


async def test_a_pin_of_the_store_does_not_vouch_for_other_text_under_its_fingerprint() -> None:
    archive = await archive_of(SYNC)
    tool = next(row for row in archive if row.get("kind") == "tool")
    tool["input_schema"] = {"type": "object", "properties": {"path": {"description": POISON}}}
    tool["stamp"] = "another"
    async with scout_over([SYNC]) as scout:
        await bring(scout, archive)
        assert await shown(scout) == []


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("lie", [{"description": POISON}, {"category": POISON}, {"tags": [POISON]}, {"id": POISON}])
async def test_an_approval_of_the_store_does_not_vouch_for_other_text_however_often_it_is_imported(
    lie: dict[str, Any], pinned: bool
) -> None:
    archive = await archive_of(SYNC, OTHER, sync="approved")
    archive = forged(archive if pinned else without_pins(archive), **lie)
    async with scout_over([SYNC, OTHER]) as scout:
        await decide(scout, HERE, ["notes__sync"], "approved")
        for _ in range(2):
            report = await bring(scout, archive)
            assert (report.quarantined, await shown(scout)) == (1, ["list"])
        (change,) = await scout.decisions.changes()
        assert change.quarantine_reason
        await scout.index_tools([SYNC, OTHER])
        assert [(match.tool.name, match.tool.description) for match in await scout.list_tools()] == [
            ("list", OTHER["description"]),
            ("sync", SYNC["description"]),
        ]


async def test_other_text_under_a_known_fingerprint_is_a_change_and_withheld_when_strict() -> None:
    archive = forged(without_pins(await archive_of(SYNC)), description="Sync the notes!")
    for strict in (False, True):
        async with scout_over([SYNC], strict_definitions=strict) as scout:
            await decide(scout, HERE, ["notes__sync"], "approved")
            await bring(scout, archive)
            (change,) = await scout.decisions.changes()
            assert (change.changed, bool(change.quarantine_reason)) == (True, strict)
            assert change.before is not None
            assert change.before["description"] == SYNC["description"]


async def test_an_approval_counts_for_nothing_in_an_archive_once_the_approved_tool_is_gone() -> None:
    archive = forged(without_pins(await archive_of(SYNC, OTHER)), description=POISON)
    async with scout_over([SYNC, OTHER]) as scout:
        await decide(scout, HERE, ["notes__sync"], "approved")
        await scout.index_tools([OTHER])
        for _ in range(2):
            await bring(scout, archive)
            assert await shown(scout) == ["list"]


@pytest.mark.parametrize("strict", [False, True])
async def test_an_archive_of_the_store_itself_changes_nothing_also_where_the_tools_are_gone(strict: bool) -> None:
    archive = await archive_of(EVIL, SYNC, OTHER, evil="approved", sync="kept_out")
    async with scout_over([EVIL, SYNC, OTHER], strict_definitions=strict) as scout:
        await decide(scout, HERE, ["notes__evil"], "approved")
        await decide(scout, HERE, ["notes__sync"], "kept_out")
        for _ in range(2):
            await bring(scout, archive)
            assert await shown(scout) == ["evil", "list"]
            await scout.index_tools([EVIL, SYNC, OTHER])
            assert await shown(scout) == ["evil", "list"]
            await scout.remove_server("notes")


async def test_without_the_screen_poisoned_tools_are_imported() -> None:
    async with scout_over(quarantine=False) as scout:
        await bring(scout, await archive_of(EVIL))
        assert await shown(scout) == ["evil"]


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        ("kept_out", "approved", "kept_out"),
        ("approved", "kept_out", "kept_out"),
        ("approved", "seen", "approved"),
        ("seen", "approved", "approved"),
        ("seen", "kept_out", "kept_out"),
    ],
)
async def test_the_stricter_of_two_decisions_applies(here: Verdict, there: Verdict, expected: Verdict) -> None:
    archive = await archive_of(EVIL, evil=there)
    async with scout_over([EVIL]) as scout:
        await decide(scout, HERE, ["notes__evil"], here)
        await bring(scout, archive)
        assert await shown(scout) == (["evil"] if expected == "approved" else [])
        (pin,) = await scout.store.records("pin", HERE)
        assert pin.body["verdict"] == expected


async def test_an_archive_that_differs_from_what_the_store_pinned_is_a_change_and_withheld_when_strict() -> None:
    archive = await archive_of(CHANGED)
    for strict in (False, True):
        async with scout_over([SYNC], strict_definitions=strict) as scout:
            await bring(scout, archive)
            (change,) = await scout.decisions.changes()
            assert (change.changed, bool(change.quarantine_reason)) == (True, strict)
            assert change.before is not None
            assert change.before["description"] == SYNC["description"]


async def test_what_an_archive_says_is_held_counts_for_nothing_without_a_pin() -> None:
    archive = without_pins(await archive_of(SYNC, OTHER, sync="kept_out"))
    async with scout_over() as scout:
        report = await bring(scout, archive)
        assert (report.quarantined, await shown(scout)) == (0, ["list", "sync"])
        assert {pin.body["verdict"] for pin in await scout.store.records("pin", HERE)} == {"seen"}
