"""The tools and queries that the training stages share, and their words exactly as the product writes them.

Data lies in the folder that ``TOOLSCOUT_BENCH`` names: one folder a set, with ``tools.jsonl`` and ``queries.jsonl``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from toolscout.indexing.enrich import parameters
from toolscout.models import LOCAL, Document
from toolscout.text import split_words

DEVELOPMENT = ("azure_mcp", "livemcp_step", "metatool_single", "stabletoolbench", "sealtools", "bfcl_synth")
"""The public sets to measure on: their queries are never trained on."""
PEOPLE = "real_servers"
"""Requests as people write them, over real servers: to measure on, never to train on."""
POOLS = {"catalogue": "mcp_catalogue", "metatool": "train_metatool", "seal": "train_sealtools"}
"""Where the tools to train on come from; the last two come with queries, the first with those of `train_people`.

The tools of `real_servers` are in none of them, so that the set measures what servers nobody has seen get."""
FOLDS = ("azure_mcp", "livemcp_step", "metatool_single", "sealtools")
"""Development sets that share tools with a pool; the tools of the other two are in no pool."""


@dataclass(frozen=True, slots=True)
class Item:
    """One tool to train on."""

    pool: str
    server: str
    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def same(self) -> str:
        """Tools with an equal name and description are one and the same to a model."""
        return f"{' '.join(split_words(self.name))}\0{' '.join(self.description.split()).lower()}"


def bench() -> Path:
    """Return the folder of the data, or end with a word about it."""
    folder = os.environ.get("TOOLSCOUT_BENCH")
    if not folder or not Path(folder).is_dir():
        raise SystemExit("set TOOLSCOUT_BENCH to the folder of the benchmark data")
    return Path(folder)


@lru_cache(maxsize=64)
def rows(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_tools(name: str) -> list[dict[str, Any]]:
    """Return the tools of a set."""
    return rows(bench() / name / "tools.jsonl")


def read_queries(name: str) -> list[dict[str, Any]]:
    """Return the queries of a set."""
    return rows(bench() / name / "queries.jsonl")


def strangers(name: str, count: int | None) -> list[int]:
    """Choose tools of the large catalogue to stand around a set: no equal id, no equal text; all unless counted."""
    own, more = read_tools(name), read_tools("mcp_catalogue")
    ids, same = {tool["id"] for tool in own}, {item_of(tool).same for tool in own}
    rows = [row for row, tool in enumerate(more) if tool["id"] not in ids and item_of(tool).same not in same]
    if count is None:
        return rows
    return [rows[place] for place in sorted(np.random.default_rng(0).permutation(len(rows))[:count])]


def item_of(tool: Mapping[str, Any], pool: str = "") -> Item:
    """Make an item of one row of ``tools.jsonl``."""
    schema = tool.get("input_schema")
    server = str(tool.get("server") or "")
    return Item(
        pool=pool,
        server="" if server == LOCAL else server,
        name=str(tool["name"]),
        description=str(tool.get("description") or ""),
        schema=schema if isinstance(schema, dict) else {},
    )


def plain(name: str) -> str:
    """Write an identifier in words."""
    return " ".join(split_words(name)) or name


def document(item: Item) -> Document:
    """Return the parts of a tool as the product embeds them."""
    return Document(
        name=plain(item.name),
        server=plain(item.server) if item.server else "",
        description=item.description,
        parameters=", ".join(plain(name) for name, _ in parameters(item.schema)),
    )


def pool_items() -> list[Item]:
    """Return all tools to train on, equal ones of one server once, in a fixed order."""
    seen: set[tuple[str, str]] = set()
    items = []
    for pool, folder in POOLS.items():
        for tool in read_tools(folder):
            item = item_of(tool, pool)
            mark = (item.server, item.same)
            if mark not in seen:
                seen.add(mark)
                items.append(item)
    return items


def kept_out(items: list[Item], fold: str) -> list[bool]:
    """Say of each tool whether the fold of a development set must not see it: its own tools, and equal texts."""
    if not fold:
        return [False] * len(items)
    if fold == "all":
        return [any(each) for each in zip(*(kept_out(items, name) for name in FOLDS), strict=True)]
    own = [item_of(tool) for tool in read_tools(fold)]
    same = {item.same for item in own}
    said = {" ".join(item.description.split()).lower() for item in own if len(item.description) > 40}
    servers = {item.server for item in own if item.server} if fold in ("azure_mcp", "livemcp_step") else set()
    pool = {"metatool_single": "metatool", "sealtools": "seal"}.get(fold)
    return [
        item.pool == pool
        or item.same in same
        or " ".join(item.description.split()).lower() in said
        or item.server in servers
        for item in items
    ]


def hashes(folders: Iterable[str] = (*POOLS.values(), "train_people")) -> Iterator[tuple[str, str]]:
    """Give each file of some sets (those that training reads), and the start of its SHA-256."""
    for folder in folders:
        for name in ("tools.jsonl", "queries.jsonl"):
            path = bench() / folder / name
            if path.exists():
                yield f"{folder}/{name}", hashlib.sha256(path.read_bytes()).hexdigest()[:16]
