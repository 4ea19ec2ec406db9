"""The tools of one chat turn: the request, and the tools that were chosen for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from toolscout.models.queries import Fit
from toolscout.models.tools import Tool

Origin = Literal["semantic", "core", "fallback", "all"]
"""Why a tool is there: found by search, always included, a fallback after a failed search, or choosing is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """The request of one chat turn. `Scout.discover_tools` documents the fields."""

    query: str
    limit: int = 8
    similarity_threshold: float | None = None
    include_core_tools: bool = True
    servers: tuple[str, ...] | None = None
    messages: Iterable[Any] = ()
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredTool:
    """One tool of a turn, its cosine with the request (0 if nothing was compared) and its calibrated score."""

    tool: Tool
    similarity: float = 0.0
    source: Origin = "semantic"
    score: float | None = None
    fit: Fit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSelection:
    """The tools that were chosen for a turn, best first and core tools last, and facts about the choice."""

    tools: tuple[DiscoveredTool, ...]
    total_searched: int
    search_duration_ms: float
    embedding_generated: bool
    tokens: int
    tokens_saved: int
    degraded: str | None = None
    """Why the choice is not as good as it could be, or None."""
