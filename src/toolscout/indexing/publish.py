"""The last stage of indexing: pins are stored, and one new generation of a scope becomes visible at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from toolscout.indexing.prepare import PreparedServer
from toolscout.indexing.trust import PIN_KIND, definition_of, read_pin, write_pin
from toolscout.models import Pin, Publication, Scope
from toolscout.ports import Store


async def publish(
    store: Store,
    scope: Scope,
    prepared: Sequence[PreparedServer],
    *,
    model_id: str,
    everywhere: bool = False,
    switches: Mapping[str, bool] | None = None,
) -> int:
    """Replace the prepared servers of a scope and return the number of the new generation.

    This is the only place that makes a publication. Call it while you hold the leases of these servers.
    """
    return await store.publish(
        Publication(
            scope=scope,
            servers=tuple(part.server for part in prepared),
            entries=tuple(entry for part in prepared for entry in part.entries),
            unchanged_keys=frozenset(key for part in prepared for key in part.unchanged),
            model_id=model_id,
            everywhere=everywhere,
            switches=switches or {},
        )
    )


async def read_pins(store: Store, scope: Scope, server: str | None = None) -> dict[str, Pin]:
    """Return the pins of a scope, or of one of its servers, by the key of their tool."""
    prefix = "" if server is None else f"{server}__"
    return {record.name: read_pin(record) for record in await store.records(PIN_KIND, scope, prefix)}


async def store_pins(
    store: Store, scope: Scope, pins: Mapping[str, Pin], stored_pins: Mapping[str, Pin], *, replaced: AbstractSet[str]
) -> None:
    """Store new pins. Where a pinned definition is `replaced` or goes, store it too, to be shown beside the new one."""
    pins = dict(pins)
    without_definition = {key for key in replaced if key in stored_pins and stored_pins[key].before is None}
    if without_definition:
        for tool in await store.stored_tools(scope):
            pin = stored_pins.get(tool.key)
            if pin and tool.key in without_definition and tool.fingerprint == pin.fingerprint:
                pins[tool.key] = replace(pins.get(tool.key, pin), before=definition_of(tool))
    if pins:
        await store.put_records([write_pin(scope, pin) for pin in pins.values()])
