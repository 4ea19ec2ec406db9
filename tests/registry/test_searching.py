"""Search through a registry: rankers, full schemas, and one indexing for many changes."""

from __future__ import annotations

import asyncio

import pytest

from toolscout import EmptyQueryError, ToolRegistry, UnknownRankerError


def names(answer):
    return [match.tool.name for match in answer]


async def test_a_search_by_meaning_gives_the_full_schema(registry):
    answer = await registry.search("write to a colleague by mail", limit=1)
    assert names(answer) == ["send_email"]
    assert answer[0].tool.input_schema == (await registry.get_tool("send_email")).input_schema
    assert answer.metadata.ranker == "hybrid"


async def test_the_default_ranker_comes_from_the_settings(make_registry):
    registry = make_registry(ranker="fuzzy")
    registry.register_tool({"name": "send_email"}, lambda: "")
    answer = await registry.search("send_email")
    assert (answer.metadata.ranker, answer[0].score) == ("fuzzy", 1.0)


TIERS = {
    "send_email": 1.0,
    "send": 0.9,
    "smtp": 0.85,
    "email": 0.85,
    "mail": 0.8,
    "corresp": 0.7,
    "recipient": 0.6,
    "recip": 0.5,
}


@pytest.mark.parametrize("query", TIERS)
async def test_fuzzy_gives_the_documented_tiers(query, registry):
    answer = await registry.search(query, ranker="fuzzy")
    assert names(answer)[0] == "send_email"
    assert answer[0].score == pytest.approx(TIERS[query])


SIMILAR = {
    "snd_emal": (0.5 * 3 / 4 + 0.5 * 4 / 5) / 2,
    "sennd_emaill": (0.5 * 4 / 5 + 0.5 * 5 / 6) / 2,
    "emaill": 0.5 * 5 / 6,
}
"""Half of the edit similarity to the nearest word of the name or keyword, as a mean over the words of the query."""


@pytest.mark.parametrize("query", SIMILAR)
async def test_fuzzy_halves_the_similarity_of_what_is_only_similar(query, registry):
    answer = await registry.search(query, ranker="fuzzy")
    assert names(answer)[0] == "send_email"
    assert answer[0].score == pytest.approx(SIMILAR[query], abs=1e-6)


async def test_when_nothing_fits_the_answer_is_empty_and_says_what_to_try(registry, connect):
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("s")
    registry.attach(server)
    async with connect(server) as client:
        result = await client.call_tool("tool_search", {"query": "xylophone tuning frequency", "ranker": "keyword"})
    assert result.structured_content["tools"] == []
    assert not result.is_error
    assert result.content[0].text == "[]"
    assert "No tool fits" in result.content[1].text
    assert "threshold" not in result.model_dump_json()


async def test_a_request_that_cannot_be_searched_is_an_error_that_says_why(registry):
    with pytest.raises(EmptyQueryError):
        await registry.search("  ")
    with pytest.raises(UnknownRankerError):
        await registry.search("x", ranker="best")


async def test_an_empty_registry_finds_nothing(make_registry):
    assert len(await make_registry().search("anything")) == 0


async def test_many_changes_are_indexed_once_by_the_next_search_and_never_in_halves(make_registry, embedder):
    registry = make_registry()
    for number in range(50):
        registry.register_tool({"name": f"tool_{number}", "description": f"Measures thing {number}"}, lambda: "")
    before = embedder.documents
    answers = await asyncio.gather(*(registry.search("tool", ranker="fuzzy", limit=100) for _ in range(20)))
    assert {len(answer) for answer in answers} == {50}
    assert embedder.documents - before <= 50
    again = embedder.documents
    await registry.search("tool", ranker="fuzzy")
    assert embedder.documents == again


async def test_refresh_indexes_ahead_of_the_first_search(registry, embedder):
    await registry.refresh()
    before = embedder.documents
    assert names(await registry.search("email", limit=1)) == ["send_email"]
    assert embedder.documents == before


def test_nothing_starts_before_the_first_question(embedder):
    import threading

    before = threading.active_count()
    registry = ToolRegistry(embedder=embedder)
    registry.register_tool({"name": "x"}, lambda: "")
    assert threading.active_count() == before


async def test_a_registry_that_is_closed_begins_anew(registry):
    assert names(await registry.search("email", limit=1)) == ["send_email"]
    registry.close()
    registry.close()
    assert names(await registry.search("email", limit=1)) == ["send_email"]


def test_a_registry_that_is_garbage_ends_its_thread(embedder):
    import gc
    import threading

    before = set(threading.enumerate())
    registry = ToolRegistry(embedder=embedder)
    registry.register_tool({"name": "x"}, lambda: "")
    asyncio.run(registry.search("x"))
    [thread] = [item for item in threading.enumerate() if item.name == "toolscout-registry" and item not in before]
    del registry
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()
