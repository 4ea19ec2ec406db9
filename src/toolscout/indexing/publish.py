"""Publish: one generation, visible at once; nothing at all where nothing changed."""

from __future__ import annotations

from collections.abc import Sequence

from toolscout.indexing.embed import Embedded
from toolscout.indexing.prepare import PreparedServer
from toolscout.models import Dropped, IndexReport, Overview, Publication, Scope
from toolscout.ports import Store


async def publish(
    store: Store,
    prepared: Sequence[PreparedServer],
    embedded: Embedded,
    collisions: Sequence[Dropped],
    before: Overview,
    scope: Scope,
) -> IndexReport:
    """Replace the prepared servers and count what that did."""
    generation = before.generation
    changed = any(part.entries or part.removed for part in prepared)
    if changed or embedded.made or embedded.model_id != before.model_id:
        generation = await store.publish(
            Publication(
                scope=scope,
                servers=tuple(part.server for part in prepared),
                entries=tuple(entry for part in prepared for entry in part.entries),
                unchanged_keys=frozenset(key for part in prepared for key in part.unchanged),
                model_id=embedded.model_id,
                everywhere=embedded.repaired or embedded.model_id != before.model_id,
            )
        )
    return IndexReport(
        new=sum(part.new for part in prepared),
        changed=sum(part.changed for part in prepared),
        unchanged=sum(len(part.unchanged) for part in prepared),
        removed=sum(part.removed for part in prepared),
        embedded=embedded.made,
        unembedded=embedded.missing,
        dropped=tuple(item for part in prepared for item in part.dropped),
        collisions=tuple(collisions),
        quarantined=tuple(item for part in prepared for item in part.quarantined),
        offered=tuple(sorted(key for part in prepared for key in part.changed_definitions)),
        generation=generation,
    )
