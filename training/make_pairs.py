"""Stage 1: make the training pairs, a request and the tools that answer it.

    TOOLSCOUT_BENCH=../shared/bench python training/make_pairs.py --out build/pairs.jsonl.gz

Sources: requests made by rule from every tool of the pools (`phrasing.py`), several of those joined into one request,
the queries of the two training splits, whole and clause by clause, and the requests of `train_people`. A pair says
which part of the tool's text its request was made from (``hide``), so that training can leave that part out of the
document. The queries of the development sets are read for one purpose only: to drop a pair whose request equals one.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import phrasing
from corpus import DEVELOPMENT, PEOPLE, Item, hashes, item_of, plain, pool_items, read_queries, read_tools
from toolscout.discovery.clauses import split_clauses
from toolscout.text import query_terms, terms

SINGLE = 9
"""How many requests are made from one tool."""
TYPOS = 0.06
HURRIED = 0.12
"""The share of people's requests that are also written as if typed in a hurry."""
Pair = dict[str, Any]


def requests_of(item: Item, random: Random) -> Iterator[tuple[str, str, str]]:
    """Give requests for one tool, as (text, kind, what it was made from)."""
    said = phrasing.sentences(item.description)
    name, brand = plain(item.name), phrasing.brand(item.server) if item.server else ""
    schema = item.schema.get("properties")
    parameters = schema if isinstance(schema, dict) else {}
    required = [name for name in item.schema.get("required") or () if isinstance(name, str)]
    first = said[0] if said else name
    made = phrasing.imperative(first, random)
    source = "first" if said else "name"
    yield name, "name", "name"
    yield phrasing.asked(made, random), "asked", source
    yield phrasing.reworded(made, random), "reworded", source
    yield phrasing.wondered(phrasing.noun_phrase(made), random), "noun", source
    again = phrasing.reworded(phrasing.imperative(random.choice(said) if said else name, random), random)
    if parameters:
        yield phrasing.filled(phrasing.asked(again, random), parameters, required, random), "filled", ""
        yield phrasing.filled(name, parameters, required, random), "filled", "name"
    else:
        yield phrasing.asked(phrasing.reworded(name, random), random), "asked", "name"
    yield phrasing.keywords([item.name, first], random), "keywords", ""
    yield phrasing.in_context(phrasing.asked(again, random), random), "context", ""
    if len(said) > 1:
        yield random.choice(said[1:])[:300], "rest", "rest"
        yield phrasing.keywords(said[1:], random), "keywords", "rest"
    if brand:
        forms = (
            f"{made} in {brand}", f"{brand}: {made}", f"{made} using {brand}", f"{brand} {name}",
            f"server: {brand} tool: {name}", f"{phrasing.noun_phrase(made)} {brand}", f"use {brand} to {made}",
        )  # fmt: skip
        yield random.choice(forms), "server", random.choice(("", source))


def made_pairs(items: list[Item], random: Random) -> Iterator[Pair]:
    """Give the pairs made by rule, single needs and several."""
    ready: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for place, item in enumerate(items):
        found = [entry for entry in requests_of(item, random) if len(entry[0].split()) >= 2 or entry[1] == "name"]
        random.shuffle(found)
        for text, kind, hide in found[:SINGLE]:
            if kind in ("asked", "reworded", "filled", "noun"):
                ready[item.server or item.pool].append((text, place))
            if random.random() < TYPOS:
                text = phrasing.spoilt(text, random)
            yield {"query": text, "tools": [place], "kind": kind, "pool": item.pool, "hide": hide}
    everything = [entry for group in ready.values() for entry in group]
    for place, item in enumerate(items):
        near = ready[item.server or item.pool]
        own = [entry for entry in near if entry[1] == place] if len(near) < 400 else []
        pool = near if len(near) > 6 and random.random() < 0.5 else everything
        chosen = [random.choice(own)] if own else []
        chosen += [random.choice(pool) for _ in range(random.choice((1, 2, 2, 3)))]
        random.shuffle(chosen)
        if len({tool for _, tool in chosen}) > 1:
            text = phrasing.joined([text for text, _ in chosen], random)
            if random.random() < 0.3:
                text = phrasing.in_context(text, random)
            tools = list(dict.fromkeys(tool for _, tool in chosen))
            yield {"query": text, "tools": tools, "kind": "several", "pool": item.pool, "hide": ""}


def labelled_pairs(items: list[Item]) -> Iterator[Pair]:
    """Give the queries of the training splits; a clause of one goes to the gold tool whose words it shares most."""
    for pool, folder in (("metatool", "train_metatool"), ("seal", "train_sealtools")):
        places = {(item.server, item.same): place for place, item in enumerate(items) if item.pool == pool}
        names = {}
        for tool in read_tools(folder):
            item = item_of(tool, pool)
            names[tool["id"]] = places[item.server, item.same]
        for row in read_queries(folder):
            gold = [names[name] for name in row["gold"] if name in names]
            yield {"query": row["query"], "tools": gold, "kind": "labelled", "pool": pool, "hide": ""}
            for clause in split_clauses(row["query"]) if len(gold) > 1 else ():
                wanted = set(query_terms(clause))
                shares = sorted(((_shared(wanted, items[tool]), tool) for tool in gold), reverse=True)
                if shares[0][0] >= 2 and shares[0][0] > shares[1][0]:
                    yield {"query": clause, "tools": [shares[0][1]], "kind": "clause", "pool": pool, "hide": ""}


def people_pairs(items: list[Item], random: Random) -> Iterator[Pair]:
    """Give the requests that people and agents wrote: as they are, as typed in a hurry, and two joined into one."""
    places = {(item.server, item.same): place for place, item in enumerate(items) if item.pool == "catalogue"}
    wanted = {row["gold"][0] for row in read_queries("train_people")}
    names = {
        tool["id"]: places[item.server, item.same]
        for tool in read_tools("mcp_catalogue")
        if tool["id"] in wanted and (item := item_of(tool, "catalogue"))
    }
    messages: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in read_queries("train_people"):
        place = names[row["gold"][0]]
        pair = {"query": row["query"], "tools": [place], "kind": row["style"], "pool": "people", "hide": ""}
        yield pair
        if random.random() < HURRIED:
            yield pair | {"query": phrasing.hurried(row["query"], random), "kind": "hurried"}
        if row["style"] == "user":
            messages[items[place].server].append((row["query"], place))
    everything = [message for group in messages.values() for message in group]
    for text, place in everything:
        near = messages[items[place].server]
        other, second = random.choice(near if len(near) > 2 and random.random() < 0.5 else everything)
        if second != place:
            joined = phrasing.joined([text, other], random)
            yield {"query": joined, "tools": [place, second], "kind": "joined", "pool": "people", "hide": ""}


def _shared(wanted: set[str], item: Item) -> int:
    return len(wanted & set(terms(f"{item.name} {item.description}")))


def main() -> None:
    """Write the pairs, and say what they are."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    items = pool_items()
    forbidden = {
        " ".join(row["query"].lower().split()) for name in (*DEVELOPMENT, PEOPLE) for row in read_queries(name)
    }
    counts: Counter[tuple[str, str]] = Counter()
    dropped = 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        random = Random(options.seed)
        for pair in (*labelled_pairs(items), *made_pairs(items, random), *people_pairs(items, random)):
            if " ".join(pair["query"].lower().split()) in forbidden:
                dropped += 1
                continue
            counts[pair["pool"], pair["kind"]] += 1
            out.write((json.dumps(pair, ensure_ascii=False) + "\n").encode())
    print(f"{sum(counts.values())} pairs from {len(items)} tools; {dropped} equal to a development query dropped")
    for (pool, kind), count in sorted(counts.items()):
        print(f"  {pool:10s} {kind:10s} {count}")
    for name, digest in hashes():
        print(f"  sha256 {digest} {name}")


if __name__ == "__main__":
    main()
