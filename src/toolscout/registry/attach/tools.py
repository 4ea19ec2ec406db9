"""The two tools that a server shows in place of all the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool as FunctionTool
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from mcp_types import Tool as SdkTool
from pydantic import Field, WithJsonSchema

from toolscout.errors import ToolscoutError
from toolscout.registry.context import calling_in
from toolscout.registry.results import Result, answered, failed, with_repairs

if TYPE_CHECKING:
    from toolscout.registry.registry import ToolRegistry


Rankers = Literal["hybrid", "semantic", "keyword", "fuzzy", "boosted"]
Query = Annotated[str, Field(description="what the tool should do, in plain words, or a part of its name")]
Most = Annotated[int, Field(ge=1, description="how many tools to return at most")]
Ranker = Annotated[Rankers, Field(description="how to rank; leave it away unless you know why")]
Name = Annotated[str, Field(description="the name of a tool, as a search shows it")]
Arguments = Annotated[
    Any,
    WithJsonSchema({"type": "object", "description": "its arguments, by the input_schema that the search shows"}),
    Field(default_factory=lambda: None),  # a plain default would stand in the schema, and null is no object
]


class OwnTool:
    """One of the two: as the SDK lists it, and as a call runs it."""

    def __init__(self, function: Callable[..., Any], *, name: str, description: str, reads: bool) -> None:
        """Let the SDK read the function as it reads an author's."""
        self.function = function
        self.annotations = ToolAnnotations(read_only_hint=True, open_world_hint=False) if reads else None
        self._made = FunctionTool.from_function(
            function, name=name, description=description, annotations=self.annotations
        )
        self.name = name
        self.description = description
        self.definition = SdkTool(
            name=name, description=description, input_schema=self._made.parameters, annotations=self.annotations
        )

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any]) -> Result:
        """Run it; as on the SDK's own server, what fails is a result, and only an error of the protocol is raised."""
        try:
            result: Result = await self._made.run(arguments, context, convert_result=True)
            return result
        except MCPError:
            raise
        except ToolError as error:
            return failed(error, self.name)


def _beside(ctx: Context[Any, Any]) -> tuple[Any, tuple[str, ...]]:
    """Gather arguments that a model put beside the name instead of under `arguments`."""
    try:
        given = (ctx.request_context.params or {}).get("arguments")
    except ValueError:  # there is no request
        return None, ()
    beside = {key: value for key, value in given.items() if key not in ("name", "arguments")} if given else {}
    return (beside, ("arguments stood beside the name; they are gathered now",)) if beside else (None, ())


def own_tools(registry: ToolRegistry, search_name: str, execute_name: str) -> tuple[OwnTool, OwnTool]:
    """Make the two tools of a registry."""
    ranked: Any = registry.ranker

    async def search(query: Query, max_results: Most = 10, ranker: Ranker = ranked) -> CallToolResult:
        try:
            answer = await registry.search(query, limit=max_results, ranker=ranker)
        except ToolscoutError as error:
            return failed(error, search_name)
        hits = [
            {
                "name": match.tool.name,
                "description": match.tool.description,
                "score": None if match.score is None else round(match.score, 4),
                "input_schema": match.tool.input_schema,
            }
            for match in answer
        ]
        return answered(hits, answer.suggestions)

    async def execute(ctx: Context[Any, Any], name: Name, arguments: Arguments) -> CallToolResult | InputRequiredResult:
        repairs: tuple[str, ...] = ()
        if arguments is None:
            arguments, repairs = _beside(ctx)
        with calling_in(ctx):
            return with_repairs(await registry.execute(name, arguments), repairs)

    found = OwnTool(
        search,
        name=search_name,
        description=(
            "Find tools that are not listed here, by what they should do. Each hit has its name, description, score "
            f"and input_schema; call it with {execute_name}."
        ),
        reads=True,
    )
    executed = OwnTool(
        execute,
        name=execute_name,
        description=f"Call a tool that {search_name} found, by its name, with arguments that fit its input_schema.",
        reads=False,
    )
    return found, executed
