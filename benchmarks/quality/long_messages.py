"""Requests inside of long messages: is the right tool still found when a mail, notes or a log stand around the request?

    python -m benchmarks.quality.long_messages

Each of the first requests of the agents and users of `real_servers` is put before, behind and into the middle of other
text. The text is in `message_parts.txt`: the odd parts were looked at while the reading of long messages was written,
the even ones only to measure it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from benchmarks.data import bench_folder, machine, markdown, save
from toolscout import Scout
from toolscout.retrieval_metrics import LabelledQuery, read_queries

PARTS = (Path(__file__).parent / "message_parts.txt").read_text("utf-8").split("\n%%\n")
HALVES = {"looked at": PARTS[::2], "held out": PARTS[1::2]}
SIZES = (400, 1_000, 3_000, 20_000, 90_000)
PLACES = ("first", "middle", "last")
REQUESTS = 120


def surrounded(request: str, place: str, size: int, parts: list[str], chance: random.Random) -> str:
    """Put a request into a message of about this many characters."""
    text: list[str] = []
    while sum(map(len, text)) < size:
        text.append(chance.choice([part for part in parts if not text or part != text[-1]]))
    at = {"first": 0, "middle": (len(text) + 1) // 2, "last": len(text)}[place]
    return "\n\n".join((*text[:at], request, *text[at:]))


def messages(queries: list[LabelledQuery], place: str, size: int, parts: list[str]) -> Iterator[str]:
    """Return a message for each request, the same ones in every run."""
    chance = random.Random(f"{place} {size}")
    for item in queries:
        request = item.query if item.query.endswith((".", "?", "!")) else f"{item.query}."
        yield surrounded(request[0].upper() + request[1:], place, size, parts, chance)


async def found(scout: Scout, queries: list[LabelledQuery], texts: list[str]) -> float:
    """Return the share of requests with a right tool among the first five."""
    hits = []
    for item, text in zip(queries, texts, strict=True):
        answer = await scout.search_tools(text, top_k=5)
        hits.append(any(match.tool.id in item.gold | item.also for match in answer))
    return fmean(hits)


async def measure(sizes: tuple[int, ...] = SIZES, requests: int = REQUESTS) -> list[dict[str, object]]:
    """Measure every size and place."""
    folder = bench_folder() / "real_servers"
    asked = [item for item in read_queries(folder / "queries.jsonl") if item.style in ("agent", "user")][:requests]
    async with Scout.open(tools=folder / "tools.jsonl") as scout:
        rows: list[dict[str, object]] = [
            {"text": "none", "characters": 0, "place": "", "found": await found(scout, asked, [q.query for q in asked])}
        ]
        for half, parts in HALVES.items():
            for size in sizes:
                for place in PLACES:
                    texts = list(messages(asked, place, size, list(parts)))
                    share = await found(scout, asked, texts)
                    rows.append({"text": half, "characters": size, "place": place, "found": round(share, 3)})
                    print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and write the table."""
    rows = asyncio.run(measure())
    table = [
        [row["text"], row["characters"], *(_share(rows, row, place) for place in PLACES)]
        for row in rows
        if row["place"] in ("first", "")
    ]
    text = [
        "# Requests inside of long messages",
        "",
        f"{REQUESTS} requests of agents and users over 1,229 tools of 50 servers: a right tool among the first five.",
        "Mails, notes and logs stand around the request, the request first, in the middle, or last.",
        "",
        markdown(["text around it", "characters", *PLACES], table),
    ]
    save("long_messages", {"machine": machine(), "rows": rows}, "\n".join(text))


def _share(rows: list[dict[str, object]], like: dict[str, object], place: str) -> object:
    """Return the figure of a size at a place. Without text around it, the place does not matter."""
    same = (like["text"], like["characters"])
    shares = [row["found"] for row in rows if (row["text"], row["characters"]) == same and row["place"] in (place, "")]
    return f"{shares[0]:.3f}"


if __name__ == "__main__":
    main()
