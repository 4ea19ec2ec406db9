"""Tools, the servers they come from, the callers who use them, and the results of calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from toolscout.errors import InvalidValueError

LOCAL = "local"
"""The default tenant, and the default server of tools that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The owner of tools: a whole tenant, or one user of it."""

    tenant: str = LOCAL
    owner: str | None = None

    def __post_init__(self) -> None:
        """Refuse an empty name."""
        _refuse_empty(self.tenant, self.owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes a request. The default is the local user of a laptop: one tenant, all its tools visible.

    `servers` limits the tools to those of some servers. A gateway uses it to show only the servers of its own config.
    """

    tenant: str = LOCAL
    user: str | None = None
    groups: frozenset[str] = frozenset()
    servers: frozenset[str] | None = None
    key: str | None = None
    """The id of the API key that the caller sent."""
    scopes: frozenset[str] = frozenset()
    """The scopes of the key or the token."""
    token: str | None = field(default=None, repr=False, compare=False)
    """The caller's access token, where it may be exchanged for tokens of servers. It is sent to its issuer only."""

    def __post_init__(self) -> None:
        """Refuse an empty name."""
        _refuse_empty(self.tenant, self.user)

    @property
    def scope(self) -> Scope:
        """The owner of what this caller indexes, removes, enables or disables: the user, or the whole tenant."""
        return Scope(tenant=self.tenant, owner=self.user)


def _refuse_empty(tenant: str, user: str | None) -> None:
    """Refuse an empty name: a store would read it as everyone, and a mistake must not change shared tools."""
    if not tenant or user == "":
        raise InvalidValueError(
            f"the name of the {'user' if tenant else 'tenant'} is empty",
            hint="give a name, or omit it",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What the operator's config says about a server or a tool. It replaces or extends what the server says."""

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
    """A server that tools come from. Its key is the first part of their keys, its title the name in the config."""

    key: str
    title: str
    trusted: bool = True
    overlay: Overlay = Overlay()
    tool_overlays: Mapping[str, Overlay] = field(default_factory=dict)
    """By the name of a tool, or by a pattern such as `delete_*`. Where several match, the name decides, then a
    pattern that switches off, then the order of the config."""

    def tool_overlay(self, name: str) -> Overlay:
        """Return what the config says about one tool. What its name leaves open, a pattern decides."""
        own = self.tool_overlays.get(name, Overlay())
        patterns = [
            overlay
            for pattern, overlay in self.tool_overlays.items()
            if "*" in pattern and fnmatchcase(name.casefold(), pattern.casefold())
        ]
        if own.enabled is None:
            switches = [overlay.enabled for overlay in patterns if overlay.enabled is not None]
            own = replace(own, enabled=all(switches) if switches else None)
        if own.trusted is None:
            own = replace(own, trusted=next((item.trusted for item in patterns if item.trusted is not None), None))
        return own


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: its normalized definition, and the labels that enrichment added."""

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
    """Why the tool is withheld from everyone: poisoned text, or a changed definition that is not approved yet."""

    @property
    def version(self) -> str:
        """The start of the fingerprint. A hit shows it, and a call may send it back to detect a changed definition."""
        return self.fingerprint[:12]

    @property
    def read_only(self) -> bool:
        """Whether a trusted server declares that the tool only reads."""
        return self.trusted and self.annotations.get("readOnlyHint") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetadata:
    """What a provider says about a tool before its whole definition is requested."""

    name: str
    description: str = ""
    keywords: tuple[str, ...] = ()


TEMPLATE: Mapping[str, str] = {
    "name": "{}",
    "server": " ({})",
    "labels": ", also {}",
    "description": ": {}",
    "parameters": " Parameters: {}",
    "details": " ({})",
}
"""The default template of a document's text. A model's manifest may have its own. Empty fields are omitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The text of a tool that is embedded, in parts. Each model has its own template to join them."""

    name: str
    server: str
    description: str
    parameters: str
    labels: str = ""
    """Words for it beside its definition: keywords, tags, capabilities, and examples of requests."""
    details: str = ""
    """The descriptions of the parameters."""

    def text(self, template: Mapping[str, str] = TEMPLATE) -> str:
        """Return the text: every part that is not empty, formatted by the template."""
        parts = ((form, getattr(self, field)) for field, form in template.items())
        return "".join(form.format(value) for form, value in parts if value).strip()


OUTPUT_HINT = "`toolscout doctor`, with the same --config, shows what it printed"
"""Where the standard error of a server is. It may hold secrets, so no log and no other command repeats it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The state of a live server."""

    server: str
    title: str
    state: Literal["connecting", "ready", "needs_login", "failed", "disabled"]
    detail: str = ""
    tools: int = 0
    protocol: str = ""
    since: float = 0.0
    stderr: str = ""
    hint: str = ""
    """What to do about a server that failed, or "" if `detail` says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of a call, as the server sent it, and the repairs that were made to the arguments."""

    tool: Tool
    result: Mapping[str, Any]
    repairs: tuple[str, ...] = ()
    took_ms: float = 0.0
    size: int = 0
    """How many bytes the result has as compact JSON."""

    @property
    def is_error(self) -> bool:
        """Whether the tool reports that it failed."""
        return self.result.get("isError") is True

    @property
    def text(self) -> str:
        """The result as text for a model: its text parts, or else its structured content as JSON."""
        content = self.result.get("content")
        texts = [
            str(item["text"])
            for item in (content if isinstance(content, list) else [])
            if isinstance(item, Mapping) and "text" in item
        ]
        if texts or "structuredContent" not in self.result:
            return "\n".join(texts)
        return json.dumps(self.result["structuredContent"], ensure_ascii=False)
