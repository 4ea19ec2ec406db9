"""Publishes straight into a store, as the index pipeline does, for tests of the store itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embedders import HashEmbedder, hash_vector
from toolscout.indexing.prepare import prepare_server
from toolscout.indexing.trust import write_pin
from toolscout.models import LOCAL, Caller, Candidates, Facets, Filter, Intent, Publication, Scope
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.settings import Settings
from toolscout.sources.rows import group_rows
from toolscout.storage import open_store
from toolscout.text import query_terms

OpenStore = Callable[..., Awaitable[Store]]
"""The function that the fixture `new_store` of the contract suite returns."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class AccessFunction:
    """An AccessFilter that calls a function. Nothing is shared between callers."""

    function: Callable[[Caller, Facets], bool]
    version: int = 0
    has_policy: bool = False

    def __call__(self, caller: Caller, tool: Facets) -> bool:
        return self.function(caller, tool)

    def cache_key(self, caller: Caller) -> Caller:
        return caller


VERBS = ("create", "read", "update", "delete", "list", "search", "export", "import")
NOUNS = ("invoice", "ticket", "calendar", "photo", "recipe", "route", "song", "contract", "sensor", "book")


def many(count: int, *, server: str = "many", **fields: Any) -> list[dict[str, Any]]:
    """Write rows whose texts differ in words, not only in a number."""
    return [
        {
            "name": f"{VERBS[number % 8]}_{NOUNS[number // 8 % 10]}_{number:05}",
            "server": server,
            "description": f"{VERBS[number % 8]} one {NOUNS[number // 8 % 10]} or {NOUNS[(number + 3) % 10]}",
            **fields,
        }
        for number in range(count)
    ]


async def publish(
    store: Store,
    rows: Rows,
    *,
    tenant: str = LOCAL,
    own: Mapping[str, Rows] | None = None,
    embedder: HashEmbedder | None = None,
    model_id: str = "",
) -> int:
    """Publish rows for everyone of a tenant, then `own` rows for single users. Return the last generation."""
    generation = await _publish(store, rows, Scope(tenant=tenant), embedder, model_id)
    for owner, user_rows in (own or {}).items():
        generation = await _publish(store, user_rows, Scope(tenant=tenant, owner=owner), embedder, model_id)
    return generation


async def _publish(store: Store, rows: Rows, scope: Scope, embedder: HashEmbedder | None, model_id: str) -> int:
    parts = [
        prepare_server(
            source.server,
            await source.list_tools(),
            await store.stamps(scope, source.server.key),
            Settings(),
            owner=scope.owner,
        )
        for source in group_rows(rows)
    ]
    entries = tuple(entry for part in parts for entry in part.entries)
    await store.put_records([write_pin(scope, pin) for part in parts for pin in part.pins])
    if embedder:
        documents = {entry.text_hash: entry.document for entry in entries}
        missing = sorted(await store.missing_vectors(embedder.model_id, list(documents)))
        if missing:
            vectors = await embedder.embed_documents([documents[item] for item in missing])
            await store.add_vectors(embedder.model_id, missing, vectors)
    return await store.publish(
        Publication(
            scope=scope,
            servers=tuple(part.server for part in parts),
            entries=entries,
            unchanged_keys=frozenset(key for part in parts for key in part.unchanged),
            model_id=embedder.model_id if embedder else model_id,
        )
    )


async def keys(store: Store, caller: Caller | None = None, **narrow: Any) -> list[str]:
    """List the keys that a caller may see."""
    return [item.key for item in await store.facets(caller or Caller(), Filter(**narrow))]


async def unembedded(url: str, model_id: str) -> Sequence[Any]:
    """Open a store beside whoever uses it, and return what has no vector of a model."""
    store = open_store(Settings(store=url), Rules())
    await store.open()
    try:
        return await store.unembedded(model_id)
    finally:
        await store.close()


async def look_for(
    store: Store, text: str, limit: int = 10, *, caller: Caller | None = None, model_id: str = "hash-1", **narrow: Any
) -> Candidates:
    """Search a store for candidates by words and, if a model is named, by vector."""
    vector = hash_vector(text) if model_id else None
    intent = Intent(text=text, terms=tuple(query_terms(text)), vector=vector)
    return await store.candidates(caller or Caller(), Filter(**narrow), [intent], limit, model_id)
