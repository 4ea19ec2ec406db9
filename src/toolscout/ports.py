"""The Protocols: what the walks ask of the adapters, and nothing more."""

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
        """Forward a server's request (elicitation, sampling, roots); raise CallError when the agent cannot answer."""
        ...


@runtime_checkable
class ToolProvider(Protocol):
    """Tools from anywhere, by an author's own code: a folder of scripts, a database, an API.

    Each method may be synchronous or asynchronous. Nothing that it returns is trusted. A provider that fails
    loses only its own tools.
    """

    def list_tool_metadata(self) -> Iterable[ToolMetadata] | Awaitable[Iterable[ToolMetadata]]:
        """Return the fields of each tool that search needs; mappings with the same names are accepted."""
        ...

    def get_tool(self, name: str) -> Any:
        """Return one full definition, as a mapping or an SDK tool, or None when there is no such tool."""
        ...

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool once and return its result; raise ToolNotFoundError when there is no such tool."""
        ...


class ToolSource(Protocol):
    """The tools of one server: from a file, from Python objects, from a live MCP server."""

    @property
    def server(self) -> Server:
        """Return the server that these tools belong to."""
        ...

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the raw definitions; nothing in them is trusted."""
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
        """Call a tool once and return its raw result; `extra` are further parameters of the request."""
        ...


class LiveServer(ToolSource, Protocol):
    """A server that is connected now, and may change or go down at any time."""

    @property
    def status(self) -> ServerStatus:
        """Return the state of the connection."""
        ...

    @property
    def tenants(self) -> tuple[str, ...] | Literal["all"] | None:
        """Return the tenants that it is indexed for and that may call it; None: indexed for the local tenant alone."""
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
    """Text to vectors of unit length."""

    @property
    def model_id(self) -> str:
        """Name the model, its wording of documents included; vectors of different names never meet."""
        ...

    @property
    def dimension(self) -> int:
        """Return the length of a vector (0 while a remote model has not answered yet)."""
        ...

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one row for each document; raise EmbedderError when that cannot be done now."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return one row for each query; raise EmbedderError when that cannot be done now."""
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
    """Where the catalogue lives: scopes, each with generations of its own.

    Every reading method takes the caller and filters inside: what a caller sees is everyone's scope of the tenant and
    their own, which hides the tools of the same key in the other.
    """

    async def open(self) -> None:
        """Make the store ready, migrating an older schema."""
        ...

    async def close(self) -> None:
        """Free what the store holds."""
        ...

    async def ping(self) -> None:
        """Ask the store for a sign of life; raise StoreError when it cannot be reached now."""
        ...

    async def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Take or renew the right to do what one process at a time may do; tell whether it is the holder's now.

        Whoever holds it and does not renew it in time, because it died, loses it to the next who asks.
        """
        ...

    async def release(self, name: str, holder: str) -> None:
        """Give a lease back before its time; one that is another's, or nobody's, is left alone."""
        ...

    async def scopes(self) -> Sequence[Scope]:
        """Return every scope, of all tenants, that something was ever published in, in the order of their names."""
        ...

    async def record(self, kind: str, name: str) -> Record | None:
        """Return one record by its name, whatever scope it is of."""
        ...

    async def records(self, kind: str, scope: Scope | None = None, prefix: str = "") -> Sequence[Record]:
        """Return the records of a kind whose names begin so, of one scope or of all, in the order of names."""
        ...

    async def put_records(self, records: Sequence[Record], *, replace: bool = True) -> None:
        """Keep records; with `replace`, instead of what has the same kind, scope and name."""
        ...

    async def overview(self, caller: Caller) -> Overview:
        """Return what the caller can see in sum, and which generation and model ("" before the first) that is."""
        ...

    async def stamps(self, scope: Scope, server: str) -> Mapping[str, str]:
        """Return key -> stamp for a server's published tools: an equal stamp means nothing to do."""
        ...

    async def servers(self, scope: Scope) -> Sequence[Server]:
        """Return the servers of a scope, in the order of keys."""
        ...

    async def switches(self, scope: Scope) -> Mapping[str, bool]:
        """Return key -> on or off for every tool that was switched by hand, published now or not."""
        ...

    async def stored_tools(self, scope: Scope) -> Sequence[Tool]:
        """Return all published tools of a scope as they were published, switched off or not, in the order of keys."""
        ...

    async def vectors(self, model_id: str, text_hashes: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return text -> vector of this model, for those texts that have one."""
        ...

    async def missing_vectors(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        """Return those texts that have no vector of this model yet."""
        ...

    async def add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        """Keep vectors under (model, text); what is already there stays."""
        ...

    async def publish(self, publication: Publication) -> int:
        """Make one new generation of a scope visible at once and return its number."""
        ...

    async def remove_server(self, scope: Scope, server: str) -> int:
        """Take a server and its tools out; return how many tools went."""
        ...

    async def remove_user(self, tenant: str, user: str) -> int:
        """Take everything out that one user added; return how many tools went."""
        ...

    async def set_enabled(self, scope: Scope, key: str, enabled: bool) -> None:
        """Switch one tool on or off; the decision survives re-indexing."""
        ...

    async def unembedded(self, model_id: str) -> Sequence[Tool]:
        """Return the published tools, of all tenants, whose text has no vector of this model."""
        ...

    async def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return, for each intent, the best `limit` visible tools by vector and by words, as one union."""
        ...

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words of the names that the caller may see, sorted."""
        ...

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return what the caller may see, in the order of keys."""
        ...

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        ...

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see."""
        ...
