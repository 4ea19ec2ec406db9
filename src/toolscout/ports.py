"""The Protocols: the methods of stores, embedders and servers that the pipelines use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from toolscout.models import (
    Caller,
    Candidates,
    Document,
    Facets,
    Filter,
    Intent,
    Overview,
    Publication,
    Record,
    Retention,
    Scope,
    Server,
    ServerStatus,
    Tool,
    ToolMetadata,
)

if TYPE_CHECKING:
    from toolscout.models import FloatArray

Progress = Callable[[int, int], None]
"""Called during long work with how many of how many are done."""


class WorkStoppedError(Exception):
    """Work on strangers' text took too long, or its process ended."""


class NoWorkerError(Exception):
    """No process can be started for work on strangers' text."""


class Isolation(Protocol):
    """Runs functions where they can be stopped: what strangers' text can make slow."""

    async def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        owner: tuple[str, ...],
        timeout_s: float,
        slice_s: float | None = None,
    ) -> Any:
        """Call a function of this package and return its result, or raise WorkStoppedError when its time is over.

        `owner` is whom the work is for, the widest part first. Owners take turns, so that none delays others. With
        `slice_s`, the work gets only this time once other work waits for its place. Raise NoWorkerError if the
        function cannot be run so.
        """


class Upstream(Protocol):
    """The agent that made a call. The server may report progress to it and ask it questions while the call runs."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities of the agent's client, as it declared them."""
        ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Forward the progress of a server to the agent."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Forward a server's request (elicitation, sampling, roots). Raise CallError when the agent cannot answer."""
        ...


@runtime_checkable
class ToolProvider(Protocol):
    """Tools from anywhere, by an author's own code: a folder of scripts, a database, an API.

    Each method may be synchronous or asynchronous. Nothing that it returns is trusted. A provider that fails
    loses only its own tools.
    """

    def list_tool_metadata(self) -> Iterable[ToolMetadata] | Awaitable[Iterable[ToolMetadata]]:
        """Return the fields of each tool that search needs. Mappings with the same names are accepted."""
        ...

    def get_tool(self, name: str) -> Any:
        """Return one full definition, as a mapping or an SDK tool, or None when there is no such tool."""
        ...

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool once and return its result. Raise ToolNotFoundError when there is no such tool."""
        ...


class ToolSource(Protocol):
    """The tools of one server: from a file, from Python objects, from a live MCP server."""

    @property
    def server(self) -> Server:
        """Return the server that these tools belong to."""
        ...

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the raw definitions. Nothing in them is trusted."""
        ...

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        upstream: Upstream | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool once and return its raw result. `extra` are further parameters of the request."""
        ...


@runtime_checkable
class TimedSource(Protocol):
    """A source whose calls end at a deadline."""

    @property
    def timeout_s(self) -> float:
        """Return how long a call may take, from the check of its arguments to its result."""
        ...

    async def call_tool_within(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        within_s: float,
        caller: Caller,
        upstream: Upstream | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool as a ToolSource does, with the part of its time that is left."""
        ...


class LiveServer(ToolSource, Protocol):
    """A server that is connected now, and may change or go down at any time."""

    @property
    def status(self) -> ServerStatus:
        """Return the state of the connection."""
        ...

    @property
    def tenants(self) -> tuple[str, ...] | Literal["all"] | None:
        """Return the tenants that it is indexed for and that may call it. None means the local tenant."""
        ...

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, caller: Caller, upstream: Upstream | None = None
    ) -> Mapping[str, Any]:
        """Send any other request (resources, prompts, completion) once and return its raw result."""
        ...


class CustomServer(LiveServer, Protocol):
    """A live server that a program brings itself, beside those of the config: `Scout.open(servers=[...])`."""

    def start(self, changed: Callable[[], None]) -> None:
        """Begin to connect, and call `changed` when the server has connected, failed, or changed its tools."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def model_id(self) -> str:
        """Return the name of the model and of its document template. Vectors of different names are never mixed."""
        ...

    @property
    def dimension(self) -> int:
        """Return the length of a vector (0 while a remote model has not answered yet)."""
        ...

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one row for each document. Raise EmbedderError when the model cannot answer now."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return one row for each query. Raise EmbedderError when the model cannot answer now."""
        ...

    async def close(self) -> None:
        """Free what the embedder holds."""
        ...


class AccessFilter(Protocol):
    """Decides which tools a caller may see. A store asks it inside every read, and caches what it answers."""

    @property
    def version(self) -> int:
        """A number that grows whenever the policy is replaced, so that a store drops what it cached before."""
        ...

    @property
    def has_policy(self) -> bool:
        """Whether a policy is in force.

        Without one, only tenant, owner and servers decide, which a database can do by itself.
        """
        ...

    def __call__(self, caller: Caller, tool: Facets, /) -> bool:
        """Tell whether the caller may see the tool."""
        ...

    def cache_key(self, caller: Caller) -> Hashable:
        """Return a key that is equal for callers who may see the same tools, apart from the tools they own."""
        ...


class Store(Protocol):
    """The store of the catalogue. It holds scopes, each with its own generations.

    Methods that take a caller filter inside the store. A caller sees the shared scope of their tenant and their own
    scope. A tool of their own hides the shared tool with the same key.
    """

    async def open(self) -> None:
        """Open the store, and migrate an older schema."""
        ...

    async def close(self) -> None:
        """Free what the store holds."""
        ...

    async def ping(self) -> None:
        """Check that the store answers. Raise StoreError when it cannot be reached now."""
        ...

    async def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Take or renew a lease, and tell whether the holder has it now. Only one holder at a time has a lease.

        A lease that is not renewed in time, for example because its holder died, is free for the next one.
        """
        ...

    async def release(self, name: str, holder: str) -> None:
        """Release a lease before it expires. A lease of another holder is not touched."""
        ...

    async def scopes(self) -> Sequence[Scope]:
        """Return every scope of all tenants that was ever published to, sorted by name."""
        ...

    async def record(self, kind: str, name: str) -> Record | None:
        """Return one record by its name, from any scope."""
        ...

    async def records(self, kind: str, scope: Scope | None = None, prefix: str = "") -> Sequence[Record]:
        """Return the records of a kind whose names have the prefix, of one scope or of all, sorted by name."""
        ...

    async def put_records(self, records: Sequence[Record], *, replace: bool = True) -> None:
        """Store records. With `replace`, a record of the same kind, scope and name is replaced, else it stays."""
        ...

    async def clean_up(self, retention: Retention) -> None:
        """Delete the vectors and pins of tools that are long gone. A store does it by itself from time to time."""
        ...

    async def remove_record(self, kind: str, scope: Scope, name: str) -> None:
        """Remove one record. It is no error if there is none."""
        ...

    async def overview(self, caller: Caller) -> Overview:
        """Return the totals of what the caller may see, the generation, and the model ("" before the first one)."""
        ...

    async def stamps(self, scope: Scope, server: str) -> Mapping[str, str]:
        """Return key -> stamp of a server's published tools. A tool with an equal stamp need not be indexed again."""
        ...

    async def servers(self, scope: Scope) -> Sequence[Server]:
        """Return the servers of a scope, sorted by key."""
        ...

    async def switches(self, scope: Scope) -> Mapping[str, bool]:
        """Return key -> enabled for every tool that an operator switched, even if it is not published now."""
        ...

    async def stored_tools(self, scope: Scope) -> Sequence[Tool]:
        """Return all tools of a scope as they were published, disabled ones included, sorted by key."""
        ...

    async def vectors(self, model_id: str, text_hashes: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return text hash -> vector, for those texts that have a vector of this model."""
        ...

    async def missing_vectors(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        """Return the hashes of the texts that have no vector of this model yet."""
        ...

    async def add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        """Store vectors by model and text hash. A vector that is stored already stays."""
        ...

    async def publish(self, publication: Publication) -> int:
        """Make one new generation of a scope visible at once and return its number."""
        ...

    async def remove_server(self, scope: Scope, server: str) -> int:
        """Remove a server and its tools. Return how many tools were removed."""
        ...

    async def remove_user(self, tenant: str, user: str) -> int:
        """Remove everything that one user added. Return how many tools were removed."""
        ...

    async def set_enabled(self, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
        """Enable or disable tools, all or none of them, in one step. The decision survives re-indexing.

        Raise ToolNotFoundError if one of the tools is not published.
        """
        ...

    async def unembedded(self, model_id: str) -> Sequence[Tool]:
        """Return the published tools, of all tenants, whose text has no vector of this model."""
        ...

    async def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return the union of the `limit` best visible tools of each intent, by vector and by words."""
        ...

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words in the names of the tools that the caller may see, sorted."""
        ...

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return the tools that the caller may see and that fit the filter, sorted by key."""
        ...

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        ...

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see."""
        ...
