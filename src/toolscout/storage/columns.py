"""Tools and scopes as the columns of a table: facets and definition of a tool are JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolscout.models import Entry, Facets, Scope, Tool

_DEFINITION = (
    "input_schema",
    "output_schema",
    "annotations",
    "meta",
    "capabilities",
    "examples",
    "fingerprint",
)


def scope_columns(scope: Scope) -> tuple[str, str]:
    """Return the columns tenant and owner of a scope. The shared scope has an empty owner."""
    return scope.tenant, scope.owner or ""


def write_facets(entry: Entry) -> str:
    """Encode what browsing and filtering need as one JSON list."""
    tool = entry.tool
    values = (
        tool.id,
        tool.server_title,
        tool.name,
        tool.title,
        tool.description,
        tool.category,
        tool.tags,
        tool.keywords,
        tool.related,
        tool.enabled,
        tool.trusted,
        entry.tokens,
        tool.read_only,
        tool.quarantine_reason,
    )
    return _compact(values)


def read_facets(tenant: str, key: str, owner: str, server: str, switch: int | None, text: str) -> Facets:
    """Decode facets. An operator's `switch` wins over what the definition says."""
    values: Sequence[Any] = json.loads(text)
    tool_id, server_title, name, title, description, category, tags, keywords, related, *rest = values
    enabled, trusted, tokens, read_only, quarantine_reason = (*rest, False, "")[:5]  # old rows lack the last two
    return Facets(
        key=key,
        id=tool_id,
        server=server,
        server_title=server_title,
        name=name,
        title=title,
        description=description,
        category=category,
        tags=tuple(tags),
        keywords=tuple(keywords),
        related=tuple(related),
        tenant=tenant,
        owner=owner or None,
        enabled=enabled if switch is None else bool(switch),
        trusted=trusted,
        tokens=tokens,
        read_only=read_only,
        quarantine_reason=quarantine_reason,
    )


def write_definition(tool: Tool) -> bytes:
    """Encode the rest of a tool, which only a full answer or a call needs."""
    return _compact([getattr(tool, name) for name in _DEFINITION]).encode("utf-8", "surrogatepass")


def read_tool(facets: Facets, definition: bytes) -> Tool:
    """Decode a tool from its facets and its definition."""
    rest = dict(zip(_DEFINITION, json.loads(definition.decode("utf-8", "surrogatepass")), strict=True))
    rest["capabilities"] = tuple(rest["capabilities"])
    rest["examples"] = tuple(rest["examples"])
    return Tool(
        key=facets.key,
        id=facets.id,
        server=facets.server,
        server_title=facets.server_title,
        name=facets.name,
        title=facets.title,
        description=facets.description,
        category=facets.category,
        tags=facets.tags,
        keywords=facets.keywords,
        related=facets.related,
        tenant=facets.tenant,
        owner=facets.owner,
        enabled=facets.enabled,
        trusted=facets.trusted,
        quarantine_reason=facets.quarantine_reason,
        **rest,
    )


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
