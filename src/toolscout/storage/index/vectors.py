"""Vector search in memory: exact while that is fast enough, with sign codes before the exact comparison for more rows.

The sign code of a vector has one bit for each number: whether it is positive. Few different bits mean a small angle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toolscout.errors import DimensionError
from toolscout.storage.index.top_k import top_k

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from toolscout.models import BoolArray, FloatArray, IntArray

_SELECTIVE = 4
_LEAST_COMPARED = 4_000
_COMPARED_PER_HIT = 40
_WORD_BITS = 64
_CHUNK = 65_536


class VectorIndex:
    """The unit vectors of a generation, one row for each tool. A tool without a vector has zeros.

    What a search finds depends on the allowed rows alone: a code belongs to one row, and which way is taken is decided
    by how many rows are allowed. A graph would be faster, but leads through rows that the caller may not see.

    `vecdot` instead of `@`: a BLAS with its own threads is a little faster on an idle machine and ten times slower on a
    busy one, where its threads wait for one another.
    """

    def __init__(self, matrix: FloatArray, *, exact_rows: int, codes: NDArray[np.uint64] | None = None) -> None:
        """Compare codes first when more than `exact_rows` rows are allowed. Those that are known need not be made."""
        self.matrix = matrix
        self._exact_rows = exact_rows
        self._codes = codes
        if codes is None and len(matrix) > exact_rows:
            self._codes = _sign_codes(matrix)

    def with_rows(self, source: IntArray, added: FloatArray, where: str) -> VectorIndex:
        """Return an index of the rows that `source` names, in its order. Where it is negative, `added` has the row."""
        length = self.matrix.shape[1]
        if added.shape[1] not in (0, length):
            raise DimensionError.two_models(f"{where} holds vectors of {sorted({length, added.shape[1]})} numbers")
        matrix = self.matrix[source]
        new = np.flatnonzero(source < 0)
        matrix[new] = added if added.shape[1] else 0.0
        codes = None
        if self._codes is not None and len(matrix) > self._exact_rows:
            codes = self._codes[:, source]
            codes[:, new] = _sign_codes(matrix[new])
        return VectorIndex(matrix, exact_rows=self._exact_rows, codes=codes)

    @property
    def exact(self) -> bool:
        """Whether every search compares all vectors."""
        return self._codes is None

    def best_rows(self, query: FloatArray, allowed: BoolArray, count: int, limit: int) -> IntArray:
        """Return the `limit` allowed rows nearest to the query, unordered. `count` is how many rows are allowed."""
        if count <= limit:
            return np.flatnonzero(allowed)
        if self._codes is not None and count > self._exact_rows:
            rows = self._rows_with_near_codes(self._codes, query, allowed, limit)
            return rows[top_k(np.vecdot(self.matrix[rows], query), limit)]
        if count * _SELECTIVE < len(self.matrix):
            rows = np.flatnonzero(allowed)
            return rows[top_k(np.vecdot(self.matrix[rows], query), limit)]
        scores = np.vecdot(self.matrix, query)
        if count < len(self.matrix):
            scores = np.where(allowed, scores, np.float32(-2))
        return top_k(scores, limit)

    def cosine(self, queries: FloatArray, rows: IntArray) -> FloatArray:
        """Return the exact cosine of each query with each of the rows, as [queries, rows].

        Not a matrix product, whose last bits depend on where a row stands: equal vectors must have equal scores.
        """
        result: FloatArray = np.vecdot(queries[:, None, :], self.matrix[rows][None])
        return result

    def _rows_with_near_codes(
        self, codes: NDArray[np.uint64], query: FloatArray, allowed: BoolArray, limit: int
    ) -> IntArray:
        """Return the allowed rows whose codes differ least from the query's, and all that differ as much as the last.

        They are many more than `limit`, because codes are coarse.
        """
        different = np.zeros(len(allowed), dtype=np.uint16)
        for words, word in zip(codes, _sign_codes(query[None])[:, 0], strict=True):
            different += np.bitwise_count(words ^ word)
        rows_within = np.cumsum(np.bincount(different[allowed]))
        most = np.searchsorted(rows_within, max(_LEAST_COMPARED, _COMPARED_PER_HIT * limit))
        return np.flatnonzero(allowed & (different <= most))


def _sign_codes(matrix: FloatArray) -> NDArray[np.uint64]:
    """Return the codes as [words, rows]."""
    rows, length = matrix.shape
    codes = np.zeros((-(-length // _WORD_BITS), rows), dtype=np.uint64)
    for start in range(0, rows, _CHUNK):
        bits = np.packbits(matrix[start : start + _CHUNK] > 0, axis=1)
        padded = np.pad(bits, ((0, 0), (0, codes.shape[0] * 8 - bits.shape[1])))
        codes[:, start : start + _CHUNK] = padded.view(np.uint64).T
    return codes
