"""The bodies of requests. Unknown fields are refused: a misspelt filter must not pass for no filter."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from toolscout.models import Detail, Match

Text = Annotated[str, Field(max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
Names = Annotated[list[Name], Field(max_length=100)]
Count = Annotated[int, Field(ge=1, le=1_000)]
Tokens = Annotated[int, Field(ge=1, le=1_000_000)]


class Body(BaseModel):
    """A body of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SearchBody(Body):
    """A search: what the tool should do, and what to limit the search to."""

    query: Annotated[
        Text | Annotated[list[Text], Field(min_length=1, max_length=20)],
        Field(description="what the tool should do, or a list of such needs"),
    ]
    tags: Names = []
    match: Match = "any"
    category: Name | None = None
    servers: Names = []
    limit: Count = 10
    threshold: Annotated[float | None, Field(description="the lowest score, on the ranker's own scale")] = None
    detail: Detail = "brief"
    max_tokens: Tokens | None = None
    ranker: Annotated[Name | None, Field(description="hybrid, semantic, keyword, fuzzy or boosted")] = None
    explain: Annotated[bool, Field(description="show the parts of every score")] = False
    user: Annotated[Name | None, Field(description="search as this user; for operators")] = None
    tenant: Annotated[Name | None, Field(description="search as a caller of this tenant; for operators")] = None
    groups: Names = []


class DiscoverBody(Body):
    """The choice of tools for one turn of a chat."""

    query: Text
    limit: Annotated[int, Field(ge=1, le=100)] = 8
    similarity_threshold: Annotated[float | None, Field(ge=0, le=1)] = None
    include_core_tools: bool = True
    servers: Names | None = None
    messages: Annotated[list[dict[str, Any]], Field(max_length=1_000)] = []
    max_tokens: Tokens | None = None
    format: Annotated[
        Literal["openai", "anthropic"], Field(description="the chat API that the definitions are for")
    ] = "openai"


class ExplainBody(Body):
    """The question why a tool is, or is not, found."""

    query: Text
    key: Name
    tags: Names = []
    match: Match = "any"
    category: Name | None = None
    servers: Names = []
    threshold: float | None = None
    ranker: Name | None = None
    user: Name | None = None
    tenant: Name | None = None
    groups: Names = []


class CallBody(Body):
    """The arguments of a call."""

    arguments: dict[str, Any] = {}
    version: Annotated[Name | None, Field(description="of the hit: notices a definition that changed since")] = None
    read_only: Annotated[bool, Field(description="refuse a tool that may write")] = False


class FeedbackBody(Body):
    """Whether a tool did what a request asked for."""

    query: Text
    key: Annotated[str, Field(min_length=1, max_length=400)]
    success: bool


class SwitchBody(Body):
    """Tools to switch on or off, all or none of them."""

    keys: Annotated[list[Name], Field(min_length=1, max_length=20_000)]
    enabled: bool
    tenant: Name | None = None


_ENTRY: dict[str, Any] = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}


class ServersBody(Body):
    """Servers to add, as agent hosts write them in their config files."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        populate_by_name=True,
        json_schema_extra={"examples": [{"mcpServers": {"memory": _ENTRY}}]},
    )

    servers: Annotated[
        dict[Name, dict[str, Any]],
        Field(alias="mcpServers", min_length=1, max_length=100, description="name -> entry, as in mcp.json"),
    ]


class ServerBody(Body):
    """The entry of a server, as in mcp.json."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"entry": _ENTRY}]})

    entry: dict[str, Any]


class DecisionBody(Body):
    """Definitions to approve (`KEY@VERSION`), or tools to keep out."""

    keys: Annotated[list[Name], Field(min_length=1, max_length=1_000)]
    verdict: Literal["approved", "kept_out"]
    tenant: Name | None = None
    user: Name | None = None


class KeyBody(Body):
    """A new API key."""

    tenant: Name
    user: Name | None = None
    groups: Names = []
    scopes: Names = []
    note: Annotated[str, Field(max_length=500)] = ""
    expires_in_days: Annotated[float | None, Field(gt=0, le=36_500)] = None


class LabelledRow(Body):
    """A request and the tools that are right for it."""

    id: Annotated[str, Field(max_length=256)] = ""
    query: Text
    gold: Annotated[list[Name], Field(max_length=100, description="keys of the right tools; none: nothing fits")]
    also: Annotated[list[Name], Field(max_length=100, description="tools that serve as well")] = []


class EvaluateBody(Body):
    """A labelled set to measure on the catalogue as it is."""

    rows: Annotated[list[LabelledRow], Field(min_length=1, max_length=10_000)]
    ranker: Name | None = None
    k: Annotated[int, Field(ge=1, le=100)] = 10
    lenient: bool = False


class SemanticSearchBody(BaseModel):
    """A search in the shape of the MCP gateway registry. Fields that it has and toolscout has not are ignored."""

    model_config = ConfigDict(strict=True)

    query: Annotated[str, Field(max_length=512, description="may be empty if there are tags")] = ""
    entity_types: Annotated[list[str] | None, Field(max_length=10)] = None
    max_results: Annotated[int, Field(ge=1, le=50)] = 10
    tags: Annotated[list[str] | None, Field(max_length=100)] = None
