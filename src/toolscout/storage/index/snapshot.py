"""A published generation, whole and immutable: what every read of a store is answered from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from toolscout.errors import DimensionError
from toolscout.models import Caller, Candidates, Facets, Filter, Intent
from toolscout.ports import Predicate
from toolscout.storage.index.vectors import Vectors
from toolscout.storage.index.words import Postings, Words, best_rows
from toolscout.words import split_words

if TYPE_CHECKING:
    from toolscout.models import BoolArray, ByteArray, FloatArray, IntArray, RowArray

_REMEMBERED_CALLERS = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What one caller may see of a generation."""

    allowed: BoolArray
    count: int
    tokens: int = 0
    categories: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()


class Snapshot:
    """One generation. Rows are in the order of keys, so that equal scores fall in the same order everywhere."""

    def __init__(
        self,
        *,
        generation: int,
        model_id: str,
        facets: Sequence[Facets],
        definitions: Sequence[bytes],
        words: Words,
        vectors: Vectors,
        predicate: Predicate,
    ) -> None:
        """Take over the columns; they are never changed afterwards."""
        self.generation = generation
        self.model_id = model_id
        self.facets = facets
        self.definitions = definitions
        self._words = words
        self.vectors = vectors
        self._predicate = predicate
        self._views: OrderedDict[Caller, View] = OrderedDict()
        self._vocabularies: WeakKeyDictionary[View, Sequence[str]] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._row_of: dict[tuple[str, str | None, str], int] = {
            (item.tenant, item.owner, item.key): row for row, item in enumerate(facets)
        }
        self._columns = _Columns(facets)

    def view(self, caller: Caller) -> View:
        """Return what the caller may see, asking the predicate once for each tool and remembering the answer."""
        with self._lock:
            if (known := self._views.get(caller)) is not None:
                self._views.move_to_end(caller)
                return known
        allowed = np.fromiter((self._predicate(caller, item) for item in self.facets), np.bool_, len(self.facets))
        if caller.user is not None:
            self._shadow(caller, allowed)
        shown = [item for item, here in zip(self.facets, allowed.tolist(), strict=True) if here]
        view = View(
            allowed=allowed,
            count=len(shown),
            tokens=sum(item.tokens for item in shown),
            categories=tuple(sorted({item.category for item in shown})),
            servers=tuple(sorted({item.server for item in shown})),
        )
        with self._lock:
            self._views[caller] = view
            while len(self._views) > _REMEMBERED_CALLERS:
                self._views.popitem(last=False)
        return view

    def row(self, caller: Caller, key: str) -> int | None:
        """Return the row of a key that the caller may see: their own tool before everyone's."""
        allowed = self.view(caller).allowed
        for owner in (caller.user, None) if caller.user is not None else (None,):
            row = self._row_of.get((caller.tenant, owner, key))
            if row is not None and allowed[row]:
                return row
        return None

    def narrow(self, caller: Caller, narrow: Filter) -> View:
        """Return what the caller may see and the request asks for."""
        view = self.view(caller)
        if narrow == Filter():
            return view
        allowed = view.allowed & self._columns.matching(narrow)
        return View(allowed=allowed, count=int(allowed.sum()))

    def candidates(self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int) -> Candidates:
        """Return the union of the best by vector and by words, with the evidence that the scorer needs."""
        intents = [self._usable(intent) for intent in intents]
        seen = self.view(caller)
        wanted = self.narrow(caller, narrow)
        names = tuple(dict.fromkeys(term for intent in intents for term in intent.terms))
        found = {term: self._words.postings(term) for term in names}
        everything = seen.count == len(self.facets)
        frequency = {
            term: 0 if item is None else len(item.rows) if everything else int(seen.allowed[item.rows].sum())
            for term, item in found.items()
        }
        chosen = []
        for intent in intents:
            if intent.vector is not None:
                chosen.append(self.vectors.best_rows(intent.vector, wanted.allowed, wanted.count, limit))
            weighted = [
                (item, float(np.log1p((seen.count - frequency[term] + 0.5) / (frequency[term] + 0.5))))
                for term in intent.terms
                if (item := found[term]) is not None
            ]
            chosen.append(best_rows(weighted, wanted.allowed, len(self.facets), limit))
        rows = np.unique(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.int64)
        impact = np.zeros((len(names), len(rows)), dtype=np.float32)
        fields = np.zeros((len(names), len(rows)), dtype=np.uint8)
        for line, term in enumerate(names):
            if (item := found[term]) is not None:
                _fill(item, rows, impact[line], fields[line])
        return Candidates(
            facets=tuple(self.facets[row] for row in rows),
            cosine=self._cosine(intents, rows),
            terms=names,
            impact=impact,
            fields=fields,
            frequency=np.array([frequency[term] for term in names], dtype=np.int64),
            visible=seen.count,
            with_vectors=all(intent.vector is not None for intent in intents),
        )

    def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words of the names that the caller may see, sorted."""
        view = self.view(caller)
        if view not in self._vocabularies:
            shown = zip(self.facets, view.allowed.tolist(), strict=True)
            self._vocabularies[view] = sorted({word for item, here in shown if here for word in split_words(item.name)})
        return self._vocabularies[view]

    def similar(self, caller: Caller, key: str, limit: int) -> list[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first; none when it has no vector."""
        row = self.row(caller, key)
        if row is None or not self.vectors.matrix[row].any():
            return []
        view = self.view(caller)
        query = self.vectors.matrix[row]
        near = np.sort(self.vectors.best_rows(query, view.allowed, view.count, limit + 1))
        cosine = self.vectors.cosine(query[None], near)[0]
        order = np.argsort(-cosine, kind="stable")
        return [(self.facets[near[i]], float(cosine[i])) for i in order if near[i] != row][:limit]

    def _cosine(self, intents: Sequence[Intent], rows: IntArray) -> FloatArray:
        queries = [intent.vector for intent in intents if intent.vector is not None]
        if not queries or len(queries) < len(intents):
            return np.zeros((len(intents), len(rows)), dtype=np.float32)
        return self.vectors.cosine(np.stack(queries), rows)

    def _usable(self, intent: Intent) -> Intent:
        """Drop the vector where no tool has one; refuse one of another length."""
        length = self.vectors.matrix.shape[1]
        if intent.vector is None or length == len(intent.vector):
            return intent
        if length == 0:
            return replace(intent, vector=None)
        raise DimensionError(
            f"the catalogue holds vectors of {length} numbers, the query has {len(intent.vector)}",
            hint="two models share one name; give the new one another id and run `toolscout index` again",
        )

    def _shadow(self, caller: Caller, allowed: BoolArray) -> None:
        """Hide everyone's tool where the caller has one of their own under the same key."""
        for row, item in enumerate(self.facets):
            if allowed[row] and item.owner is not None:
                shared = self._row_of.get((caller.tenant, None, item.key))
                if shared is not None:
                    allowed[shared] = False


class _Columns:
    """Categories, servers and tags as numbers, so that a filter is a few array operations."""

    def __init__(self, facets: Sequence[Facets]) -> None:
        count = len(facets)
        self._count = count
        self._categories, self._category = _codes([item.category.casefold() for item in facets])
        self._servers, self._server = _codes([item.server for item in facets])
        self._titles, self._title = _codes([item.server_title for item in facets])
        tagged: dict[str, list[int]] = {}
        for row, item in enumerate(facets):
            for tag in item.tags:
                tagged.setdefault(tag.casefold(), []).append(row)
        self._tagged = {tag: np.array(rows, dtype=np.int64) for tag, rows in tagged.items()}

    def matching(self, narrow: Filter) -> BoolArray:
        allowed = np.ones(self._count, dtype=np.bool_)
        if narrow.category is not None:
            allowed &= self._category == self._categories.get(narrow.category.casefold(), -1)
        if narrow.servers:
            wanted = [self._servers.get(name, -1) for name in narrow.servers]
            titles = [self._titles.get(name, -1) for name in narrow.servers]
            allowed &= np.isin(self._server, wanted) | np.isin(self._title, titles)
        if narrow.tags:
            hits = np.zeros(self._count, dtype=np.int32)
            wanted_tags = {tag.casefold() for tag in narrow.tags}
            for tag in wanted_tags:
                if tag in self._tagged:
                    hits[self._tagged[tag]] += 1
            allowed &= hits >= (len(wanted_tags) if narrow.match == "all" else 1)
        return allowed


def _codes(values: Sequence[str]) -> tuple[dict[str, int], RowArray]:
    numbers: dict[str, int] = {}
    column = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int32, len(values))
    return numbers, column


def _fill(item: Postings, rows: IntArray, impact: FloatArray, fields: ByteArray) -> None:
    at = np.minimum(np.searchsorted(item.rows, rows), len(item.rows) - 1)
    here = item.rows[at] == rows
    impact[here] = item.impact[at[here]]
    fields[here] = item.fields[at[here]]
