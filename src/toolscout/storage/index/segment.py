"""One scope's tools of one generation, as columns: whole and immutable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from toolscout.models import Facets, Filter, Scope
from toolscout.storage.index.vectors import Vectors
from toolscout.storage.index.words import Words

if TYPE_CHECKING:
    from toolscout.models import BoolArray, RowArray


class Segment:
    """Rows are in the order of keys, so that equal scores fall in the same order everywhere."""

    def __init__(
        self,
        *,
        scope: Scope,
        generation: int,
        model_id: str,
        facets: Sequence[Facets],
        definitions: Sequence[bytes],
        words: Words,
        vectors: Vectors,
    ) -> None:
        """Take over the columns; they are never changed afterwards."""
        self.scope = scope
        self.generation = generation
        self.model_id = model_id
        self.facets = facets
        self.definitions = definitions
        self.words = words
        self.vectors = vectors
        self.row_of = {item.key: row for row, item in enumerate(facets)}
        self._categories, self._category = _codes([item.category.casefold() for item in facets])
        self._servers, self._server = _codes([item.server for item in facets])
        self._titles, self._title = _codes([item.server_title for item in facets])
        tagged: dict[str, list[int]] = {}
        for row, item in enumerate(facets):
            for tag in item.tags:
                tagged.setdefault(tag.casefold(), []).append(row)
        self._tagged = {tag: np.array(rows, dtype=np.int64) for tag, rows in tagged.items()}

    def __len__(self) -> int:
        """Count the tools."""
        return len(self.facets)

    def matching(self, narrow: Filter) -> BoolArray:
        """Tell which rows a filter asks for, in a few array operations."""
        allowed = np.ones(len(self.facets), dtype=np.bool_)
        if narrow.category is not None:
            allowed &= self._category == self._categories.get(narrow.category.casefold(), -1)
        if narrow.servers:
            wanted = [self._servers.get(name, -1) for name in narrow.servers]
            titles = [self._titles.get(name, -1) for name in narrow.servers]
            allowed &= np.isin(self._server, wanted) | np.isin(self._title, titles)
        if narrow.tags:
            hits = np.zeros(len(self.facets), dtype=np.int32)
            wanted_tags = {tag.casefold() for tag in narrow.tags}
            for tag in wanted_tags:
                if tag in self._tagged:
                    hits[self._tagged[tag]] += 1
            allowed &= hits >= (len(wanted_tags) if narrow.match == "all" else 1)
        return allowed


def _codes(values: Sequence[str]) -> tuple[dict[str, int], RowArray]:
    """Give each distinct value a number, and write the values as a column of these."""
    numbers: dict[str, int] = {}
    column = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int32, len(values))
    return numbers, column
