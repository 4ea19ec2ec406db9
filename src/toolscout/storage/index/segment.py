"""One scope's tools of one generation, as columns: whole and immutable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toolscout.errors import DimensionError
from toolscout.models import Facets, Filter, Scope
from toolscout.storage.index.postings import InvertedIndex
from toolscout.storage.index.vectors import VectorIndex
from toolscout.storage.tool_json import read_facets

if TYPE_CHECKING:
    from toolscout.models import BoolArray, FloatArray, RowArray


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
        words: InvertedIndex,
        vectors: VectorIndex,
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

    @classmethod
    def from_rows(
        cls, rows: Sequence[Sequence[Any]], *, scope: Scope, generation: int, model_id: str, exact_rows: int, where: str
    ) -> Segment:
        """Build a segment from rows of (tenant, key, owner, server, switch, facets, definition, terms, vector).

        The rows are sorted by key. `where` names the store in an error.
        """
        return cls(
            scope=scope,
            generation=generation,
            model_id=model_id,
            facets=[read_facets(*row[:6]) for row in rows],
            definitions=[row[6] for row in rows],
            words=InvertedIndex([row[7] for row in rows]),
            vectors=VectorIndex(_matrix([row[8] for row in rows], model_id, where), exact_rows=exact_rows),
        )

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


def _matrix(blobs: Sequence[bytes | None], model_id: str, where: str) -> FloatArray:
    lengths = {len(blob) for blob in blobs if blob is not None}
    if len(lengths) > 1:
        sizes = sorted(length // 2 for length in lengths)
        raise DimensionError.two_models(f"{where} holds vectors of {sizes} numbers for {model_id}")
    size = lengths.pop() if lengths else 0
    empty = bytes(size)
    joined = np.frombuffer(b"".join(blob if blob is not None else empty for blob in blobs), dtype="<f2")
    return joined.astype(np.float32).reshape(len(blobs), size // 2)


def _codes(values: Sequence[str]) -> tuple[dict[str, int], RowArray]:
    """Give each distinct value a number, and write the values as a column of these."""
    numbers: dict[str, int] = {}
    column = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int32, len(values))
    return numbers, column
