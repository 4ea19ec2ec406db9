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

    def __init__(self, packed: Sequence[bytes]) -> None:
        joined = np.frombuffer(b"".join(packed), dtype=PACKED)
        counts = np.fromiter((len(item) // PACKED.itemsize for item in packed), dtype=np.int64, count=len(packed))
        rows = np.repeat(np.arange(len(packed), dtype=np.int32), counts)
        ids = np.ascontiguousarray(joined["term"])
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        self._rows = rows[order]
        self._impact = joined["impact"][order]
        self._fields = joined["fields"][order]
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.empty(0, dtype=np.int64)
        self._ids = ids[starts]
        self._starts = np.r_[starts, len(ids)]

    def postings(self, term: str) -> Postings | None:
        """Return the postings of a term, or None when no tool has it."""
        number = np.uint64(term_id(term))
        at = int(np.searchsorted(self._ids, number))
        if at == len(self._ids) or self._ids[at] != number:
            return None
        span = slice(int(self._starts[at]), int(self._starts[at + 1]))
        return Postings(rows=self._rows[span], impact=self._impact[span].astype(np.float32), fields=self._fields[span])


def best_rows(weighted: Iterable[tuple[Postings, float]], allowed: BoolArray, rows: int, limit: int) -> IntArray:
    """Return the allowed rows with the highest sum of weight x impact, best `limit` of them, unordered."""
    scores = np.zeros(rows, dtype=np.float32)
    for postings, weight in weighted:
        scores[postings.rows] += weight * postings.impact
    scores *= allowed
    positive = np.flatnonzero(scores)
    return positive[top_k(scores[positive], limit)]
