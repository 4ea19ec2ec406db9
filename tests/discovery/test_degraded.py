"""Without an embedder: answers by words, marked degraded, and back to meaning as soon as it answers again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from guarantees import guarantee
from toolscout import EmbedderError, Scout, Settings
from toolscout.models import Document
from toolscout.ports import Progress

if TYPE_CHECKING:
    from toolscout.models import FloatArray

pytestmark = guarantee("embed:down")

ROWS = [
    {"name": "send_letter", "description": "Send a letter by post."},
    {"name": "plan_route", "description": "Find the way between two places."},
]


class Switchable:
    """The real model behind a switch."""

    def __init__(self, inner: object) -> None:
        self.inner = inner
        self.model_id = inner.model_id  # type: ignore[attr-defined]
        self.dimension = inner.dimension  # type: ignore[attr-defined]
        self.up = True
        self.queries_left = 1_000

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        self.queries_left -= 1
        if not self.up or self.queries_left < 0:
            raise EmbedderError("the embedder is down")
        return await self.inner.embed_queries(texts)  # type: ignore[attr-defined]

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        if not self.up:
            raise EmbedderError("the embedder is down")
        return await self.inner.embed_documents(documents, progress)  # type: ignore[attr-defined]

    async def close(self) -> None:
        """Nothing to free."""


async def test_words_answer_while_the_embedder_is_down_and_the_answer_says_so(
    open_scout: Callable[..., Scout], embedder: object
) -> None:
    switch = Switchable(embedder)
    async with open_scout(ROWS, embedder=switch) as scout:
        switch.up = False
        for asked, used in (("hybrid", "hybrid"), ("semantic", "keyword"), ("boosted", "keyword")):
            answer = await scout.search_tools("send a letter", ranker=asked, threshold=0)
            assert answer[0].tool.name == "send_letter"
            assert answer.metadata.ranker == used
            assert "the embedder is down" in (answer.metadata.degraded or "")
        for ranker in ("keyword", "fuzzy"):
            assert (await scout.search_tools("send a letter", ranker=ranker)).metadata.degraded is None


async def test_a_failure_while_a_typo_is_corrected_marks_the_answer(
    open_scout: Callable[..., Scout], embedder: object
) -> None:
    """The request is embedded once as written and once corrected. The second failure must not be lost."""
    switch = Switchable(embedder)
    async with open_scout(ROWS, embedder=switch) as scout:
        switch.queries_left = 1
        answer = await scout.search_tools("send a leter", explain=True)
        assert answer[0].tool.name == "send_letter"
        assert "the embedder is down" in (answer.metadata.degraded or "")
        assert (answer[0].explain or {})["cosine"] == 0


async def test_a_chat_turn_reports_a_failure_in_an_earlier_message(
    open_scout: Callable[..., Scout], embedder: object
) -> None:
    switch = Switchable(embedder)
    async with open_scout(ROWS, embedder=switch) as scout:
        switch.queries_left = 1
        turn = await scout.discover_tools("find the way", messages=[{"role": "user", "content": "send a leter"}])
        assert "the embedder is down" in (turn.degraded or "")


async def test_it_recovers_without_a_restart(open_scout: Callable[..., Scout], embedder: object) -> None:
    switch = Switchable(embedder)
    async with open_scout(ROWS, embedder=switch, settings=replace(Settings(), embed_retry_s=0.0)) as scout:
        switch.up = False
        assert (await scout.search_tools("how do I get there", ranker="semantic")).metadata.degraded
        switch.up = True
        answer = await scout.search_tools("how do I get there", ranker="semantic")
        assert answer.metadata.degraded is None
        assert answer[0].tool.name == "plan_route"


async def test_tools_indexed_while_it_was_down_get_their_vectors_later(
    open_scout: Callable[..., Scout], embedder: object
) -> None:
    switch = Switchable(embedder)
    switch.up = False
    async with open_scout(embedder=switch, settings=replace(Settings(), embed_retry_s=0.0)) as scout:
        report = await scout.index_tools(ROWS)
        assert (report.new, report.embedded, report.unembedded) == (2, 0, 2)
        assert (await scout.search_tools("letter"))[0].tool.name == "send_letter"
        switch.up = True
        assert (await scout.refresh()).embedded == 2
        answer = await scout.search_tools("how do I get there", ranker="semantic")
        assert answer[0].tool.name == "plan_route"


async def test_a_scout_without_any_embedder_searches_by_words(open_scout: Callable[..., Scout]) -> None:
    settings = replace(Settings(), embedder="none")
    async with open_scout(ROWS, embedder=None, settings=settings) as scout:
        answer = await scout.search_tools("letters by post", threshold=0)
        assert answer[0].tool.name == "send_letter"
        assert "TOOLSCOUT_EMBEDDER=none" in (answer.metadata.degraded or "")
        assert (await scout.get_related_tools("local__send_letter")).metadata.total == 2


async def test_a_query_that_no_tokenizer_reads_degrades_neither_itself_nor_the_next(sample_scout: Scout) -> None:
    for query in ("mail \ud800", "mail"):
        answer = await sample_scout.search_tools(query, ranker="semantic")
        assert answer.metadata.degraded is None
        assert answer.metadata.ranker == "semantic"
