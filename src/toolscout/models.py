"""The nouns: what travels between the stages of the three walks. Frozen, keyword-only, no I/O."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float32]
    IntArray = npt.NDArray[np.int64]
    RowArray = npt.NDArray[np.int32]
    BoolArray = npt.NDArray[np.bool_]
    ByteArray = npt.NDArray[np.uint8]

Detail = Literal["minimal", "brief", "full"]
Match = Literal["any", "all"]

LOCAL = "local"
"""The tenant, and the server, of everything that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. The default is the local user of a laptop: one tenant, everything of it visible."""

    tenant: str = LOCAL
    user: str | None = None
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What the operator's config says of a server or a tool, over what the server says of itself."""

    description: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    related: tuple[str, ...] = ()
    enabled: bool | None = None
    trusted: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A place that tools come from: its key begins theirs, its title is the operator's own spelling."""

    key: str
    title: str
    trusted: bool = True
    overlay: Overlay = Overlay()
    tool_overlays: Mapping[str, Overlay] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: its definition as the server sent it, normalized, and what enrichment knows of it."""

    key: str
    id: str
    server: str
    server_title: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    category: str = ""
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    related: tuple[str, ...] = ()
    fingerprint: str = ""
    tenant: str = LOCAL
    owner: str | None = None
    enabled: bool = True
    trusted: bool = True

    @property
    def version(self) -> str:
        """The prefix of the fingerprint that a hit shows and a call may carry back."""
        return self.fingerprint[:12]

    @property
    def read_only(self) -> bool:
        """Whether a trusted server declares that the tool changes nothing."""
        return self.trusted and self.annotations.get("readOnlyHint") is True


TEMPLATE: Mapping[str, str] = {
    "name": "{}",
    "server": " ({})",
    "description": ": {}",
    "parameters": " Parameters: {}",
}
"""How a document becomes text unless the model's manifest says otherwise: field by field, empty ones left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What stands for a tool before an embedder: its parts in plain words, which each model words in its own way."""

    name: str
    server: str
    description: str
    parameters: str

    def text(self, template: Mapping[str, str] = TEMPLATE) -> str:
        """Write the parts that are there, each in its place of the template."""
        parts = ((form, getattr(self, field)) for field, form in template.items())
        return "".join(form.format(value) for form, value in parts if value).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A tool or a line that could not be indexed, and why."""

    where: str
    reason: str


FIELDS = ("name", "server", "description", "parameters", "labels")
"""The fields of a tool that words are found in: bit n of a mask is field n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A tool's distinct words as columns: how strongly each stands for it, and in which fields (a bit mask)."""

    words: tuple[str, ...]
    impact: array[float]
    fields: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A tool ready to be published: its words, and the document whose vector stands for it, under its hash."""

    tool: Tool
    document: Document
    text_hash: str
    terms: Terms
    tokens: int
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One new generation: whole servers replaced, removed, or kept where nothing changed."""

    tenant: str
    servers: tuple[Server, ...]
    entries: tuple[Entry, ...]
    kept: frozenset[str]
    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What indexing did, counted; `dropped` and `collisions` say what was left out or renamed, and why."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    embedded: int = 0
    unembedded: int = 0
    dropped: tuple[Dropped, ...] = ()
    collisions: tuple[Dropped, ...] = ()
    generation: int = 0
    took_ms: float = 0.0

    @property
    def total(self) -> int:
        """How many tools of the indexed servers are in the catalogue now."""
        return self.new + self.changed + self.unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What browsing, filtering and the documented rankers read of a tool; schemas stay in the store."""

    key: str
    id: str
    server: str
    server_title: str
    name: str
    title: str
    description: str
    category: str
    tags: tuple[str, ...]
    keywords: tuple[str, ...]
    related: tuple[str, ...]
    tenant: str
    owner: str | None
    enabled: bool
    trusted: bool
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a caller can see, in sum."""

    total: int
    tokens: int
    categories: tuple[str, ...]
    generation: int
    model_id: str
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a request narrows its search to; it is applied inside the store's search, never after it."""

    tags: tuple[str, ...] = ()
    match: Match = "any"
    category: str | None = None
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One need of a request: the words and the vector to look for (no vector when the embedder is down)."""

    text: str
    terms: tuple[str, ...]
    vector: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Filtered evidence from a store, as columns: row j of every array is `facets[j]`.

    `cosine` is [intents, rows]. `impact` and `fields` are [terms, rows], one line for each distinct term of the
    intents, in the order of `terms`; `frequency` counts the visible tools that hold the term, out of `visible`. Without
    vectors (`with_vectors`), every cosine is 0.
    """

    facets: tuple[Facets, ...]
    cosine: FloatArray
    terms: tuple[str, ...]
    impact: FloatArray
    fields: ByteArray
    frequency: IntArray
    visible: int
    with_vectors: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One scored tool on its way through the discovery walk."""

    facets: Facets
    score: float
    matched_tags: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)
    relationship: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked: one text, how to narrow it, how to rank and how to show it."""

    text: str
    filter: Filter = Filter()
    ranker: str = "hybrid"
    limit: int = 10
    threshold: float | None = None
    detail: Detail = "brief"
    max_tokens: int | None = None
    explain: bool = False


class SearchOptions(TypedDict, total=False):
    """What a search may be given beside its query; `Scout.search_tools` says what each means."""

    tags: Sequence[str] | None
    match: Match
    category: str | None
    servers: Sequence[str] | None
    top_k: int
    threshold: float | None
    detail: Detail
    max_tokens: int | None
    ranker: str | None
    explain: bool
    caller: Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatch:
    """A hit: the tool, its score on the ranker's own scale (None where nothing was ranked), and why."""

    tool: Tool
    score: float | None = None
    matched_tags: tuple[str, ...] = ()
    relationship: str | None = None
    explain: Mapping[str, Any] | None = None
    detail: Detail = "brief"

    @property
    def call_with(self) -> str:
        """The name of the gateway tool that may call this one."""
        return "call_read_tool" if self.tool.read_only else "call_tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What an answer says of itself."""

    total: int
    matched: int
    returned: int = 0
    took_ms: float = 0.0
    tokens: int = 0
    tokens_saved: int = 0
    ranker: str = ""
    detail: Detail = "brief"
    categories_available: tuple[str, ...] = ()
    degraded: str | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pagination:
    """Which page of a listing this is."""

    page: int
    page_size: int
    total_tools: int

    @property
    def total_pages(self) -> int:
        """How many pages there are."""
        return -(-self.total_tools // self.page_size)

    @property
    def has_next(self) -> bool:
        """Whether a page follows."""
        return self.page < self.total_pages

    @property
    def has_prev(self) -> bool:
        """Whether a page comes before."""
        return self.page > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Sequence[ToolMatch]):
    """A sequence of ToolMatch, with what there is to say about it."""

    matches: tuple[ToolMatch, ...]
    metadata: Metadata
    pagination: Pagination | None = None
    suggestions: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> ToolMatch: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolMatch, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolMatch | tuple[ToolMatch, ...]:
        """Return the match, or matches, at that place."""
        return self.matches[index]

    def __len__(self) -> int:
        """Count the matches."""
        return len(self.matches)

    def __iter__(self) -> Iterator[ToolMatch]:
        """Walk the matches, best first."""
        return iter(self.matches)

    def timed(self, took_ms: float) -> Answer:
        """Return the same answer with its duration filled in."""
        return replace(self, metadata=replace(self.metadata, took_ms=round(took_ms, 3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A category that the caller can see, with how many tools it holds."""

    name: str
    count: int
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag that the caller can see, with how many tools carry it."""

    name: str
    count: int
