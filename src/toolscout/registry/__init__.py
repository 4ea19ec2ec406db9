"""For the author of a server with many tools: they hide behind search, and nothing else changes."""

from __future__ import annotations

from toolscout.registry.middleware import RequestProvidersMiddleware
from toolscout.registry.problems import Problem
from toolscout.registry.registry import ToolRegistry
from toolscout.registry.request import request_providers

__all__ = ["Problem", "RequestProvidersMiddleware", "ToolRegistry", "request_providers"]
