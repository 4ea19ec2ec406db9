"""The two tools that an attached server lists instead of all the registry's tools: one searches, one calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult
from mcp_types import Tool as SdkTool
from pydantic import Field, WithJsonSchema

from toolscout.mcp_tools import McpTool, answer_result, mcp_tool
from toolscout.models import Answer
from toolscout.registry.registered_tools import use_context
from toolscout.registry.tool_results import McpResult, error_for_model, with_repairs

RankerName = Literal["hybrid", "semantic", "keyword", "fuzzy", "boosted"]
Query = Annotated[str, Field(description="what the tool should do, in plain words, or a part of its name")]
MaxResults = Annotated[int, Field(ge=1, description="how many tools to return at most")]
Ranker = Annotated[RankerName, Field(description="how to rank; omit it unless you know why")]
Name = Annotated[str, Field(description="the name of a tool, as a search shows it")]
Arguments = Annotated[
    Any, WithJsonSchema({"type": "object", "description": "its arguments, by the input_schema that the search shows"})
]


class SearchableTools(Protocol):
    """What the two tools need of a registry."""

    @property
    def ranker(self) -> str:
        """The ranker of searches that do not name one."""

    async def search(self, query: str, *, limit: int, ranker: str) -> Answer:
        """Find tools."""

    async def execute(self, name: str, arguments: Any) -> McpResult:
        """Call a tool. A failure is a result."""


def make_tools(registry: SearchableTools, search_name: str, execute_name: str) -> tuple[McpTool, McpTool]:
    """Make the two tools of a registry."""
    default_ranker: Any = registry.ranker

    @mcp_tool(
        "Find tools that are not listed here, by what they should do. Each hit has its name, description, score and "
        f"input_schema; call it with {execute_name}.",
        name=search_name,
        ignores_unknown=True,
    )
    async def search(
        _context: Context[Any, Any], query: Query, max_results: MaxResults = 10, ranker: Ranker = default_ranker
    ) -> McpResult:
        answer = await registry.search(query, limit=max_results, ranker=ranker)
        hits = [
            {
                "name": match.tool.name,
                "description": match.tool.description,
                "score": None if match.score is None else round(match.score, 4),
                "input_schema": match.tool.input_schema,
            }
            for match in answer
        ]
        structured: dict[str, Any] = {"tools": hits}
        if answer.suggestions:
            structured["suggestions"] = list(answer.suggestions)
        return CallToolResult.model_validate(answer_result(structured, text=hits, tips=answer.suggestions))

    @mcp_tool(
        f"Call a tool that {search_name} found, by its name, with arguments that fit its input_schema.",
        name=execute_name,
        annotations=None,
        calls_other_tool=True,
        ignores_unknown=True,
    )
    async def execute(context: Context[Any, Any], name: Name, arguments: Arguments = None) -> McpResult:
        with use_context(context):
            return await registry.execute(name, arguments)

    return search, execute


def sdk_definition(tool: McpTool) -> SdkTool:
    """Return the entry of `tools/list` as the SDK's model."""
    return SdkTool.model_validate(tool.definition())


async def run_tool(tool: McpTool, arguments: Mapping[str, Any], context: Context[Any, Any]) -> McpResult:
    """Run one of the two tools. As on the SDK's own server, only protocol errors are raised. Others become results."""
    try:
        result, repairs = await tool.run(context, arguments)
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - the model gets no details of a crash
        return error_for_model(error, tool.name)
    return with_repairs(result, repairs)
