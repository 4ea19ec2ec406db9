"""Vector search in memory: exact while that is fast enough, by an HNSW graph (faiss) for more rows."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from toolscout.storage.index.top_k import top_k

if TYPE_CHECKING:
    from toolscout.models import BoolArray, FloatArray, IntArray

_NEIGHBOURS = 16
_BUILD_WIDTH = 64
_SEARCH_WIDTH = 256
_SELECTIVE = 4


class VectorIndex:
    """The unit vectors of a generation, one row for each tool. A tool without a vector has zeros.

    `vecdot` instead of `@`: a BLAS with its own threads is a little faster on an idle machine and ten times slower on a
    busy one, where its threads wait for one another.
    """

    def __init__(self, matrix: FloatArray, *, exact_rows: int) -> None:
        """Build a graph in the background for more than `exact_rows` rows. Until it is built, searches are exact."""
        self.matrix = matrix
        self._exact_rows = exact_rows
        self._graph: Any = None
        self._builder: threading.Thread | None = None
        if len(matrix) > exact_rows:
            self._builder = threading.Thread(target=self._build, name="toolscout-hnsw", daemon=True)
            self._builder.start()

    def wait(self) -> None:
        """Wait until the graph is built, if there is to be one."""
        if self._builder:
            self._builder.join()

    @property
    def exact(self) -> bool:
        """Whether searches compare every vector now."""
        return self._graph is None

    def best_rows(self, query: FloatArray, allowed: BoolArray, count: int, limit: int) -> IntArray:
        """Return the `limit` allowed rows nearest to the query, unordered. `count` is how many rows are allowed."""
        if count <= limit:
            return np.flatnonzero(allowed)
        if self._graph is not None and count > self._exact_rows:
            rows = self._approximate(query, allowed, count, limit)
            if len(rows) == limit:  # with a strict filter, a graph search may end before it has found enough rows
                return rows
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

    def _approximate(self, query: FloatArray, allowed: BoolArray, count: int, limit: int) -> IntArray:
        faiss: Any = import_module("faiss")
        width = max(_SEARCH_WIDTH, 2 * limit)
        if count < len(self.matrix):
            # The filter works inside the graph search: rows that are not allowed are never candidates.
            bits = np.packbits(allowed, bitorder="little")
            parameters = faiss.SearchParametersHNSW(efSearch=width, sel=faiss.IDSelectorBitmap(bits))
        else:
            parameters = faiss.SearchParametersHNSW(efSearch=width)
        _, rows = self._graph.search(query[None], limit, params=parameters)
        nearest: IntArray = rows[0][rows[0] >= 0].astype(np.int64)
        return nearest

    def _build(self) -> None:
        try:
            faiss: Any = import_module("faiss")
        except ImportError:
            return
        graph = faiss.IndexHNSWSQ(
            self.matrix.shape[1], faiss.ScalarQuantizer.QT_fp16, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT
        )
        graph.hnsw.efConstruction = _BUILD_WIDTH
        graph.train(self.matrix[:1])
        graph.add(self.matrix)
        self._graph = graph
