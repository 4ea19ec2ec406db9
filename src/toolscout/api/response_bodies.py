"""The bodies of answers, for the description of the API. Answers are written from toolscout's own values."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from toolscout.models import Detail, Fit


class Shape(BaseModel):
    """A body of an answer. Fields may be added."""

    model_config = ConfigDict(extra="allow")


class ErrorBody(Shape):
    """What went wrong, and what to do next."""

    code: str
    message: str
    hint: str
    suggestions: list[str]


class Problem(Shape):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    error: ErrorBody


class ToolBody(Shape):
    """A tool. How many fields it has depends on the level of detail."""

    key: str
    call_with: Literal["call_tool", "call_read_tool"]
    version: str | None = None
    server: str | None = None
    name: str | None = None
    description: str | None = None
    signature: str | None = None
    category: str | None = None
    tags: list[str] | None = None
    matched_tags: list[str] | None = None
    score: float | None = None
    fit: Fit | None = None
    available: bool | None = None
    hint: str | None = None
    relationship: str | None = None
    input_schema: dict[str, Any] | None = None
    examples: list[Any] | None = None
    explain: dict[str, Any] | None = None


class MetadataBody(Shape):
    """Facts about an answer."""

    total: int
    matched: int
    returned: int
    took_ms: float
    tokens: int
    tokens_saved: int
    ranker: str
    detail: Detail
    categories_available: list[str]
    degraded: str | None
    stale: bool


class PageBody(Shape):
    """Which page of a list this is."""

    page: int
    page_size: int
    total: int
    total_pages: int
    has_next: bool
    has_prev: bool


class ListBody(Shape):
    """A page of a list."""

    pagination: PageBody


class PaginationBody(Shape):
    """Which page of the tools this is."""

    page: int
    page_size: int
    total_tools: int
    total_pages: int
    has_next: bool
    has_prev: bool


class AnswerBody(Shape):
    """The hits of a request, best first, or the tools of a list."""

    tools: list[ToolBody]
    metadata: MetadataBody
    pagination: PaginationBody | None = None
    suggestions: list[str] | None = None


class AnswersBody(Shape):
    """One answer for each of several queries."""

    results: list[AnswerBody]


class SelectionBody(Shape):
    """The tools of one chat turn."""

    tools: list[dict[str, Any]]
    keys: dict[str, str]
    metadata: dict[str, Any]


class CountBody(Shape):
    """A category or a tag, and how many tools it has."""

    name: str
    count: int
    description: str | None = None


class CategoriesBody(ListBody):
    """The categories."""

    categories: list[CountBody]


class TagsBody(ListBody):
    """The tags."""

    tags: list[CountBody]


class DecisionState(Shape):
    """Whether something is allowed, and which rule decides."""

    allowed: bool
    because: str


class ExplanationBody(Shape):
    """Why a tool is, or is not, found."""

    key: str
    reason: str
    see: DecisionState
    call: DecisionState
    rank: int | None
    score: float | None
    fit: Fit | None
    parts: dict[str, Any] | None
    before: list[str]
    suggestions: list[str]


class InventoryToolBody(Shape):
    """A tool in any state."""

    key: str
    server: str
    name: str
    description: str
    category: str
    tags: list[str]
    version: str
    tokens: int
    state: Literal["enabled", "disabled", "withheld"]
    reason: str
    risk: Literal["reads", "writes", "destroys"]
    trusted: bool


class InventoryBody(ListBody):
    """A page of all tools."""

    tools: list[InventoryToolBody]


class CallResultBody(Shape):
    """The result of a call, as the server sent it."""

    key: str
    version: str
    is_error: bool
    result: dict[str, Any]
    repairs: list[str]
    took_ms: float


class ServerStateBody(Shape):
    """A server and its state."""

    key: str
    title: str
    state: Literal["connecting", "ready", "needs_login", "failed", "disabled"]
    hint: str
    tools: int
    users_sign_in: bool
    detail: str | None = None
    protocol: str | None = None
    since: float | None = None
    waiting: int | None = None
    transport: Literal["stdio", "http", "sse"] | None = None
    command: str | None = None
    source: str | None = None
    trusted: bool | None = None
    per_user: bool | None = None
    entry: dict[str, Any] | None = None


class ServersListBody(ListBody):
    """The servers."""

    servers: list[ServerStateBody]


class LogBody(Shape):
    """What a server printed on its standard error."""

    key: str
    text: str


class ChangedBody(Shape):
    """What was changed."""

    changed: list[str]


class ChangesBody(ListBody):
    """Definitions that wait for a decision."""

    changes: list[dict[str, Any]]


class KeyRowBody(Shape):
    """An API key, without its secret."""

    id: str
    tenant: str
    user: str | None
    groups: list[str]
    scopes: list[str]
    note: str
    state: str


class NewKeyBody(KeyRowBody):
    """A new API key. `key` is shown once."""

    key: str


class KeysBody(ListBody):
    """The API keys."""

    keys: list[KeyRowBody]


class PolicyCheckBody(Shape):
    """What a caller may do with a tool."""

    tool: str
    see: DecisionState
    call: DecisionState
    suggestions: list[str]


class ActivityBody(ListBody):
    """Lines of the audit log, newest first."""

    lines: list[dict[str, Any]]
    recorded: bool
    outcomes: list[str]


class FeedbackRecordedBody(Shape):
    """Whether the feedback was recorded."""

    recorded: bool


class FiguresBody(Shape):
    """Retrieval quality on a labelled set."""

    figures: dict[str, float]
    rows: list[dict[str, Any]]


class CallerBody(Shape):
    """Who asks."""

    tenant: str
    user: str | None
    operator: bool


class StatsBody(Shape):
    """Totals."""

    tools: int
    tokens: int
    stale: bool
    servers: dict[str, int]
    operator: bool
    tenant: str
    user: str | None
    changes_waiting: int | None = None
    tokens_saved: int | None = None
    calls: dict[str, int] | None = None


class SemanticBody(Shape):
    """The hits in the shape of the MCP gateway registry."""

    query: str
    search_mode: Literal["hybrid", "lexical-only"]
    servers: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    skills: list[dict[str, Any]]
    virtual_servers: list[dict[str, Any]]
    custom: list[dict[str, Any]]
    total_servers: int
    total_tools: int
    total_agents: int
    total_skills: int
    total_virtual_servers: int
    total_custom: int


Responses = dict[int | str, dict[str, Any]]


def _responses(model: type[Shape] | Any, description: str, status: int = 200) -> Responses:
    return {status: {"model": model, "description": description}}


def _tagged(model: type[Shape], description: str) -> Responses:
    return {**_responses(model, description), 304: {"description": "The client has this answer already"}}


ANSWERS = _responses(AnswerBody | AnswersBody, "The hits")
SELECTION = _responses(SelectionBody, "The definitions for the chat API")
EXPLANATION = _responses(ExplanationBody, "The explanation")
CALL = _responses(CallResultBody, "The result. `is_error` tells whether the tool itself failed")
FEEDBACK = _responses(FeedbackRecordedBody, "It was recorded", 202)
CHANGED = _responses(ChangedBody, "What was changed")
ADDED = _responses(ChangedBody, "The servers were added", 201)
KEY = _responses(KeyRowBody, "The key")
KEY_CREATED = _responses(NewKeyBody, "The new key", 201)
POLICY = _responses(PolicyCheckBody, "The decisions")
FIGURES = _responses(FiguresBody, "The figures")
SEMANTIC = _responses(SemanticBody, "The hits")
TOOLS = _tagged(AnswerBody, "The tools")
INVENTORY = _tagged(InventoryBody, "A page of tools")
CATEGORIES = _tagged(CategoriesBody, "The categories")
TAGS = _tagged(TagsBody, "The tags")
SERVERS = _tagged(ServersListBody, "The servers")
SERVER = _tagged(ServerStateBody, "The server")
LOG = _tagged(LogBody, "The end of what it printed")
CHANGES = _tagged(ChangesBody, "The changes")
KEYS = _tagged(KeysBody, "The keys")
ACTIVITY = _tagged(ActivityBody, "The lines")
CALLER = _tagged(CallerBody, "The caller")
STATS = _tagged(StatsBody, "The totals")
EVENTS: Responses = {200: {"description": "The events", "content": {"text/event-stream": {}}}}
