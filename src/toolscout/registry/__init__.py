"""`ToolRegistry`, for servers with many tools: clients find the tools by search instead of listing them all."""

from __future__ import annotations

from toolscout.registry.problem_log import ProviderProblem
from toolscout.registry.registry import ToolRegistry
from toolscout.registry.request_scope import RequestProvidersMiddleware, request_providers
from toolscout.registry.tool_results import McpResult

__all__ = ["McpResult", "ProviderProblem", "RequestProvidersMiddleware", "ToolRegistry", "request_providers"]
