"""The cache of segments in memory, and the snapshot that each caller reads."""

from __future__ import annotations

from collections import OrderedDict

from toolscout.models import Scope
from toolscout.ports import AccessFilter
from toolscout.storage.index.segment import Segment
from toolscout.storage.index.snapshot import Snapshot


class SegmentCache:
    """Segments by scope. The least recently used are dropped when they hold more than `max_rows` tools together.

    At least two scopes stay, because a caller may read two, and a segment may be larger than `max_rows`: that is why
    this is no cachetools cache. It is used on the event loop only. Segments may be read in any thread.
    """

    def __init__(self, access: AccessFilter, *, max_rows: int) -> None:
        self._access = access
        self._max_rows = max_rows
        self._segments: OrderedDict[Scope, Segment] = OrderedDict()
        self._snapshots: dict[Scope, Snapshot] = {}
        self._rows = 0

    def __contains__(self, scope: Scope) -> bool:
        """Tell whether the scope is in memory."""
        return scope in self._segments

    def get(self, scope: Scope) -> Segment | None:
        """Return the segment of a scope, if it is in memory."""
        return self._segments.get(scope)

    def loaded(self) -> dict[Scope, tuple[int, str]]:
        """Return the scopes in memory, each with its generation and its model."""
        return {scope: (segment.generation, segment.model_id) for scope, segment in self._segments.items()}

    def of_other_models(self, model_id: str) -> list[Scope]:
        """Return the scopes in memory that have vectors of another model."""
        return [scope for scope, segment in self._segments.items() if segment.model_id != model_id]

    def is_outdated(self, scope: Scope, generation: int, model_id: str) -> bool:
        """Tell whether the scope is in memory with an older generation or with another model."""
        segment = self._segments.get(scope)
        return segment is not None and (segment.generation < generation or segment.model_id != model_id)

    def put(self, segment: Segment) -> None:
        """Replace the segment of its scope, and drop the least recently used scopes when there are too many rows."""
        self.drop(segment.scope)
        self._segments[segment.scope] = segment
        self._rows += len(segment) + 1
        while self._rows > self._max_rows and len(self._segments) > 2:
            self.drop(next(iter(self._segments)))

    def drop(self, scope: Scope) -> None:
        """Remove a scope and every snapshot that reads it."""
        segment = self._segments.pop(scope, None)
        if segment is None:
            return
        self._rows -= len(segment) + 1
        for reader in [item for item in self._snapshots if item.tenant == scope.tenant]:
            if scope.owner in (None, reader.owner):
                del self._snapshots[reader]

    def missing(self, scope: Scope) -> list[Scope]:
        """Return the scopes that must be loaded before a caller of this scope can be answered."""
        return [item for item in scopes_of(scope) if item not in self._segments]

    def snapshot(self, scope: Scope) -> Snapshot:
        """Return what a caller of this scope reads. All its scopes must be in memory."""
        for item in scopes_of(scope):
            self._segments.move_to_end(item)
        snapshot = self._snapshots.get(scope)
        if snapshot is None:
            shared, *personal = (self._segments[item] for item in scopes_of(scope))
            if scope.owner is not None and not any(map(len, personal)):
                snapshot = self.snapshot(Scope(tenant=scope.tenant))
            else:
                snapshot = Snapshot([shared, *personal], model_id=shared.model_id, access=self._access)
            self._snapshots[scope] = snapshot
        return snapshot


def scopes_of(scope: Scope) -> tuple[Scope, ...]:
    """Return the scopes that a caller of this scope reads: the tenant's shared scope, and a user's own."""
    return (Scope(tenant=scope.tenant),) if scope.owner is None else (Scope(tenant=scope.tenant), scope)
