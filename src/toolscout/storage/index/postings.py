"""The inverted index: for each term the rows that contain it, with the impact that enrichment computed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from toolscout.models import Terms
from toolscout.storage.index.top_k import top_k

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from toolscout.models import BoolArray, ByteArray, FloatArray, IntArray, RowArray

PACKED = np.dtype([("term", "<u8"), ("impact", "<f2"), ("fields", "u1")])


@lru_cache(maxsize=200_000)
def term_id(term: str) -> int:
    """Return the number of a term: a hash, so that no vocabulary has to be stored or shared."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def pack_terms(terms: Terms) -> bytes:
    """Encode a tool's terms as the bytes that a store keeps."""
    packed = np.empty(len(terms.words), dtype=PACKED)
    packed["term"] = [term_id(word) for word in terms.words]
    packed["impact"] = terms.impact
    packed["fields"] = np.frombuffer(terms.fields, dtype=np.uint8)
    return packed.tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """The rows that contain one term, ascending, with the impact and the fields of the term in each."""

    rows: RowArray
    impact: FloatArray
    fields: ByteArray


class InvertedIndex:
    """The immutable inverted index of a generation."""

    def __init__(self, ids: NDArray[np.uint64], rows: RowArray, impact: NDArray[np.float16], fields: ByteArray) -> None:
        """Take the columns of the entries, sorted by term and row."""
        self._rows, self._impact, self._fields = rows, impact, fields
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.empty(0, dtype=np.int64)
        self._ids = ids[starts]
        self._starts = np.r_[starts, len(ids)]

    @classmethod
    def from_packed(cls, packed: Sequence[bytes]) -> InvertedIndex:
        """Build an index from the packed terms of each row."""
        return cls(*_entries(packed, np.arange(len(packed), dtype=np.int32)))

    def with_rows(self, source: IntArray, added: Sequence[bytes]) -> InvertedIndex:
        """Return an index of the rows that `source` names, in its order. Where it is negative, `added` has the row."""
        place = np.full(int(self._rows.max(initial=-1)) + 1, -1, dtype=np.int32)
        kept = np.flatnonzero((source >= 0) & (source < len(place)))
        place[source[kept]] = kept
        rows = place[self._rows]
        here = rows >= 0
        ids, rows = np.repeat(self._ids, np.diff(self._starts))[here], rows[here]
        new_ids, new_rows, new_impact, new_fields = _entries(added, np.flatnonzero(source < 0).astype(np.int32))
        first, last = np.searchsorted(ids, new_ids), np.searchsorted(ids, new_ids, "right")
        spans = zip(first.tolist(), last.tolist(), new_rows.tolist(), strict=True)
        at = [start + int(np.searchsorted(rows[start:end], row)) for start, end, row in spans]
        return InvertedIndex(
            np.insert(ids, at, new_ids),
            np.insert(rows, at, new_rows),
            np.insert(self._impact[here], at, new_impact),
            np.insert(self._fields[here], at, new_fields),
        )

    def postings(self, term: str) -> Postings | None:
        """Return the postings of a term, or None when no tool has it."""
        number = np.uint64(term_id(term))
        at = int(np.searchsorted(self._ids, number))
        if at == len(self._ids) or self._ids[at] != number:
            return None
        span = slice(int(self._starts[at]), int(self._starts[at + 1]))
        return Postings(rows=self._rows[span], impact=self._impact[span].astype(np.float32), fields=self._fields[span])


def _entries(
    packed: Sequence[bytes], rows: RowArray
) -> tuple[NDArray[np.uint64], RowArray, NDArray[np.float16], ByteArray]:
    """Return term, row, impact and fields of every entry, sorted by term and row. `rows` ascend."""
    joined = np.frombuffer(b"".join(packed), dtype=PACKED)
    counts = np.fromiter((len(item) // PACKED.itemsize for item in packed), dtype=np.int64, count=len(packed))
    ids = np.ascontiguousarray(joined["term"])
    order = np.argsort(ids, kind="stable")
    return ids[order], np.repeat(rows, counts)[order], joined["impact"][order], joined["fields"][order]


def best_rows(weighted: Iterable[tuple[Postings, float]], allowed: BoolArray, rows: int, limit: int) -> IntArray:
    """Return the allowed rows with the highest sum of weight x impact, best `limit` of them, unordered."""
    scores = np.zeros(rows, dtype=np.float32)
    for postings, weight in weighted:
        scores[postings.rows] += weight * postings.impact
    scores *= allowed
    positive = np.flatnonzero(scores)
    return positive[top_k(scores[positive], limit)]
