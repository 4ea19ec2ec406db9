"""While the embedder is down, searches use words alone and indexing continues. Vectors are added later."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import DimensionError, EmbedderError, Scout, Settings

pytestmark = guarantee("embed:down")

ROWS = [
    {"name": "send_mail", "description": "Send a letter to a person"},
    {"name": "delete_file", "description": "Remove a file from the disk"},
    {"name": "plan_route", "description": "Find the way between two cities"},
]
DOWN = EmbedderError("the embedder is out to lunch")
AT_ONCE = Settings(embed_retry_s=0, query_cache_size=0)
"""No pause after a failure and nothing remembered, so that a recovery shows in the next search."""


@pytest.fixture
def model() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
async def scout(model: HashEmbedder) -> AsyncIterator[Scout]:
    async with Scout.open(store="memory:", embedder=model, settings=AT_ONCE) as opened:
        yield opened


@pytest.mark.parametrize("ranker", ["hybrid", "semantic", "boosted"])
async def test_a_search_answers_by_words_and_is_marked_as_degraded(
    scout: Scout, model: HashEmbedder, ranker: str
) -> None:
    await scout.index_tools(ROWS)
    model.failure = DOWN
    answer = await scout.search_tools("remove a file", ranker=ranker)
    assert answer[0].tool.name == "delete_file"
    assert answer.metadata.degraded == "the embedder is out to lunch: answered by words alone"


@pytest.mark.parametrize("ranker", ["keyword", "fuzzy"])
async def test_rankers_that_need_no_vector_are_not_degraded(scout: Scout, model: HashEmbedder, ranker: str) -> None:
    await scout.index_tools(ROWS)
    model.failure = DOWN
    answer = await scout.search_tools("delete_file", ranker=ranker)
    assert answer[0].tool.name == "delete_file"
    assert answer.metadata.degraded is None


async def test_the_next_search_after_a_recovery_is_whole_again(scout: Scout, model: HashEmbedder) -> None:
    await scout.index_tools(ROWS)
    whole = await scout.search_tools("remove a file")
    model.failure = OSError("connection refused")
    assert "connection refused" in ((await scout.search_tools("remove a file")).metadata.degraded or "")
    model.failure = None
    again = await scout.search_tools("remove a file")
    assert again.metadata.degraded is None
    assert [(match.tool.key, match.score) for match in again] == [(match.tool.key, match.score) for match in whole]


async def test_tools_indexed_meanwhile_are_found_by_words(scout: Scout, model: HashEmbedder) -> None:
    model.failure = DOWN
    report = await scout.index_tools(ROWS)
    assert (report.new, report.embedded, report.unembedded) == (3, 0, 3)
    answer = await scout.search_tools("remove a file")
    assert answer[0].tool.name == "delete_file"
    assert answer.metadata.degraded
    assert (await scout.search_tools("delete_file", ranker="keyword"))[0].tool.name == "delete_file"
    assert len(await scout.list_tools()) == 3


async def test_a_refresh_embeds_later_what_could_not_be_embedded(scout: Scout, model: HashEmbedder) -> None:
    await scout.index_tools(ROWS[:1])
    model.failure = DOWN
    await scout.index_tools([{**row, "server": "late"} for row in ROWS])
    still_down = await scout.refresh()
    assert (still_down.embedded, still_down.unembedded) == (0, 3)
    model.failure = None
    report = await scout.refresh()
    assert (report.new, report.changed, report.embedded, report.unembedded) == (0, 0, 3, 0)
    answer = await scout.search_tools("delete one file", ranker="semantic")
    assert answer.metadata.degraded is None
    assert answer[0].tool.key == "late__delete_file"
    assert answer[0].score is not None
    assert answer[0].score > 0.5
    assert (await scout.refresh()).embedded == 0


async def test_indexing_again_embeds_what_was_left_too(scout: Scout, model: HashEmbedder) -> None:
    model.failure = DOWN
    await scout.index_tools(ROWS)
    model.failure = None
    report = await scout.index_tools(ROWS)
    assert (report.unchanged, report.embedded, report.unembedded) == (3, 3, 0)
    assert (await scout.search_tools("remove a file", ranker="semantic"))[0].tool.name == "delete_file"


async def test_nothing_that_was_there_is_lost_when_the_embedder_fails_while_indexing(
    scout: Scout, model: HashEmbedder
) -> None:
    await scout.index_tools(ROWS)
    model.failure = DOWN
    report = await scout.index_tools([*ROWS, {"name": "bake", "description": "Bake bread"}])
    assert (report.new, report.unchanged, report.unembedded) == (1, 3, 1)
    model.failure = None
    assert (await scout.search_tools("bake bread", ranker="hybrid"))[0].tool.name == "bake"
    assert (await scout.search_tools("remove a file", ranker="semantic"))[0].tool.name == "delete_file"


async def test_a_wrong_dimension_is_loud_and_publishes_nothing(scout: Scout, model: HashEmbedder) -> None:
    await scout.index_tools(ROWS[:1])
    model.dimension = 32
    with pytest.raises(DimensionError):
        await scout.index_tools(ROWS)
    assert [match.tool.name for match in await scout.list_tools()] == ["send_mail"]
    with pytest.raises(DimensionError):
        await scout.search_tools("send mail")
    assert (await scout.search_tools("send_mail", ranker="keyword"))[0].tool.name == "send_mail"


async def test_without_an_embedder_answers_by_meaning_say_that_they_go_by_words() -> None:
    async with Scout.open(tools=ROWS, settings=Settings(embedder="none")) as scout:
        answer = await scout.search_tools("remove a file")
        assert answer[0].tool.name == "delete_file"
        assert "TOOLSCOUT_EMBEDDER=none" in (answer.metadata.degraded or "")
