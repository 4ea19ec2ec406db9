"""The tasks: what somebody asks for, the one tool that does it, and the arguments that count as right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data import rows

TASKS = Path(__file__).parent / "tasks.jsonl"
ANY = "*"
"""Among the accepted values of a parameter: any value will do. `None` there means that it may be left out."""


@dataclass(frozen=True)
class Task:
    """One request with the tool and the arguments that serve it."""

    id: str
    set: str
    tool: str
    request: str
    arguments: Mapping[str, list[Any]]


def read_tasks() -> list[Task]:
    """Read the tasks."""
    return [Task(**row) for row in rows(TASKS)]


def arguments_are_right(task: Task, given: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Compare the arguments of a call. A parameter that the task does not list must be empty or have its default."""
    parameters = schema.get("properties", {})
    for name, accepted in task.arguments.items():
        value = given.get(name)
        if value is None:
            if None not in accepted:
                return False
        elif ANY not in accepted and not any(same(value, item) for item in accepted if item is not None):
            return False
    extra = {name: value for name, value in given.items() if name not in task.arguments}
    return all(
        value in (None, "", [], {}) or same(value, parameters.get(name, {}).get("default"))
        for name, value in extra.items()
    )


def same(given: Any, accepted: Any) -> bool:
    """Compare two values. Case, outer space, a final full stop, and whether a number is written as text are ignored."""
    if isinstance(given, bool) or isinstance(accepted, bool):
        return str(given).lower() == str(accepted).lower()
    if isinstance(given, Mapping) and isinstance(accepted, Mapping):
        return given.keys() == accepted.keys() and all(same(given[name], accepted[name]) for name in given)
    if isinstance(given, list) and isinstance(accepted, list):
        return len(given) == len(accepted) and all(map(same, given, accepted))
    if isinstance(given, Mapping | list) or isinstance(accepted, Mapping | list):
        return False
    try:
        return float(given) == float(accepted)
    except (TypeError, ValueError):
        return _plain(given) == _plain(accepted)


def _plain(value: Any) -> str:
    return " ".join(str(value).casefold().split()).rstrip(".")
