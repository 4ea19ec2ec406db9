"""`toolscout bench`: how fast this machine indexes and searches."""

from __future__ import annotations

import hashlib
import json as json_module
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscout.cli import options
from toolscout.models import Document

if TYPE_CHECKING:
    from toolscout.models import FloatArray
    from toolscout.ports import Embedder, Progress

_QUERIES = (
    "send a message to the team",
    "list open pull requests",
    "what will the weather be tomorrow",
    "create a calendar event and email the guests",
    "refund a payment",
    "run a query on the database",
)
_REPEATS = 10


class _HashEmbedder:
    """Embeds queries with the real model, and documents by a hash of their text, which is fast for large catalogues."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.model_id = f"{inner.model_id}-spread"
        self.dimension = inner.dimension

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        return await self._inner.embed_queries(texts)

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        import numpy as np

        seeds = [
            int.from_bytes(hashlib.blake2b(item.text().encode(), digest_size=4).digest(), "big") for item in documents
        ]
        raw = np.stack([np.random.default_rng(seed).standard_normal(self.dimension) for seed in seeds]).astype(
            np.float32
        )
        if progress:
            progress(len(documents), len(documents))
        unit: FloatArray = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        return unit

    async def close(self) -> None:
        await self._inner.close()


def bench(
    size: Annotated[
        list[int] | None,
        typer.Option("--size", metavar="N", help="The size of a catalogue to search. May be repeated."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure the speed of this machine: indexing with the built-in model, and searching by catalogue size.

    Catalogues are copies of the bundled sample under other server names. To measure searches, the vectors of tools are
    made from a hash of their text, because embedding them takes long. Query vectors come from the model.

    Example: `toolscout bench --size 1000 --size 50000`
    """
    from toolscout.cli.output import console, print_json

    figures = options.run(_bench(size or [1_000, 5_000, 20_000]))
    if json:
        print_json(figures)
        return
    out = console()
    out.print(f"indexing  {figures['index_tools_per_s']:,.0f} tools/s (built-in model, cold)")
    for row in figures["search"]:
        out.print(f"search    p50 {row['p50_ms']:.2f} ms, p95 {row['p95_ms']:.2f} ms over {row['tools']:,} tools")


async def _bench(sizes: list[int]) -> dict[str, Any]:
    from dataclasses import replace

    from toolscout.sample import path
    from toolscout.scout import Scout
    from toolscout.scout.parts import open_embedder
    from toolscout.settings import Settings

    sample = [json_module.loads(line) for line in path().read_text("utf-8").splitlines()]
    settings = replace(Settings.from_env(), store="memory:", query_cache_size=0)
    async with Scout.open(settings=settings) as scout:
        await scout.index_tools(sample[:1])
        rows = sample * 4
        rows = [{**row, "description": f"{row['description']} Variant {number}."} for number, row in enumerate(rows)]
        started = time.perf_counter()
        report = await scout.index_tools({**row, "name": f"{row['name']}_{number}"} for number, row in enumerate(rows))
        rate = report.total / (time.perf_counter() - started)
    searches = []
    for size in sizes:
        inner = open_embedder(settings)
        async with Scout.open(settings=settings, embedder=_HashEmbedder(inner) if inner else None) as scout:
            await scout.index_tools(_repeated(sample, size))
            for query in _QUERIES:
                await scout.search_tools(query)
            times = sorted([(await scout.search_tools(query)).metadata.took_ms for query in _QUERIES * _REPEATS])
            searches.append({"tools": size, "p50_ms": median(times), "p95_ms": times[int(len(times) * 0.95)]})
    return {"index_tools_per_s": round(rate, 1), "search": searches}


def _repeated(sample: Sequence[dict[str, Any]], size: int) -> Iterator[dict[str, Any]]:
    for number in range(size):
        row = sample[number % len(sample)]
        copy = number // len(sample)
        yield row if copy == 0 else {**row, "server": f"{row['server']}-{copy}"}
