"""The answers of every ranker over the bundled sample as plain data, so that two processes can be compared.

python tests/orders.py STORE_URL SEED    index the sample in a random order and print the answers as JSON
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from toolscout import sample
from toolscout.ports import Embedder
from toolscout.scout import Scout
from toolscout.settings import Settings

RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")
QUERIES = (
    "send an email to a customer",
    "list open pull requests and then post a message about them",
    "what is the weather",
    "delete",
    "find a file by its name",
    "crate a calender event",
)


async def answers(
    url: str, seed: int, embedder: Embedder | None = None, settings: Settings | None = None
) -> dict[str, Any]:
    """Index in a shuffled order, in two parts, and send every query. Scores are not rounded."""
    rows = [json.loads(line) for line in sample.path().read_text("utf-8").splitlines()]
    random.Random(seed).shuffle(rows)
    servers = sorted({row.get("server", "") for row in rows})
    first = set(servers[: len(servers) // 2] if seed % 2 else servers[len(servers) // 2 :])
    async with Scout.open(store=url, embedder=embedder, settings=settings) as scout:
        await scout.index_tools([row for row in rows if row.get("server", "") in first])
        await scout.index_tools([row for row in rows if row.get("server", "") not in first])
        result: dict[str, Any] = {}
        for ranker in RANKERS:
            for query, answer in zip(QUERIES, await scout.search_tools(list(QUERIES), ranker=ranker), strict=True):
                result[f"{ranker}: {query}"] = [[match.tool.key, match.score] for match in answer]
        key = result[f"hybrid: {QUERIES[0]}"][0][0]
        result["related"] = [[match.tool.key, match.relationship] for match in await scout.get_related_tools(key)]
        return result


if __name__ == "__main__":
    print(json.dumps(asyncio.run(answers(sys.argv[1], int(sys.argv[2])))))  # noqa: T201 - that is what it is for
