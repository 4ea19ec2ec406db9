"""The parts of a scout, each on its own, for commands that need no whole scout."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscout.embedding import open_embedder
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.sqlite.damage import REPAIR, find_damage

__all__ = ["REPAIR", "find_damage", "open_embedder", "opened_store"]


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """Open the store alone: a catalogue is moved or counted without its servers and without a model."""
    store = open_store(settings, Rules())
    try:
        await store.open()
        yield store
    finally:
        await store.close()
