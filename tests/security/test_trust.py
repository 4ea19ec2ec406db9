"""Trust in definitions: every change is noticed, and decisions persist."""

from __future__ import annotations

import base64
import copy
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from definitions import OTHER, POISON, decide, scout_over
from downstreams import until
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Caller, Scout, Settings, ToolNotFoundError
from toolscout.config import Config, ServerConfig
from toolscout.errors import DefinitionChangedError, StoreError
from toolscout.indexing.normalize import normalize_tool
from toolscout.indexing.prepare import prepare_server
from toolscout.indexing.trust import CHANGED, NEW, judge_tool, shown_version
from toolscout.models import KEPT_OUT, Overlay, Pin, Scope, Server

SERVER = Server(key="notes", title="notes")
HERE = Scope()
WHOLE: dict[str, Any] = {
    "name": "sync",
    "title": "Sync notes",
    "description": "Sync the notes of a user with the server.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where the notes are.", "default": "notes"},
            "mode": {"enum": ["fast", "whole"], "title": "How"},
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
        },
        "required": ["path"],
        "$defs": {"unused": {"description": "Nothing refers to it."}},
    },
    "outputSchema": {"type": "object", "properties": {"count": {"type": "integer", "description": "How many."}}},
    "annotations": {"title": "Sync", "readOnlyHint": True},
    "_meta": {"vendor/x": {"note": "for hosts", "list": ["one", "two"]}},
    "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png"}],
    "execution": {"taskSupport": "optional"},
    "examples": ["sync my notes"],
    "keywords": ["notes"],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of every string of a definition, including the keys of its objects (with a final None)."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, child in value.items():
            if path:
                yield (*path, key, None)
            yield from places(child, (*path, key))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from places(child, (*path, number))


PLACES = [path for path in places(WHOLE) if path != ("name",)]


def changed_at(path: tuple[Any, ...], change: Callable[[str], str]) -> dict[str, Any]:
    """Return the definition with one string of it changed: a value, or the name of a field."""
    raw = copy.deepcopy(WHOLE)
    *way, last = path[:-1] if path[-1] is None else path
    inner: Any = raw
    for step in way:
        inner = inner[step]
    if path[-1] is None:
        inner[change(last)] = inner.pop(last)
    else:
        inner[last] = change(inner[last])
    return raw


def pinned(raw: dict[str, Any], **options: Any) -> Any:
    """Judge a definition against the pin of the whole one."""
    first = judge_tool(tool_of(WHOLE), None, screened=True, strict=False, now=1.0)
    options = {"screened": False, "strict": False, "now": 2.0, **options}
    return judge_tool(tool_of(raw), first.pin, **options)


def tool_of(raw: dict[str, Any], server: Server = SERVER) -> Any:
    return normalize_tool(raw, server, Settings())


@guarantee("catalog:pin")
@pytest.mark.parametrize("path", PLACES, ids=lambda path: "/".join(map(str, path)))
def test_one_changed_character_in_any_string_is_seen_and_withheld_when_strict(path: tuple[Any, ...]) -> None:
    for change in (lambda text: text + "x", lambda text: text + "\u200b", lambda text: text[:-1] + "\u0430"):
        raw = changed_at(path, change)
        assert pinned(raw).changed
        assert not pinned(raw).tool.quarantine_reason
        assert pinned(raw, strict=True).tool.quarantine_reason == CHANGED


@guarantee("catalog:pin")
@examples(max_examples=500, deadline=None)
@given(st.sampled_from(PLACES), st.integers(0, 200), st.characters(codec="utf-8"))
def test_any_character_put_anywhere_is_seen(path: tuple[Any, ...], at: int, char: str) -> None:
    def put(text: str) -> str:
        place = at % (len(text) + 1)
        return text[:place] + char + text[place:]

    import unicodedata

    original = "x".join(str(step) for step in path)
    raw = changed_at(path, put)
    same = unicodedata.normalize("NFC", json.dumps(raw, sort_keys=True, ensure_ascii=False)) == json.dumps(
        WHOLE, sort_keys=True, ensure_ascii=False
    )
    assert pinned(raw).changed != same, original


@guarantee("catalog:pin")
def test_what_the_operator_writes_over_a_definition_is_no_change_of_the_servers() -> None:
    overlaid = replace(
        SERVER,
        trusted=False,
        overlay=Overlay(tags=("paper",), category="office"),
        tool_overlays={"sync": Overlay(description="My own words.", keywords=("k",), enabled=False)},
    )
    first = judge_tool(tool_of(WHOLE), None, screened=True, strict=True, now=1.0)
    again = judge_tool(tool_of(WHOLE, overlaid), first.pin, screened=True, strict=True, now=2.0)
    assert (again.changed, again.tool.quarantine_reason) == (False, "")


@guarantee("catalog:quarantine")
def test_an_overlay_that_goes_uncovers_no_text_that_was_never_screened() -> None:
    covered = replace(SERVER, tool_overlays={"sync": Overlay(description="My own words.")})
    raw = {**WHOLE, "description": POISON}
    first = judge_tool(tool_of(raw, covered), None, screened=True, strict=False, now=1.0)
    assert not first.tool.quarantine_reason
    assert judge_tool(tool_of(raw), first.pin, screened=True, strict=False, now=2.0).tool.quarantine_reason


@guarantee("catalog:quarantine")
def test_a_definition_is_screened_again_when_the_rules_change() -> None:
    raw = {**WHOLE, "description": POISON}
    pin = judge_tool(tool_of(raw), None, screened=True, strict=False, now=1.0).pin
    assert pin is not None
    _, screened_definition = pin.screened.split(":", 1)
    older = replace(pin, screened=f"1:{screened_definition}", found="")
    judged = judge_tool(tool_of(raw), older, screened=True, strict=False, now=2.0)
    assert judged.tool.quarantine_reason
    assert judged.pin == pin
    assert not judge_tool(tool_of(raw), replace(pin, found=""), screened=True, strict=False, now=2.0).pin


@guarantee("catalog:pin")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("screened", [False, True])
def test_what_is_kept_out_stays_out_also_when_it_changes(strict: bool, screened: bool) -> None:
    pin = Pin(key="notes__sync", fingerprint=tool_of(WHOLE).fingerprint, verdict="kept_out")
    for raw in (WHOLE, {**WHOLE, "description": "Harmless."}):
        assert (
            judge_tool(tool_of(raw), pin, screened=screened, strict=strict, now=2.0).tool.quarantine_reason == KEPT_OUT
        )


@guarantee("catalog:pin")
def test_an_approval_covers_the_approved_definition_only() -> None:
    raw = {**WHOLE, "description": POISON}
    pin = Pin(key="notes__sync", fingerprint=tool_of(raw).fingerprint, verdict="approved")
    assert not judge_tool(tool_of(raw), pin, screened=True, strict=True, now=2.0).tool.quarantine_reason
    other = judge_tool(tool_of({**raw, "description": POISON + "!"}), pin, screened=True, strict=False, now=2.0)
    assert (other.changed, bool(other.tool.quarantine_reason)) == (True, True)


def rows(description: str = "Sync the notes.", *more: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"server": "notes", "name": "sync", "description": description}, *more]


@guarantee("catalog:pin")
async def test_a_change_is_reported_with_both_definitions_until_it_is_approved() -> None:
    async with scout_over(rows("Sync the notes."), rows("Sync the notes!", OTHER)) as scout:
        report = await scout.index_tools(rows("Sync the notes!", OTHER))
        assert (report.offered, report.quarantined) == (("notes__sync",), ())
        (change,) = await scout.decisions.changes(HERE)
        assert (change.key, change.quarantine_reason, change.changed, change.waits) == ("notes__sync", "", True, True)
        assert change.before
        assert change.before["description"] == "Sync the notes."
        assert change.after["description"] == "Sync the notes!"
        await decide(scout, HERE, ["notes__sync"], "approved")
        assert await scout.decisions.changes() == []
        report = await scout.index_tools(rows("Sync the notes!", OTHER))
        assert (report.offered, report.unchanged, report.changed) == ((), 2, 0)


@guarantee("catalog:pin")
async def test_strict_mode_withholds_a_changed_tool_until_it_is_approved() -> None:
    async with scout_over(rows("Sync.", OTHER), strict_definitions=True) as scout:
        assert len(await scout.list_tools()) == 2
        report = await scout.index_tools(rows("Sync!", OTHER))
        assert [item.reason for item in report.quarantined] == [CHANGED]
        assert [match.tool.key for match in await scout.list_tools()] == ["notes__list"]
        with pytest.raises(ToolNotFoundError):
            await scout.call_tool("notes__sync", {})
        await decide(scout, HERE, ["notes__sync"], "approved")
        assert len(await scout.list_tools()) == 2
        await scout.index_tools(rows("Sync!", OTHER))
        assert len(await scout.list_tools()) == 2
        await scout.index_tools(rows("Sync.", OTHER))
        assert len(await scout.list_tools()) == 1, "the way back is a change too"


@guarantee("catalog:pin")
async def test_a_tool_that_goes_and_comes_back_changed_is_noticed() -> None:
    async with scout_over(rows("Sync.", OTHER), [OTHER], rows("Sync!", OTHER)) as scout:
        (change,) = await scout.decisions.changes(HERE)
        assert change.before
        assert (change.before["description"], change.after["description"]) == ("Sync.", "Sync!")


@guarantee("catalog:pin")
async def test_a_server_that_goes_and_comes_back_changed_is_noticed() -> None:
    async with scout_over(rows("Sync.", OTHER)) as scout:
        await scout.remove_server("notes")
        report = await scout.index_tools(rows("Sync!", OTHER))
        assert report.offered == ("notes__sync",)
        (change,) = await scout.decisions.changes(HERE)
        assert (change.changed, change.before) == (True, None)


@guarantee("catalog:pin")
async def test_strict_mode_withholds_tools_that_a_known_server_adds() -> None:
    async with scout_over(rows("Sync."), strict_definitions=True) as scout:
        for _ in range(2):
            report = await scout.index_tools(rows("Sync.", OTHER))
            assert [item.reason for item in report.quarantined] == [NEW]
            assert [match.tool.name for match in await scout.list_tools()] == ["sync"]
        await decide(scout, HERE, ["notes__list"], "approved")
        report = await scout.index_tools(rows("Sync.", OTHER))
        assert (report.quarantined, report.offered) == ((), ())
        assert len(await scout.list_tools()) == 2


@guarantee("catalog:pin")
async def test_scopes_have_pins_of_their_own() -> None:
    async with scout_over(rows("Sync.")) as scout:
        ann = Caller(tenant="acme", user="ann")
        await scout.index_tools(rows("Something else."), caller=ann)
        assert await scout.decisions.changes() == []
        await scout.index_tools(rows("Changed."), caller=ann)
        (change,) = await scout.decisions.changes()
        assert change.scope == ann.scope
        with pytest.raises(ToolNotFoundError):
            await decide(scout, Scope(tenant="other"), ["notes__sync"], "approved")
        await decide(scout, ann.scope, ["notes__sync"], "approved")
        assert await scout.decisions.changes() == []


@guarantee("catalog:approve")
async def test_what_is_approved_is_what_was_shown() -> None:
    async with scout_over(rows("Sync."), rows("Sync!"), strict_definitions=True) as scout:
        (shown,) = await scout.decisions.changes(HERE)
        with pytest.raises(DefinitionChangedError) as caught:
            await scout.decisions.decide(HERE, [shown.key], "approved")
        assert f"toolscout approve {shown.approval}" in caught.value.hint
        await scout.index_tools(rows(POISON))
        for outdated in (shown.approval, shown.approval[:-1], shown.approval[:-12]):
            with pytest.raises(DefinitionChangedError, match="nothing was decided"):
                await scout.decisions.decide(HERE, [outdated], "approved")
        assert len(await scout.list_tools()) == 0
        await scout.index_tools(rows("Sync!"))
        await scout.decisions.decide(HERE, [shown.approval], "approved")
        assert len(await scout.list_tools()) == 1


@guarantee("catalog:pin")
async def test_an_unknown_key_among_several_decides_nothing() -> None:
    async with scout_over(rows("Sync."), rows("Sync!")) as scout:
        with pytest.raises(ToolNotFoundError) as caught:
            await decide(scout, HERE, ["notes__sync", "notes__snyc"], "approved")
        assert "notes__sync" in caught.value.suggestions
        assert len(await scout.decisions.changes()) == 1


@guarantee("catalog:pin")
async def test_nobody_decides_while_another_process_indexes_the_server() -> None:
    async with scout_over(rows("Sync."), rows("Sync!"), lease_s=0.1) as scout:
        await scout.store.lease("index:local/:notes", "another process", 60.0)
        with pytest.raises(StoreError, match="nothing was changed"):
            await decide(scout, HERE, ["notes__sync"], "approved")
        await scout.store.release("index:local/:notes", "another process")
        await decide(scout, HERE, ["notes__sync"], "approved")


SERVES = """
import json, sys
TOOLS = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"tools": TOOLS} if message["method"] == "tools/list" else {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        known = message["method"] in ("tools/list", "initialize")
        said = {"result": result} if known else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
"""


def serving(**tools: str) -> Config:
    """Write the config of a live server with these tools, by name and description."""
    listed = [{"name": name, "description": reply, "inputSchema": {"type": "object"}} for name, reply in tools.items()]
    args = ("-c", SERVES, json.dumps(listed))
    return Config(servers=(ServerConfig(title="notes", transport="stdio", command=sys.executable, args=args),))


@pytest.mark.process
@guarantee("catalog:pin", "catalog:quarantine")
async def test_a_live_server_that_becomes_hostile_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="toolscout")
    settings = Settings(store="memory:", reindex_interval_s=0.05)
    async with Scout.open(serving(sync="Sync the notes."), settings=settings, embedder=HashEmbedder()) as scout:
        assert len(await scout.list_tools()) == 1
        assert not caplog.records
        await (await scout.connect(serving(sync="Sync them.", evil=POISON))).settled()
        await until(lambda: len(caplog.records) == 2)
        assert [match.tool.key for match in await scout.list_tools()] == ["notes__sync"]
    assert "'notes__evil' is held back: " in caplog.text
    assert "'notes__sync' has another definition" in caplog.text
    assert "toolscout changes" in caplog.text


@pytest.mark.process
@guarantee("catalog:quarantine")
async def test_each_waiting_decision_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="toolscout")
    settings = Settings(store="memory:", reindex_interval_s=0.05)
    stays = {"stays": POISON}
    async with Scout.open(serving(**stays), settings=settings, embedder=HashEmbedder()) as scout:
        for number, times in ((1, 1), (2, 1), (1, 2)):
            await scout.connect(serving(**stays, **{f"evil{number}": POISON}))
            await until(lambda number=number, times=times: caplog.text.count(f"'notes__evil{number}'") == times)  # type: ignore[misc]
    assert caplog.text.count("'notes__stays'") == 1


@guarantee("catalog:quarantine")
async def test_only_the_word_of_a_trusted_server_makes_a_tool_read_only() -> None:
    raw = {"name": "look", "annotations": {"readOnlyHint": True}}
    assert tool_of(raw).read_only
    assert not tool_of(raw, replace(SERVER, trusted=False)).read_only
    trusted_tool = replace(SERVER, trusted=False, tool_overlays={"look": Overlay(trusted=True)})
    assert tool_of(raw, trusted_tool).read_only


@guarantee("catalog:quarantine")
@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"icons": [{"src": f"https://img.example/a.png?{POISON}"}]}, "/icons/0/src"),
        ({"execution": {"note": POISON}}, "/execution/note"),
        ({"vendorHint": POISON}, "/vendorHint"),
    ],
)
def test_text_in_fields_that_no_agent_gets_is_screened_too(fields, where):
    honest = {**WHOLE, "icons": [{"src": f"data:image/png;base64,{base64.b64encode(bytes(range(256)) * 40).decode()}"}]}
    stored = prepare_server(SERVER, [honest], {}, Settings())
    assert not stored.quarantined
    prepared = prepare_server(SERVER, [{**WHOLE, **fields}], {}, Settings(), pins={pin.key: pin for pin in stored.pins})
    [poisoned] = prepared.quarantined
    assert f" in {where}: " in poisoned.reason
    [pin] = prepared.pins
    again = prepare_server(SERVER, [{**WHOLE, **fields}], {}, Settings(), pins={pin.key: pin})
    assert again.quarantined == prepared.quarantined


@guarantee("catalog:approve")
def test_the_version_that_an_approval_names_is_too_long_for_two_definitions_to_share_it():
    bits = 4 * len(shown_version(tool_of(WHOLE)))
    assert bits // 2 >= 80, "a server chooses both definitions, so half of the bits count"
