"""Names of one server that a person or a model can mistake for one another, such as `send` with a Cyrillic `е`."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from toolscout.indexing.screen.characters import character_tables
from toolscout.models import Dropped, Tool

_SHAPES = str.maketrans({"0": "o", "1": "l", "I": "l", "|": "l"})


def find_look_alikes(tools: Iterable[Tool]) -> tuple[Dropped, ...]:
    """Report each tool whose name looks like that of another tool. All of them stay in the catalogue."""
    groups: dict[str, list[str]] = defaultdict(list)
    for tool in tools:
        groups[name_shape(tool.name)].append(tool.key)
    return tuple(
        Dropped(where=key, reason=f"its name looks like that of {', '.join(other for other in keys if other != key)}")
        for _, keys in sorted(groups.items())
        if len(keys) > 1
        for key in sorted(keys)
    )


def name_shape(name: str) -> str:
    """Return how a name looks: without case, invisible characters and look-alike letters, with 0 as o and 1 as l."""
    tables = character_tables()
    plain = unicodedata.normalize("NFKC", name).translate(tables.invisible)
    return plain.translate(_SHAPES).casefold().translate(tables.look_alikes)
