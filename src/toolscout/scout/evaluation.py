"""Retrieval quality of the catalogue as it is, on labelled requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolscout.errors import EmbedderError
from toolscout.models import Caller
from toolscout.retrieval_metrics import LabelledQuery, QueryOutcome

if TYPE_CHECKING:
    from toolscout.scout.facade import Scout


async def measure_queries(
    scout: Scout,
    queries: Sequence[LabelledQuery],
    *,
    ranker: str | None = None,
    k: int = 10,
    caller: Caller | None = None,
    by_key: bool = False,
    done: Callable[[], object] = lambda: None,
) -> list[QueryOutcome]:
    """Search for every request and return the outcomes. Raise EmbedderError if an answer is degraded.

    A tool is named by its id, or `by_key`.
    """
    outcomes = []
    caller = caller or scout.caller
    await scout.search_tools(queries[0].query, top_k=k, ranker=ranker, caller=caller)
    for item in queries:
        started = time.perf_counter()
        answer = await scout.search_tools(item.query, top_k=k, ranker=ranker, caller=caller)
        took_ms = (time.perf_counter() - started) * 1_000
        if answer.metadata.degraded:
            raise EmbedderError(
                f"no figure: an answer was degraded ({answer.metadata.degraded})",
                hint="`toolscout doctor` says what is wrong, or measure a ranker without vectors: --ranker keyword",
            )
        outcomes.append(
            QueryOutcome(
                labelled=item,
                tool_ids=tuple(match.tool.key if by_key else match.tool.id for match in answer),
                took_ms=took_ms,
                fit=answer[0].fit if answer else None,
            )
        )
        done()
    return outcomes
