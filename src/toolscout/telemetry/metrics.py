"""Every metric by its name, and how each is recorded. docs/monitoring.md explains them.

The values of labels are bounded: servers of the catalogue, codes of our own, methods and error codes of the protocol.
No label names a tenant, a user, a key, a tool or a text of theirs.
"""

from __future__ import annotations

from collections.abc import Awaitable

from toolscout.errors import ToolscoutError
from toolscout.models import Answer, ChatSelection, IndexReport
from toolscout.telemetry.exposition import Counter, Gauge, Histogram, Metric

MAX_SERVERS = 2_000
"""How many servers have series of their own. The calls of further servers are counted together."""

OTHER = "other"
"""The value of a label for everything that has no value of its own."""

_SEARCH_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_CALL_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_MCP_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_INDEX_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)

_METHODS = frozenset(
    "completion/complete initialize logging/setLevel ping prompts/get prompts/list resources/list resources/read "
    "resources/subscribe resources/templates/list resources/unsubscribe server/discover tools/call tools/list".split()
)
_PROTOCOL_ERRORS = frozenset("-32700 -32600 -32601 -32602 -32603 -32000 -32001 -32002 -32042 -32800".split())


class Metrics:
    """The metrics of one scout. Its gateway adds what only it knows."""

    def __init__(self) -> None:
        self.searches = Histogram(
            "toolscout_search_duration_seconds", "How long searches took.", "ranker", buckets=_SEARCH_S
        )
        self.search_errors = Counter("toolscout_search_errors_total", "Searches that ended with an error.", "code")
        self.answers = Counter("toolscout_answers_total", "Answers to searches, by how well the best hit fits.", "fit")
        self.degraded = Counter("toolscout_degraded_answers_total", "Answers that were found by words alone.")
        self.stale = Counter("toolscout_stale_answers_total", "Answers from the last catalogue, without the store.")
        self.tokens = Counter("toolscout_answer_tokens_total", "Tokens of the answers to searches.")
        self.tokens_saved = Counter(
            "toolscout_tokens_saved_total", "Tokens of the definitions that agents and models did not have to read."
        )
        self.turns = Histogram(
            "toolscout_turn_duration_seconds", "How long choosing the tools of a chat turn took.", buckets=_SEARCH_S
        )
        self.turn_fallbacks = Counter(
            "toolscout_turn_fallbacks_total", "Chat turns whose search failed, so that they got the first tools by key."
        )
        self.calls = Counter("toolscout_calls_total", "Calls of tools, resources and prompts.", "server", "outcome")
        self.call_seconds = Histogram(
            "toolscout_call_duration_seconds", "How long those calls took.", "server", buckets=_CALL_S
        )
        self.mcp_server = Histogram(
            "mcp_server_operation_duration_seconds",
            "How long requests to the gateway took.",
            "mcp_method_name",
            "error_type",
            buckets=_MCP_S,
        )
        self.mcp_client = Histogram(
            "mcp_client_operation_duration_seconds",
            "How long requests to servers took.",
            "mcp_method_name",
            "error_type",
            buckets=_MCP_S,
        )
        self.indexings = Histogram(
            "toolscout_index_duration_seconds", "How long indexing took, from listing to publishing.", buckets=_INDEX_S
        )
        self.indexed = Counter("toolscout_indexed_tools_total", "Tools by what indexing did with them.", "change")
        self.index_waiting = Gauge("toolscout_index_waiting", "Lists of tools that wait to be published.")
        self.index_lag = Gauge("toolscout_index_lag_seconds", "How long the oldest of them has waited.")
        self.tools = Gauge("toolscout_tools", "Tools in the catalogue of the local tenant.")
        self.generation = Gauge("toolscout_generation", "The generation of that catalogue.")
        self.servers = Gauge("toolscout_servers", "Servers by state.", "state")
        self.server_up = Gauge("toolscout_server_up", "Whether a server that is not disabled is connected.", "server")
        self.breakers = Gauge(
            "toolscout_breakers", "Tenants whose circuit breaker is open or half open.", "server", "state"
        )
        self.store_up = Gauge("toolscout_store_up", "Whether the store answers.")
        self.cache = Counter(
            "toolscout_cache_lookups_total", "Lookups of query vectors and lists of tools.", "cache", "result"
        )
        self.sessions = Gauge("toolscout_sessions", "Open sessions and listen streams of clients.", "kind")
        self.info = Gauge("toolscout_info", "Always 1.", "version")
        self._servers: set[str] = set()

    def all(self) -> list[Metric]:
        """Return every metric, in the order of this file."""
        return [value for value in vars(self).values() if isinstance(value, Metric)]

    def render(self) -> bytes:
        """Write all of them as Prometheus reads them."""
        return "".join([line for metric in self.all() for line in metric.lines()]).encode()

    async def measure_search(self, search: Awaitable[list[Answer]]) -> list[Answer]:
        """Wait for a search, and record its answers, one for each of its queries, or what ended it."""
        try:
            answers = await search
        except ToolscoutError as error:
            self.search_errors.add(error.code)
            raise
        for answer in answers[:1]:
            self.searches.observe(answer.metadata.took_ms / 1_000, answer.metadata.ranker)
        for answer in answers:
            facts = answer.metadata
            self.answers.add((answer[0].fit or "unrated") if answer.matches else "empty")
            self.degraded.add(by=facts.degraded is not None)
            self.stale.add(by=facts.stale)
            self.tokens.add(by=facts.tokens)
            self.tokens_saved.add(by=facts.tokens_saved)
        return answers

    async def measure_turn(self, choice: Awaitable[ChatSelection]) -> ChatSelection:
        """Wait until the tools of a chat turn are chosen, and record the choice."""
        selection = await choice
        self.turns.observe(selection.search_duration_ms / 1_000)
        self.turn_fallbacks.add(by=any(item.source == "fallback" for item in selection.tools))
        self.tokens_saved.add(by=selection.tokens_saved)
        return selection

    def record_call(self, server: str, outcome: str, ms: float) -> None:
        """Record one call. `server` is "" where the caller named none that exists."""
        label = self._server_label(server)
        self.calls.add(label, outcome)
        self.call_seconds.observe(ms / 1_000, label)

    def record_index(self, report: IndexReport) -> None:
        """Record one indexing."""
        self.indexings.observe(report.took_ms / 1_000)
        counts = {"new": report.new, "changed": report.changed, "removed": report.removed}
        counts |= {"quarantined": len(report.quarantined), "dropped": len(report.dropped)}
        for change, count in counts.items():
            self.indexed.add(change, by=count)

    def _server_label(self, server: str) -> str:
        if server not in self._servers:
            if not server or len(self._servers) >= MAX_SERVERS:
                return OTHER
            self._servers.add(server)
        return server


def method_label(method: str) -> str:
    """Return a method of the protocol, or `other`: clients can name any."""
    return method if method in _METHODS else OTHER


def error_label(error_type: str) -> str:
    """Return an error's class, or `other` for a code of a server's own."""
    return OTHER if error_type.lstrip("-").isdigit() and error_type not in _PROTOCOL_ERRORS else error_type
