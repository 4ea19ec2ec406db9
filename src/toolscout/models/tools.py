"""Tools, the servers they come from, and who asks for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolscout.errors import InvalidValueError

LOCAL = "local"
"""The tenant, and the server, of everything that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose tools: everyone's in a tenant, or those that one user of it added."""

    tenant: str = LOCAL
    owner: str | None = None

    def __post_init__(self) -> None:
        """Refuse an empty name."""
        _refuse_empty(self.tenant, self.owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. The default is the local user of a laptop: one tenant, everything of it visible.

    `servers` narrows that to some slugs: a gateway shows the servers of its own config, whatever else the store holds.
    """

    tenant: str = LOCAL
    user: str | None = None
    groups: frozenset[str] = frozenset()
    servers: frozenset[str] | None = None
    key: str | None = None
    """The id of the API key that was shown."""
    scopes: frozenset[str] = frozenset()
    """What the key or the token is good for."""

    def __post_init__(self) -> None:
        """Refuse an empty name."""
        _refuse_empty(self.tenant, self.user)

    @property
    def scope(self) -> Scope:
        """Where what this caller indexes, removes or switches belongs: to the user, or to everyone of the tenant."""
        return Scope(tenant=self.tenant, owner=self.user)


def _refuse_empty(tenant: str, user: str | None) -> None:
    """Refuse what a store would take for everyone: a slip must not reach what all users of a tenant share."""
    if not tenant or user == "":
        raise InvalidValueError(
            f"the name of the {'user' if tenant else 'tenant'} is empty",
            hint="give a name, or leave it out",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What the operator's config says of a server or a tool, over what the server says of itself."""

    description: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    related: tuple[str, ...] = ()
    enabled: bool | None = None
    trusted: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A place that tools come from: its key begins theirs, its title is the operator's own spelling."""

    key: str
    title: str
    trusted: bool = True
    overlay: Overlay = Overlay()
    tool_overlays: Mapping[str, Overlay] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: its definition as the server sent it, normalized, and what enrichment knows of it."""

    key: str
    id: str
    server: str
    server_title: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    category: str = ""
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    related: tuple[str, ...] = ()
    fingerprint: str = ""
    tenant: str = LOCAL
    owner: str | None = None
    enabled: bool = True
    trusted: bool = True
    quarantine_reason: str = ""
    """Why the tool is kept from everyone: poisoned text, or a definition that changed and is not approved yet."""

    @property
    def version(self) -> str:
        """The prefix of the fingerprint that a hit shows and a call may carry back."""
        return self.fingerprint[:12]

    @property
    def read_only(self) -> bool:
        """Whether a trusted server declares that the tool changes nothing."""
        return self.trusted and self.annotations.get("readOnlyHint") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetadata:
    """What a provider says of a tool before anyone asks for its whole definition."""

    name: str
    description: str = ""
    keywords: tuple[str, ...] = ()


TEMPLATE: Mapping[str, str] = {
    "name": "{}",
    "server": " ({})",
    "description": ": {}",
    "parameters": " Parameters: {}",
}
"""How a document becomes text unless the model's manifest says otherwise: field by field, empty ones left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What stands for a tool before an embedder: its parts in plain words, which each model words in its own way."""

    name: str
    server: str
    description: str
    parameters: str

    def text(self, template: Mapping[str, str] = TEMPLATE) -> str:
        """Write the parts that are there, each in its place of the template."""
        parts = ((form, getattr(self, field)) for field, form in template.items())
        return "".join(form.format(value) for form, value in parts if value).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """How a live server is."""

    server: str
    title: str
    state: Literal["connecting", "ready", "failed", "disabled"]
    detail: str = ""
    tools: int = 0
    protocol: str = ""
    since: float = 0.0
    stderr: str = ""
    hint: str = ""
    """What to do about a server that failed; empty where its reason says it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What a call gave: the server's own result, untouched, and the slips in the arguments that were repaired."""

    tool: Tool
    result: Mapping[str, Any]
    repairs: tuple[str, ...] = ()
    took_ms: float = 0.0

    @property
    def is_error(self) -> bool:
        """Whether the tool itself says that it failed."""
        return self.result.get("isError") is True

    @property
    def text(self) -> str:
        """What a model should read of the result: its texts, or else its structured content as JSON."""
        content = self.result.get("content")
        texts = [
            str(item["text"])
            for item in (content if isinstance(content, list) else [])
            if isinstance(item, Mapping) and "text" in item
        ]
        if texts or "structuredContent" not in self.result:
            return "\n".join(texts)
        return json.dumps(self.result["structuredContent"], ensure_ascii=False)
