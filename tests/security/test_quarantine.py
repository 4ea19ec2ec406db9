"""A quarantined tool is on no surface, in no answer and in no count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from definitions import OTHER, POISON, decide, scout_over
from embedders import HashEmbedder
from guarantees import guarantee
from scripted import Scripted
from toolscout import Caller, Scout, Settings, ToolNotFoundError
from toolscout.gateway.server import Gateway
from toolscout.models import Scope

SEEN = Caller(user="ann")
POISONED = {
    "name": "sync",
    "description": f"Sync all the notes with the calendar. {POISON}",
    "category": "smuggling",
    "tags": ["contraband"],
    "related": ["list"],
}
HONEST = [
    {"name": "list", "description": "List all the notes.", "category": "office", "related": ["notes__sync"]},
    {"name": "read", "description": "Read one of the notes.", "category": "office", "tags": ["paper"]},
]


def server_of(*definitions: dict[str, Any]) -> Scripted:
    server = Scripted("notes")
    for definition in definitions:
        server.tool(**{"answer": None, **definition})
    return server


@asynccontextmanager
async def gateway_over(
    *definitions: dict[str, Any], surface: str, after: Callable[[Scout], Awaitable[object]] | None = None
) -> Any:
    settings = Settings(store="memory:", reindex_interval_s=0.05)
    server = server_of(*definitions)
    async with Scout.open(settings=settings, embedder=HashEmbedder(), servers=[server]) as scout:
        if after:
            await after(scout)
        gateway = Gateway(scout, settings=settings, surface=surface, core=["notes__sync"])
        async with gateway.running():
            yield gateway, server


async def keep_out(scout: Scout) -> None:
    await decide(scout, Scope(), ["notes__sync"], "kept_out")


HELD = [
    pytest.param([*HONEST, POISONED], None, id="quarantined"),
    pytest.param([*HONEST, {**POISONED, "description": "Sync all the notes."}], keep_out, id="kept out"),
]


async def asked_in_every_way(client: Client, surface: str) -> list[str]:
    """Return everything that a surface answers, about tools that exist and about tools that do not."""
    listed = await client.list_tools()
    answers = [listed.model_dump_json()]
    names = {tool.name for tool in listed.tools}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("search_tools", {"query": ["sync all the notes", "contraband smuggling", "notes__sync"], "limit": 50}),
        ("get_tool_details", {"names": ["notes__list", "notes__sync"]}),
        ("get_tool_details", {"names": "notes__sync"}),
        ("call_tool", {"name": "notes__sync", "arguments": {}}),
        ("call_read_tool", {"name": "notes__sync", "arguments": {}}),
        ("list_tools", {"detail": "full", "page_size": 1}),
        ("list_tools", {"category": "smuggling"}),
        ("list_categories", {}),
        ("find_by_tags", {"tags": ["contraband"]}),
        ("get_related_tools", {"name": "notes__list", "limit": 20}),
        ("get_related_tools", {"name": "notes__sync"}),
        ("intelligent_tool_finder", {"natural_language_query": "sync all the notes", "top_n_tools": 20}),
        ("invoke_mcp_tool", {"server_name": "notes", "tool_name": "sync", "arguments": {}}),
        ("tool_search", {"query": "sync all the notes"}),
        ("execute_tool", {"name": "notes__sync", "arguments": {}}),
    ]
    for name, arguments in asked:
        if name in names:
            answers.append((await client.call_tool(name, arguments)).model_dump_json())
    try:
        answers.append((await client.call_tool("notes__sync", {})).model_dump_json())
    except MCPError as error:
        answers.append(str(error))
    return answers


@guarantee("catalog:quarantine")
@pytest.mark.parametrize("surface", ["compact", "browse", "registry", "all"])
@pytest.mark.parametrize(("definitions", "after"), HELD)
async def test_a_quarantined_tool_does_not_exist_on_any_surface(
    surface: str, definitions: list[dict[str, Any]], after: Any
) -> None:
    async def everything(*shown: dict[str, Any], after: Any = None) -> list[str]:
        async with gateway_over(*shown, surface=surface, after=after) as (gateway, server):
            async with Client(gateway.server) as client:
                answers = await asked_in_every_way(client, surface)
            assert not [call for call in server.calls if call.name == "sync"]
        return [untimed(text) for text in answers]

    assert await everything(*definitions, after=after) == await everything(*HONEST)


def untimed(text: str) -> str:
    import re

    return re.sub(r"took_ms\W+[0-9.e-]+", "took_ms", text)


@guarantee("catalog:quarantine")
@pytest.mark.parametrize(("definitions", "after"), HELD)
async def test_a_quarantined_tool_is_in_no_answer_of_the_library(definitions: list[dict[str, Any]], after: Any) -> None:
    async def everything(*shown: dict[str, Any], after: Any = None) -> list[Any]:
        async with scout_over([{**row, "server": "notes"} for row in shown]) as scout:
            if after:
                await after(scout)
            answers: list[Any] = []
            for ranker in ("hybrid", "semantic", "keyword", "fuzzy", "boosted"):
                answer = await scout.search_tools("sync all the notes", ranker=ranker, threshold=0, top_k=50)
                answers.append(answer.timed(0))
            answers += [
                [item.tool.key for item in await scout.discover_tools("sync all the notes")],
                [item.tool.key for item in await scout.discover_tools("contraband", similarity_threshold=0.0)],
                (await scout.list_tools()).timed(0),
                await scout.list_categories(),
                await scout.list_tags(),
                (await scout.get_related_tools("notes__list", limit=20)).timed(0),
                (await scout.get_tool_details(["notes__list", "notes__sync"])).timed(0),
                replace(await scout.overview(), generation=0),
            ]
            for asked in (
                scout.get_tool_details("notes__sync"),
                scout.get_related_tools("notes__sync"),
                scout.call_tool("notes__sync", {}),
            ):
                with pytest.raises(ToolNotFoundError) as caught:
                    await asked
                answers.append((str(caught.value), caught.value.suggestions))
            return answers

    with_quarantined, without = await everything(*definitions, after=after), await everything(*HONEST)
    for answer, expected in zip(with_quarantined, without, strict=True):
        assert answer == expected


@guarantee("catalog:quarantine")
async def test_a_poisoned_tool_says_what_was_found_where_and_comes_in_when_it_is_approved() -> None:
    async with scout_over([{**POISONED, "server": "notes"}, OTHER]) as scout:
        (change,) = await scout.decisions.changes(Scope())
        assert change.quarantine_reason
        finding = {item.rule: item for item in change.findings}["override"]
        assert (finding.where, finding.severity) == ("/description", "quarantine")
        assert "previous instructions" in finding.excerpt
        await decide(scout, Scope(), ["notes__sync"], "approved")
        assert len(await scout.list_tools()) == 2
        await scout.index_tools([{**POISONED, "server": "notes"}, OTHER])
        assert len(await scout.list_tools()) == 2
        assert await scout.decisions.changes() == []
