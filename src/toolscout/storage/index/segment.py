"""A segment: the tools of one scope and one generation, as immutable columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toolscout.errors import DimensionError
from toolscout.models import Facets, Filter, Scope
from toolscout.storage.columns import read_facets
from toolscout.storage.index.postings import InvertedIndex
from toolscout.storage.index.vectors import VectorIndex

if TYPE_CHECKING:
    from toolscout.models import BoolArray, FloatArray, RowArray

_MOST_CHANGED = 2_000
"""Of more changed tools than this, reading the whole scope is faster than working them in."""


class Segment:
    """Columns with one row for each tool, sorted by key, so that equal scores have the same order everywhere."""

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
        rows_by_tag: dict[str, list[int]] = {}
        for row, item in enumerate(facets):
            for tag in item.tags:
                rows_by_tag.setdefault(tag.casefold(), []).append(row)
        self._rows_by_tag = {tag: np.array(rows, dtype=np.int64) for tag, rows in rows_by_tag.items()}

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
            words=InvertedIndex.from_packed([row[7] for row in rows]),
            vectors=VectorIndex(_matrix([row[8] for row in rows], model_id, where), exact_rows=exact_rows),
        )

    def can_replace(self, keys: Sequence[str], changed: Collection[str]) -> bool:
        """Tell whether `with_changes` is worth it: whether few tools changed, and there are vectors or none come."""
        return bool(keys) and len(changed) <= _MOST_CHANGED and (self.vectors.matrix.shape[1] > 0 or not changed)

    def with_changes(
        self, keys: Sequence[str], rows: Sequence[Sequence[Any]], *, generation: int, where: str
    ) -> Segment:
        """Return a segment of all `keys`, sorted: the tools of `rows`, as `from_rows` takes them, the rest of this one.

        It is equal to one that is read whole.
        """
        new = {row[1]: place for place, row in enumerate(rows)}
        old = [-1 if key in new else self.row_of[key] for key in keys]
        source = np.array(old, dtype=np.int64)
        rows = [rows[new[key]] for key, row in zip(keys, old, strict=True) if row < 0]
        facets, definitions = iter([read_facets(*row[:6]) for row in rows]), iter([row[6] for row in rows])
        return Segment(
            scope=self.scope,
            generation=generation,
            model_id=self.model_id,
            facets=[self.facets[row] if row >= 0 else next(facets) for row in old],
            definitions=[self.definitions[row] if row >= 0 else next(definitions) for row in old],
            words=self.words.with_rows(source, [row[7] for row in rows]),
            vectors=self.vectors.with_rows(source, _matrix([row[8] for row in rows], self.model_id, where), where),
        )

    def keys_without_vector(self) -> set[str]:
        """Return the keys of the tools that have no vector yet."""
        matrix = self.vectors.matrix
        without = ~matrix.any(axis=1) if matrix.shape[1] else np.ones(len(self), dtype=np.bool_)
        return {self.facets[row].key for row in np.flatnonzero(without).tolist()}

    def __len__(self) -> int:
        """Count the tools."""
        return len(self.facets)

    def matching(self, narrow: Filter) -> BoolArray:
        """Return a mask of the rows that fit a filter."""
        allowed = np.ones(len(self.facets), dtype=np.bool_)
        if narrow.category is not None:
            allowed &= self._category == self._categories.get(narrow.category.casefold(), -1)
        if narrow.servers:
            keys = [self._servers.get(name, -1) for name in narrow.servers]
            titles = [self._titles.get(name, -1) for name in narrow.servers]
            allowed &= np.isin(self._server, keys) | np.isin(self._title, titles)
        if narrow.tags:
            hits = np.zeros(len(self.facets), dtype=np.int32)
            tags = {tag.casefold() for tag in narrow.tags}
            for tag in tags & self._rows_by_tag.keys():
                hits[self._rows_by_tag[tag]] += 1
            allowed &= hits >= (len(tags) if narrow.match == "all" else 1)
        return allowed


def _matrix(blobs: Sequence[bytes | None], model_id: str, where: str) -> FloatArray:
    """Put half-precision vectors together as one matrix. A tool without a vector has zeros."""
    lengths = {len(blob) for blob in blobs if blob is not None}
    if len(lengths) > 1:
        sizes = sorted(length // 2 for length in lengths)
        raise DimensionError.two_models(f"{where} holds vectors of {sizes} numbers for {model_id}")
    size = lengths.pop() if lengths else 0
    empty = bytes(size)
    joined = np.frombuffer(b"".join(blob if blob is not None else empty for blob in blobs), dtype="<f2")
    return joined.astype(np.float32).reshape(len(blobs), size // 2)


def _codes(values: Sequence[str]) -> tuple[dict[str, int], RowArray]:
    """Number the distinct values and return the numbers with the column of them (dictionary encoding)."""
    numbers: dict[str, int] = {}
    column = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int32, len(values))
    return numbers, column
