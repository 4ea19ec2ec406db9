"""Measures one store at one size: searches, publications, and the recall of the graph."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from statistics import median, quantiles
from typing import Any

import numpy as np

from benchmarks.scale.corpus import TOOLS_OF_A_SERVER, Corpus, servers_of
from benchmarks.scale.load import BLOCK, tenant_name
from toolscout import Caller, Scout
from toolscout.models import Filter, Publication, Scope
from toolscout.storage.postgres.candidates import nearest
from toolscout.storage.postgres.store import PostgresStore

TOUCHED = 50
"""How many tenants ask, where there are many."""

SEARCHES, PUBLICATIONS, TRUTHS = 200, 30, 50
PUBLISHING_S = 60.0
"""No more publications are begun after so long; three are timed in any case."""


async def searches(scout: Scout, corpus: Corpus, tenants: int) -> dict[str, float]:
    """Time whole searches; the vectors of the queries are known, as they do not depend on the store."""
    dice = random.Random(1)
    callers = [Caller(tenant=tenant_name(number)) for number in dice.sample(range(tenants), min(tenants, TOUCHED))]
    for query in corpus.queries:
        await scout._embedder.embed_queries([query])
    cold = [await _timed(scout, corpus.queries[0], caller) for caller in callers]
    for at, query in enumerate(corpus.queries[:20]):
        await _timed(scout, query, callers[at % len(callers)])
    warm = [
        await _timed(scout, query, callers[at % len(callers)]) for at, query in enumerate(corpus.queries[:SEARCHES])
    ]
    return {"first_ms": median(cold), "p50_ms": median(warm), "p95_ms": quantiles(warm, n=20)[18]}


async def _timed(scout: Scout, query: str, caller: Caller) -> float:
    started = time.perf_counter()
    await scout.search_tools(query, caller=caller)
    return (time.perf_counter() - started) * 1_000


async def publications(scout: Scout, corpus: Corpus, size: int, tenants: int) -> dict[str, float]:
    """Time publications of one changed server each, in a store that is full."""
    share = -(-size // tenants)
    times = []
    for turn in range(PUBLICATIONS):
        if turn >= 3 and sum(times) > PUBLISHING_S * 1_000:
            break
        number = (turn * 7) % tenants
        first = number * share
        start = first + (turn * TOOLS_OF_A_SERVER) % max(1, min(share, size - first) - TOOLS_OF_A_SERVER + 1)
        start -= start % TOOLS_OF_A_SERVER if tenants == 1 else 0
        count = min(TOOLS_OF_A_SERVER, share, size - start)
        entries, vectors = corpus.block(start, count)
        changed = tuple(
            replace(entry, text_hash=f"f{turn:03x}{entry.text_hash[4:]}", stamp=f"{turn}") for entry in entries
        )
        publication = Publication(
            scope=Scope(tenant=tenant_name(number)),
            servers=servers_of(list(changed))[:1],
            entries=tuple(entry for entry in changed if entry.tool.server == changed[0].tool.server),
            unchanged_keys=frozenset(),
            model_id=corpus.model_id,
        )
        started = time.perf_counter()
        await scout._store.add_vectors(corpus.model_id, [entry.text_hash for entry in changed], vectors)
        await scout._store.publish(publication)
        times.append((time.perf_counter() - started) * 1_000)
    return {"publish_p50_ms": median(times), "publish_p95_ms": quantiles(times, n=20)[18]}


async def publish_all(scout: Scout, corpus: Corpus, size: int) -> dict[str, float]:
    """Publish everything for one tenant, in blocks of whole servers, and return tools a second."""
    store, spent, first = scout._store, 0.0, 0
    block = BLOCK - BLOCK % TOOLS_OF_A_SERVER
    while first < size:
        entries, vectors = corpus.block(first, min(block, size - first))
        publication = Publication(
            scope=Scope(tenant=tenant_name(0)),
            servers=servers_of(entries),
            entries=tuple(entries),
            unchanged_keys=frozenset(),
            model_id=corpus.model_id,
        )
        started = time.perf_counter()
        await store.add_vectors(corpus.model_id, [entry.text_hash for entry in entries], vectors)
        await store.publish(publication)
        spent += time.perf_counter() - started
        first += len(entries)
    return {"index_tools_per_s": size / spent}


async def recall(store: PostgresStore, scout: Scout, corpus: Corpus) -> dict[str, float]:
    """Compare the graph with looking at every row: the nearest 10, the exact 10 among the graph's 50, whole answers."""
    caller, at_ten, in_fifty, answers = Caller(tenant=tenant_name(0)), [], [], []
    for query in corpus.queries[:TRUTHS]:
        (vector,) = await scout._embedder.embed_queries([query])

        async def search(db: Any, vector: Any = vector) -> Any:
            state, view = await store.in_database.view(db, caller)
            (scope_query,) = await store.in_database.scope_queries(db, caller, view, Filter())
            truth = await nearest(db, scope_query, state, vector, 10, 10**9)
            ten = await nearest(db, scope_query, state, vector, 10, 0)
            fifty = await nearest(db, scope_query, state, vector, 50, 0)
            found = await (
                await db.execute("SELECT id, embedding FROM search_rows WHERE id = ANY (%s)", (truth,), binary=True)
            ).fetchall()
            return found, ten, fifty

        found, ten, fifty = await store.pool.run(search, tenant=caller.tenant, snapshot=True)
        scores = [(float(np.frombuffer(sent, ">f2", offset=4).astype(np.float32) @ vector), row) for row, sent in found]
        best = {row for _, row in sorted(scores, reverse=True)[:10]}
        at_ten.append(len(best.intersection(ten)) / 10)
        in_fifty.append(len(best.intersection(fifty)) / 10)
        answers.append(await _same_answer(store, scout, query, caller))
    return {
        "recall_at_10": float(np.mean(at_ten)),
        "top_10_in_50": float(np.mean(in_fifty)),
        "same_answer": float(np.mean(answers)),
    }


async def _same_answer(store: PostgresStore, scout: Scout, query: str, caller: Caller) -> float:
    """Return how much of the exact top 10 of a whole search the graph's top 10 has."""
    keys = []
    usual = store.in_database.exact_rows
    for exact_rows in (usual, 10**9):
        store.in_database.exact_rows = exact_rows
        keys.append({match.tool.key for match in await scout.search_tools(query, caller=caller, threshold=0)})
    store.in_database.exact_rows = usual
    return len(keys[0] & keys[1]) / max(1, len(keys[1]))
