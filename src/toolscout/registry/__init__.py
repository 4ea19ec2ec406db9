"""`ToolRegistry`, for authors of servers with many tools: they are found by search instead of being listed."""

from __future__ import annotations

from toolscout.registry.problem_log import Problem
from toolscout.registry.registry import ToolRegistry
from toolscout.registry.request_scope import RequestProvidersMiddleware, request_providers

__all__ = ["Problem", "RequestProvidersMiddleware", "ToolRegistry", "request_providers"]
