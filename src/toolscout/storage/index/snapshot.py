"""A snapshot: the segments that one caller reads, with access filtered inside the search."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from cachetools import LRUCache

from toolscout.errors import DimensionError
from toolscout.models import Caller, Candidates, Facets, Filter, Intent, Overview, Tool
from toolscout.ports import AccessFilter
from toolscout.storage.columns import read_tool
from toolscout.storage.index.postings import Postings, best_rows
from toolscout.storage.index.segment import Segment
from toolscout.text import split_words

if TYPE_CHECKING:
    from toolscout.models import BoolArray, ByteArray, FloatArray, IntArray

_Result = TypeVar("_Result")
_CACHED_VIEWS = 256
_INLINE_ROWS = 20_000
"""Up to this size a search takes about a millisecond: less than handing it to a thread and back would add."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CallerView:
    """What one caller may see: a mask for each segment."""

    allowed: tuple[BoolArray, ...]
    count: int
    tokens: int = 0
    categories: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()


class Snapshot:
    """The tenant's shared segment and, where the user owns tools, the user's own, searched as one catalogue.

    A tool of the user hides the shared tool with the same key.
    """

    def __init__(self, segments: Sequence[Segment], *, model_id: str, access: AccessFilter) -> None:
        self.segments = tuple(segments)
        self.model_id = model_id
        self.generation = max((segment.generation for segment in self.segments), default=0)
        self._access = access
        self._views: LRUCache[Hashable, CallerView] = LRUCache(_CACHED_VIEWS)
        self._vocabularies: WeakKeyDictionary[CallerView, Sequence[str]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the tools of all segments."""
        return sum(map(len, self.segments))

    async def run(self, read: Callable[[Snapshot], _Result]) -> _Result:
        """Run a read at once on a small catalogue, and in a thread on a large one."""
        return read(self) if len(self) <= _INLINE_ROWS else await asyncio.to_thread(read, self)

    def view(self, caller: Caller) -> CallerView:
        """Return what the caller may see, from the cache or by asking the access filter once for each tool.

        Callers with the same cache key share a view. A view made while the policy was replaced is not cached.
        """
        version = self._access.version
        user = caller.user if len(self.segments) > 1 else None
        cache_key = version, user, self._access.cache_key(caller)
        with self._lock:
            view = self._views.get(cache_key)
        if view is not None:
            return view
        allowed = tuple(
            np.fromiter((self._access(caller, item) for item in segment.facets), np.bool_, len(segment))
            for segment in self.segments
        )
        self._hide_shadowed(allowed)
        facets = self._facets(allowed)
        view = CallerView(
            allowed=allowed,
            count=len(facets),
            tokens=sum(item.tokens for item in facets),
            categories=tuple(sorted({item.category for item in facets})),
            servers=tuple(sorted({item.server for item in facets})),
        )
        if self._access.version != version:
            return view
        with self._lock:
            self._views[cache_key] = view
        return view

    def find(self, caller: Caller, key: str) -> tuple[Segment, int] | None:
        """Return the segment and the row of a key that the caller may see. A user's own tool wins over a shared one."""
        for segment, allowed in zip(self.segments, self.view(caller).allowed, strict=True):
            row = segment.row_of.get(key)
            if row is not None and allowed[row]:
                return segment, row
        return None

    def overview(self, caller: Caller, *, stale: bool) -> Overview:
        """Return the totals of what the caller may see."""
        view = self.view(caller)
        return Overview(
            total=view.count,
            tokens=view.tokens,
            categories=view.categories,
            generation=self.generation,
            model_id=self.model_id,
            stale=stale,
            servers=view.servers,
        )

    def tools(self, caller: Caller, keys: Sequence[str]) -> dict[str, Tool]:
        """Return the full definitions of those keys that the caller may see."""
        places = {key: place for key in keys if (place := self.find(caller, key)) is not None}
        return {key: read_tool(segment.facets[row], segment.definitions[row]) for key, (segment, row) in places.items()}

    def facets(self, caller: Caller, narrow: Filter) -> list[Facets]:
        """Return the tools that the caller may see and that fit the filter, sorted by key."""
        facets = self._facets(self.narrow(caller, narrow).allowed)
        return facets if len(self.segments) == 1 else sorted(facets, key=lambda item: item.key)

    def narrow(self, caller: Caller, narrow: Filter) -> CallerView:
        """Return the view of what the caller may see and of what fits the filter."""
        view = self.view(caller)
        if narrow == Filter():
            return view
        allowed = tuple(
            mask & segment.matching(narrow) for segment, mask in zip(self.segments, view.allowed, strict=True)
        )
        return CallerView(allowed=allowed, count=sum(int(mask.sum()) for mask in allowed))

    def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return the union of the best by vector and by words, with the evidence that the scorer needs."""
        dimensions = {segment.vectors.matrix.shape[1] for segment in self.segments} - {0}
        intents = usable_intents(intents, dimensions if model_id == self.model_id else set())
        view, matching = self.view(caller), self.narrow(caller, narrow)
        names = tuple(dict.fromkeys(term for intent in intents for term in intent.terms))
        postings = [{term: segment.words.postings(term) for term in names} for segment in self.segments]
        sees_all = view.count == len(self)
        frequency = {
            term: sum(
                len(item.rows) if sees_all else int(allowed[item.rows].sum())
                for by_term, allowed in zip(postings, view.allowed, strict=True)
                if (item := by_term[term]) is not None
            )
            for term in names
        }
        return collect_candidates(self.segments, matching.allowed, intents, limit, frequency, view.count, postings)

    def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words of the names that the caller may see, sorted."""
        view = self.view(caller)
        if view not in self._vocabularies:
            facets = self._facets(view.allowed)
            self._vocabularies[view] = sorted({word for item in facets for word in split_words(item.name)})
        return self._vocabularies[view]

    def similar(self, caller: Caller, key: str, limit: int) -> list[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first, or none if it has no vector."""
        place = self.find(caller, key)
        if place is None:
            return []
        segment, row = place
        query = segment.vectors.matrix[row]
        return nearest_tools(self.segments, self.view(caller).allowed, query, key, limit) if query.any() else []

    def _facets(self, allowed: Sequence[BoolArray]) -> list[Facets]:
        return [
            segment.facets[row]
            for segment, mask in zip(self.segments, allowed, strict=True)
            for row in mask.nonzero()[0].tolist()
        ]

    def _hide_shadowed(self, allowed: Sequence[BoolArray]) -> None:
        """Hide each shared tool whose key is also that of a tool of the user."""
        if len(self.segments) < 2:
            return
        shared, personal = self.segments
        for row in allowed[1].nonzero()[0].tolist():
            hidden = shared.row_of.get(personal.facets[row].key)
            if hidden is not None:
                allowed[0][hidden] = False


def usable_intents(intents: Sequence[Intent], dimensions: set[int]) -> list[Intent]:
    """Return the intents for vectors of these dimensions, or without vectors if there are no dimensions.

    A vector of another dimension is refused.
    """
    if not dimensions:
        return [replace(intent, vector=None) for intent in intents]
    for intent in intents:
        if intent.vector is not None and dimensions != {len(intent.vector)}:
            raise DimensionError.two_models(
                f"the catalogue holds vectors of {max(dimensions)} numbers, the query has {len(intent.vector)}"
            )
    return list(intents)


def term_weights(frequency: Mapping[str, int], visible: int) -> dict[str, float]:
    """Return the inverse document frequency of each term, given how many of the `visible` tools contain it."""
    return {term: float(np.log1p((visible - count + 0.5) / (count + 0.5))) for term, count in frequency.items()}


def nearest_tools(
    segments: Sequence[Segment], masks: Sequence[BoolArray], query: FloatArray, key: str, limit: int
) -> list[tuple[Facets, float]]:
    """Return the allowed tools nearest to the vector of the tool `key`, best first, without that tool itself."""
    scored: list[tuple[Facets, float]] = []
    for segment, allowed in zip(segments, masks, strict=True):
        if segment.vectors.matrix.shape[1] == len(query):
            rows = segment.vectors.best_rows(query, allowed, int(allowed.sum()), limit + 1)
            cosine = segment.vectors.cosine(query[None], rows)[0].tolist()
            scored += [(segment.facets[row], score) for row, score in zip(rows.tolist(), cosine, strict=True)]
    scored.sort(key=lambda item: (-item[1], item[0].key))
    return [item for item in scored if item[0].key != key][:limit]


def collect_candidates(
    segments: Sequence[Segment],
    matching: Sequence[BoolArray],
    intents: Sequence[Intent],
    limit: int,
    frequency: Mapping[str, int],
    visible: int,
    postings: Sequence[dict[str, Postings | None]] | None = None,
) -> Candidates:
    """Choose the best of the matching rows of each segment.

    `frequency` counts the visible tools that contain each term, of `visible` tools in all.
    """
    names = tuple(dict.fromkeys(term for intent in intents for term in intent.terms))
    postings = postings or [{term: segment.words.postings(term) for term in names} for segment in segments]
    weight = term_weights(frequency, visible)
    parts = [
        _best(segment, by_term, allowed, intents, weight, limit)
        for segment, by_term, allowed in zip(segments, postings, matching, strict=True)
    ]
    columns = [
        _evidence(segment, by_term, rows, intents, names)
        for segment, by_term, rows in zip(segments, postings, parts, strict=True)
    ]
    facets = [segment.facets[row] for segment, rows in zip(segments, parts, strict=True) for row in rows]
    order = sorted(range(len(facets)), key=lambda place: facets[place].key)
    cosine, impact, fields = (
        np.concatenate([column[kind] for column in columns], axis=1)[:, order] for kind in range(3)
    )
    return Candidates(
        facets=tuple(facets[place] for place in order),
        cosine=cosine,
        terms=names,
        impact=impact,
        fields=fields,
        frequency=np.array([frequency[term] for term in names], dtype=np.int64),
        visible=visible,
        with_vectors=all(intent.vector is not None for intent in intents),
    )


def _best(
    segment: Segment,
    postings: dict[str, Postings | None],
    allowed: BoolArray,
    intents: Sequence[Intent],
    weight: dict[str, float],
    limit: int,
) -> IntArray:
    """Return the rows of one segment that are among the best, by vector or by words, for any of the intents."""
    count = int(allowed.sum())
    chosen = [np.empty(0, dtype=np.int64)]
    for intent in intents:
        if intent.vector is not None and segment.vectors.matrix.shape[1]:
            chosen.append(segment.vectors.best_rows(intent.vector, allowed, count, limit))
        weighted = [(item, weight[term]) for term in intent.terms if (item := postings[term]) is not None]
        chosen.append(best_rows(weighted, allowed, len(segment), limit))
    return np.unique(np.concatenate(chosen))


def _evidence(
    segment: Segment,
    postings: dict[str, Postings | None],
    rows: IntArray,
    intents: Sequence[Intent],
    names: Sequence[str],
) -> tuple[FloatArray, FloatArray, ByteArray]:
    """Return cosine [intents, rows], impact and fields [terms, rows]."""
    impact = np.zeros((len(names), len(rows)), dtype=np.float32)
    fields = np.zeros((len(names), len(rows)), dtype=np.uint8)
    for line, term in enumerate(names):
        if (item := postings[term]) is not None and len(rows):
            at = np.minimum(np.searchsorted(item.rows, rows), len(item.rows) - 1)
            here = item.rows[at] == rows
            impact[line, here] = item.impact[at[here]]
            fields[line, here] = item.fields[at[here]]
    queries = [intent.vector for intent in intents if intent.vector is not None]
    if not queries or len(queries) < len(intents) or not segment.vectors.matrix.shape[1]:
        return np.zeros((len(intents), len(rows)), dtype=np.float32), impact, fields
    return segment.vectors.cosine(np.stack(queries), rows), impact, fields
