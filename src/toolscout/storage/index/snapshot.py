"""What a caller's reads are answered from: everyone's segment of the tenant and, where there is one, their own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from toolscout.errors import DimensionError
from toolscout.models import Caller, Candidates, Facets, Filter, Intent, Overview, Tool
from toolscout.ports import Predicate
from toolscout.storage.index.postings import Postings, best_rows
from toolscout.storage.index.segment import Segment
from toolscout.storage.tool_json import read_tool
from toolscout.text import split_words

if TYPE_CHECKING:
    from toolscout.models import BoolArray, ByteArray, FloatArray, IntArray

_REMEMBERED_CALLERS = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class CallerView:
    """What one caller may see: a mask for each segment."""

    allowed: tuple[BoolArray, ...]
    count: int
    tokens: int = 0
    categories: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()


class Snapshot:
    """One or two segments, searched as one catalogue; a later segment hides the tools of the same key in the first."""

    def __init__(self, segments: Sequence[Segment], *, model_id: str, predicate: Predicate) -> None:
        """Put segments of one tenant together, everyone's first."""
        self.segments = tuple(segments)
        self.model_id = model_id
        self.generation = max((segment.generation for segment in self.segments), default=0)
        self._predicate = predicate
        self._views: OrderedDict[tuple[Hashable, ...], CallerView] = OrderedDict()
        self._vocabularies: WeakKeyDictionary[CallerView, Sequence[str]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the tools of all segments."""
        return sum(map(len, self.segments))

    def view(self, caller: Caller) -> CallerView:
        """Return what the caller may see, asking the predicate once for each tool and remembering the answer.

        Callers whom the predicate judges alike share it, but not what was judged while the policy changed.
        """
        version, alike = self._version, getattr(self._predicate, "alike", None)
        own = caller.user if len(self.segments) > 1 else None
        asked = version, own, alike(caller) if alike else caller
        with self._lock:
            if (known := self._views.get(asked)) is not None:
                self._views.move_to_end(asked)
                return known
        allowed = tuple(
            np.fromiter((self._predicate(caller, item) for item in segment.facets), np.bool_, len(segment))
            for segment in self.segments
        )
        self._shadow(allowed)
        shown = self._shown(allowed)
        view = CallerView(
            allowed=allowed,
            count=len(shown),
            tokens=sum(item.tokens for item in shown),
            categories=tuple(sorted({item.category for item in shown})),
            servers=tuple(sorted({item.server for item in shown})),
        )
        if self._version != version:
            return view
        with self._lock:
            self._views[asked] = view
            while len(self._views) > _REMEMBERED_CALLERS:
                self._views.popitem(last=False)
        return view

    @property
    def _version(self) -> int:
        return getattr(self._predicate, "version", 0)

    def find(self, caller: Caller, key: str) -> tuple[Segment, int] | None:
        """Return where the key stands, when the caller may see it: their own tool before everyone's."""
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
        """Return what the caller may see and the request asks for, in the order of keys."""
        shown = self._shown(self.narrow(caller, narrow).allowed)
        return shown if len(self.segments) == 1 else sorted(shown, key=lambda item: item.key)

    def narrow(self, caller: Caller, narrow: Filter) -> CallerView:
        """Return what the caller may see and the request asks for."""
        view = self.view(caller)
        if narrow == Filter():
            return view
        allowed = tuple(
            seen & segment.matching(narrow) for segment, seen in zip(self.segments, view.allowed, strict=True)
        )
        return CallerView(allowed=allowed, count=sum(int(mask.sum()) for mask in allowed))

    def candidates(self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int) -> Candidates:
        """Return the union of the best by vector and by words, with the evidence that the scorer needs."""
        intents = [self._usable(intent) for intent in intents]
        seen, wanted = self.view(caller), self.narrow(caller, narrow)
        names = tuple(dict.fromkeys(term for intent in intents for term in intent.terms))
        found = [{term: segment.words.postings(term) for term in names} for segment in self.segments]
        everything = seen.count == len(self)
        frequency = {
            term: sum(
                len(item.rows) if everything else int(allowed[item.rows].sum())
                for held, allowed in zip(found, seen.allowed, strict=True)
                if (item := held[term]) is not None
            )
            for term in names
        }
        return gather(self.segments, wanted.allowed, intents, limit, frequency, seen.count, found)

    def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words of the names that the caller may see, sorted."""
        view = self.view(caller)
        if view not in self._vocabularies:
            shown = self._shown(view.allowed)
            self._vocabularies[view] = sorted({word for item in shown for word in split_words(item.name)})
        return self._vocabularies[view]

    def similar(self, caller: Caller, key: str, limit: int) -> list[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first; none when it has no vector."""
        found = self.find(caller, key)
        if found is None:
            return []
        home, row = found
        query = home.vectors.matrix[row]
        if not query.any():
            return []
        near: list[tuple[Facets, float]] = []
        for segment, allowed in zip(self.segments, self.view(caller).allowed, strict=True):
            if segment.vectors.matrix.shape[1] != len(query):
                continue
            rows = segment.vectors.best_rows(query, allowed, int(allowed.sum()), limit + 1)
            cosine = segment.vectors.cosine(query[None], rows)[0].tolist()
            near += [(segment.facets[at], score) for at, score in zip(rows.tolist(), cosine, strict=True)]
        near.sort(key=lambda item: (-item[1], item[0].key))
        return [item for item in near if item[0].key != key][:limit]

    def _shown(self, allowed: Sequence[BoolArray]) -> list[Facets]:
        return [
            segment.facets[row]
            for segment, mask in zip(self.segments, allowed, strict=True)
            for row in mask.nonzero()[0].tolist()
        ]

    def _shadow(self, allowed: Sequence[BoolArray]) -> None:
        """Hide everyone's tool where the caller has one of their own under the same key."""
        if len(self.segments) < 2:
            return
        shared, own = self.segments
        for row in allowed[1].nonzero()[0].tolist():
            hidden = shared.row_of.get(own.facets[row].key)
            if hidden is not None:
                allowed[0][hidden] = False

    def _usable(self, intent: Intent) -> Intent:
        """Drop the vector where no tool has one; refuse one of another length."""
        lengths = {segment.vectors.matrix.shape[1] for segment in self.segments} - {0}
        if intent.vector is None or lengths == {len(intent.vector)}:
            return intent
        if not lengths:
            return replace(intent, vector=None)
        raise DimensionError.two_models(
            f"the catalogue holds vectors of {max(lengths)} numbers, the query has {len(intent.vector)}"
        )


def gather(
    segments: Sequence[Segment],
    wanted: Sequence[BoolArray],
    intents: Sequence[Intent],
    limit: int,
    frequency: Mapping[str, int],
    visible: int,
    found: Sequence[dict[str, Postings | None]] | None = None,
) -> Candidates:
    """Choose the best of the wanted rows of each segment, for terms that so many of the visible tools hold."""
    names = tuple(dict.fromkeys(term for intent in intents for term in intent.terms))
    found = found or [{term: segment.words.postings(term) for term in names} for segment in segments]
    weight = {term: float(np.log1p((visible - frequency[term] + 0.5) / (frequency[term] + 0.5))) for term in names}
    parts = [
        _best(segment, held, allowed, intents, weight, limit)
        for segment, held, allowed in zip(segments, found, wanted, strict=True)
    ]
    columns = [
        _evidence(segment, held, rows, intents, names)
        for segment, held, rows in zip(segments, found, parts, strict=True)
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
    found: dict[str, Postings | None],
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
        weighted = [(item, weight[term]) for term in intent.terms if (item := found[term]) is not None]
        chosen.append(best_rows(weighted, allowed, len(segment), limit))
    return np.unique(np.concatenate(chosen))


def _evidence(
    segment: Segment, found: dict[str, Postings | None], rows: IntArray, intents: Sequence[Intent], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, ByteArray]:
    """Return cosine [intents, rows], impact and fields [terms, rows]."""
    impact = np.zeros((len(names), len(rows)), dtype=np.float32)
    fields = np.zeros((len(names), len(rows)), dtype=np.uint8)
    for line, term in enumerate(names):
        if (item := found[term]) is not None and len(rows):
            at = np.minimum(np.searchsorted(item.rows, rows), len(item.rows) - 1)
            here = item.rows[at] == rows
            impact[line, here] = item.impact[at[here]]
            fields[line, here] = item.fields[at[here]]
    queries = [intent.vector for intent in intents if intent.vector is not None]
    if not queries or len(queries) < len(intents) or not segment.vectors.matrix.shape[1]:
        return np.zeros((len(intents), len(rows)), dtype=np.float32), impact, fields
    return segment.vectors.cosine(np.stack(queries), rows), impact, fields
