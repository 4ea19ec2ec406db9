"""Pools of tools: catalogues of a given size, each with the tools of some tasks and with others beside them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.agent.tasks import Task
from benchmarks.data import bench_folder, rows
from toolscout.tool_keys import server_slug

SETS = ("real_servers", "bfcl_synth")
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "double": "number", "any": None}


@dataclass(frozen=True)
class Pool:
    """The tools that the tasks are done among, by the key under which every arm shows them."""

    rows: Mapping[str, Mapping[str, Any]]
    tasks: Mapping[str, Task]
    """By the key of the right tool."""


def make_pools(tasks: list[Task], size: int, *, seed: int = 0) -> Iterator[Pool]:
    """Divide the tasks over pools of `size` tools. Half of a pool, at most, are right tools of its tasks."""
    everything = {(name, row["id"]): row for name in SETS for row in rows(bench_folder() / name / "tools.jsonl")}
    chance = random.Random(seed)
    shuffled = chance.sample(tasks, len(tasks))
    each = size // 2
    for start in range(0, len(shuffled), each):
        part = {(task.set, task.tool): task for task in shuffled[start : start + each]}
        others = chance.sample([key for key in everything if key not in part], max(size - len(part), 0))
        chosen = chance.sample([*part, *others], len(part) + len(others))
        by_key = {_key(everything[place]): _clean(everything[place]) for place in chosen}
        yield Pool(rows=by_key, tasks={_key(everything[place]): task for place, task in part.items()})


def _key(row: Mapping[str, Any]) -> str:
    return f"{server_slug(row.get('server') or 'local')}__{row['name']}"


def _clean(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with a real JSON schema: one of the sets writes Python's names of types."""
    schema = _json_schema(row.get("input_schema") or {"type": "object"})
    return {"server": "local", **{k: v for k, v in row.items() if v}, "input_schema": {**schema, "type": "object"}}


def _json_schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    mapped = {name: _json_schema(item) for name, item in value.items()}
    kind = value.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        mapped["type"] = _TYPES[kind]
        if mapped["type"] is None:
            del mapped["type"]
    return mapped
