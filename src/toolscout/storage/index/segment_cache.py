"""Which segments are in memory, and the snapshot that each caller reads: the least recently used scopes go first."""

from __future__ import annotations

from collections import OrderedDict

from toolscout.models import Scope
from toolscout.ports import Predicate
from toolscout.storage.index.segment import Segment
from toolscout.storage.index.snapshot import Snapshot


class SegmentCache:
    """Segments by scope. It is only touched on the event loop; the segments themselves may be read anywhere."""

    def __init__(self, predicate: Predicate, *, most_rows: int) -> None:
        """Keep at most so many tools in memory, and at least the scopes that were asked for last."""
        self._predicate = predicate
        self._most_rows = most_rows
        self._segments: OrderedDict[Scope, Segment] = OrderedDict()
        self._snapshots: dict[Scope, Snapshot] = {}
        self._rows = 0

    def __contains__(self, scope: Scope) -> bool:
        """Tell whether the scope is in memory."""
        return scope in self._segments

    def loaded(self) -> dict[Scope, tuple[int, str]]:
        """Return the scopes in memory, each with its generation and its model."""
        return {scope: (item.generation, item.model_id) for scope, item in self._segments.items()}

    def of_other_models(self, model_id: str) -> list[Scope]:
        """Return the scopes in memory that have vectors of another model."""
        return [scope for scope, item in self._segments.items() if item.model_id != model_id]

    def behind(self, scope: Scope, generation: int, model_id: str) -> bool:
        """Tell whether the scope is in memory, and as an older generation or with another model."""
        held = self._segments.get(scope)
        return held is not None and (held.generation < generation or held.model_id != model_id)

    def put(self, segment: Segment) -> None:
        """Show a segment instead of what the scope had, and forget the least used where there are too many."""
        self.drop(segment.scope)
        self._segments[segment.scope] = segment
        self._rows += len(segment) + 1
        while self._rows > self._most_rows and len(self._segments) > 2:
            self.drop(next(iter(self._segments)))

    def drop(self, scope: Scope) -> None:
        """Forget a scope."""
        gone = self._segments.pop(scope, None)
        if gone is None:
            return
        self._rows -= len(gone) + 1
        for known in [item for item in self._snapshots if item.tenant == scope.tenant]:
            if scope.owner in (None, known.owner):
                del self._snapshots[known]

    def missing(self, scope: Scope) -> list[Scope]:
        """Return the scopes that have to be loaded before a caller of this scope can be answered."""
        return [item for item in scopes_of(scope) if item not in self._segments]

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return what a caller of this scope reads; every scope of it is in memory."""
        for item in scopes_of(scope):
            self._segments.move_to_end(item)
        if (known := self._snapshots.get(scope)) is not None:
            return known
        shared, *own = (self._segments[item] for item in scopes_of(scope))
        if not any(map(len, own)) and scope.owner is not None:
            everyone = self.snapshot(Scope(tenant=scope.tenant))
            self._snapshots[scope] = everyone
            return everyone
        made = Snapshot([shared, *own], model_id=shared.model_id, predicate=self._predicate)
        self._snapshots[scope] = made
        return made


def scopes_of(scope: Scope) -> tuple[Scope, ...]:
    """Return the scopes that a caller of this scope reads: everyone's, and their own where they are someone."""
    return (Scope(tenant=scope.tenant),) if scope.owner is None else (Scope(tenant=scope.tenant), scope)
