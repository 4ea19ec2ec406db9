"""A million tools: first the real catalogue, then synthetic tools that are each made from two real ones.

Four synthetic tools share an anchor: half of the words and of the vector come from one real tool, half from another.
Each of the four has its own noise (cosine about .9 with the anchor). So the number of clusters grows with the number of
tools, and the nearest tools of a query are not all in one cluster.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.data import bench_folder, rows
from toolscout import Scout, Settings
from toolscout.indexing.prepare import prepare_server
from toolscout.models import Entry, Server, Terms
from toolscout.sources.rows import group_rows

FAMILY = 4
NOISE = 0.484
"""How long the noise is beside an anchor of length 1: their sum has a cosine of .9 with the anchor."""

TOOLS_OF_A_SERVER = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The real tools, their vectors, and the queries that are asked."""

    entries: list[Entry]
    vectors: Any
    model_id: str
    queries: list[str]

    def block(self, first: int, count: int) -> tuple[list[Entry], Any]:
        """Return tools number `first` to `first + count` and their vectors, always the same ones."""
        real = max(0, min(count, len(self.entries) - first))
        entries = [self._placed(self.entries[first + at], first + at) for at in range(real)]
        matrix = [self.vectors[first : first + real]]
        if real < count:
            made, vectors = self._made(first + real, count - real)
            entries += made
            matrix.append(vectors)
        return entries, np.concatenate(matrix)

    def _made(self, first: int, count: int) -> tuple[list[Entry], Any]:
        numbers = np.arange(first, first + count)
        random = np.random.default_rng(first)
        anchors = numbers // FAMILY
        one = (anchors * 7_919) % len(self.entries)
        other = (anchors * 104_729 + 13) % len(self.entries)
        directions = _unit(self.vectors[one] + self.vectors[other])
        noise = _unit(random.standard_normal(directions.shape, dtype=np.float32))
        entries = [
            self._mixed(self.entries[left], self.entries[right], number)
            for left, right, number in zip(one.tolist(), other.tolist(), numbers.tolist(), strict=True)
        ]
        return entries, _unit(directions + NOISE * noise)

    def _mixed(self, one: Entry, other: Entry, number: int) -> Entry:
        words = dict(
            zip(one.terms.words[::2], zip(one.terms.impact[::2], one.terms.fields[::2], strict=True), strict=True)
        )
        words |= dict(
            zip(
                other.terms.words[1::2],
                zip(other.terms.impact[1::2], other.terms.fields[1::2], strict=True),
                strict=True,
            )
        )
        terms = Terms(
            words=tuple(words),
            impact=array("f", [impact for impact, _ in words.values()]),
            fields=bytes(fields for _, fields in words.values()),
        )
        return self._placed(replace(one, terms=terms), number)

    def _placed(self, entry: Entry, number: int) -> Entry:
        server = f"s{number // TOOLS_OF_A_SERVER}"
        tool = replace(entry.tool, key=f"{server}__{entry.tool.name}_{number}", server=server, server_title=server)
        return replace(entry, tool=tool, text_hash=f"{number:032x}", stamp=str(number))


def servers_of(entries: list[Entry]) -> tuple[Server, ...]:
    """Return the servers that some tools belong to."""
    return tuple(Server(key=key, title=key) for key in dict.fromkeys(entry.tool.server for entry in entries))


async def read_corpus() -> Corpus:
    """Read the catalogue and its vectors, which are made once and kept under `build/bench`."""
    path = bench_folder() / "mcp_catalogue" / "tools.jsonl"
    settings = Settings(store="sqlite:///build/bench/speed.db")
    async with Scout.open(settings=settings) as scout:
        await scout.index_tools(path)
        entries = list(_entries(rows(path), settings))
        model_id = (await scout.overview()).model_id
        known = await scout._store.vectors(model_id, [entry.text_hash for entry in entries])
    entries = [entry for entry in entries if entry.text_hash in known]
    asked = [
        row["query"] for name in ("livemcp_step", "azure_mcp") for row in rows(bench_folder() / name / "queries.jsonl")
    ]
    return Corpus(
        entries=entries,
        vectors=np.stack([known[entry.text_hash] for entry in entries]),
        model_id=model_id,
        queries=asked[:200],
    )


def _entries(raw: list[dict[str, Any]], settings: Settings) -> Iterator[Entry]:
    for source in group_rows(raw):
        yield from prepare_server(source.server, source.rows, {}, settings).entries


def _unit(matrix: Any) -> Any:
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
