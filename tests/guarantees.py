"""What toolscout guarantees, as data: each has an id, a sentence and a source, and tests name what they prove.

    @guarantee("store:kill9")
    async def test_a_killed_writer_leaves_one_whole_edition(): ...

A guarantee that nothing keeps yet carries the reason as its `gap`; one that is kept in part says what of its sentence
comes `later`. `tests/test_guarantees.py` fails when a guarantee has neither a test nor a gap, or both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

GATEWAY = "come with telemetry and REST"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One guarantee: `gap` says why nothing proves it yet, `later` what of the sentence is not proven yet."""

    id: str
    sentence: str
    gap: str = ""
    later: str = ""
    source: str = ""


def guarantee(*ids: str) -> pytest.MarkDecorator:
    """Mark a test, or a module as `pytestmark`, with the guarantees that it proves."""
    return pytest.mark.guarantee(*ids)


def _group(source: str, *guarantees: Guarantee) -> tuple[Guarantee, ...]:
    return tuple(replace(item, source=source) for item in guarantees)


_PROTOCOL = _group(
    "Protocol",
    Guarantee(
        "proto:conformance",
        "The public conformance suite passes at 2025-11-25 and 2026-07-28, exceptions listed with reasons.",
    ),
    Guarantee(
        "proto:malformed",
        "Malformed requests get a clean 4xx or JSON-RPC error, reach no downstream server, and the next good request "
        "is answered; 10,000 generated cases, no crash, no 500.",
    ),
    Guarantee(
        "proto:list-stable",
        "`tools/list` is byte-identical for the same caller over 1,000 calls, restarts and re-indexes that change "
        "nothing; it carries `ttlMs` and `cacheScope`.",
    ),
    Guarantee(
        "proto:passthrough",
        "Content kinds, structuredContent, `_meta`, `isError`, resource links and input_required survive unchanged.",
    ),
    Guarantee("proto:dual-era", "Legacy and modern clients reach legacy and modern servers."),
)

_ACCESS = _group(
    "Identity and access",
    Guarantee(
        "auth:default",
        "HTTP beyond loopback refuses to start without authentication unless an explicit flag says so.",
    ),
    Guarantee(
        "auth:token",
        "A wrong audience, issuer, expiry or algorithm, or a token in the query string: 401 with `resource_metadata`; "
        "no store query is made.",
    ),
    Guarantee(
        "auth:no-passthrough",
        "Inbound credentials never reach a downstream server.",
    ),
    Guarantee(
        "access:one-predicate",
        "Found by search = opened by details = callable, per caller, over 10,000 random policies; never another "
        "tenant's tool.",
    ),
    Guarantee(
        "access:absent-equals-forbidden",
        "Absent and forbidden have the same code, message and shape; no count, score, related tool or suggestion "
        "changes when hidden tools are added.",
    ),
    Guarantee("access:fails-closed", "An exception in rules or identity denies."),
    Guarantee(
        "tenant:isolation",
        "The same names in two tenants, interleaved, on every store: nothing leaks.",
        later="MongoDB joins with its store",
    ),
)

_CATALOGUE = _group(
    "Catalogue",
    Guarantee(
        "catalog:pin",
        "One changed character anywhere in a definition is seen, reported and, when strict, withheld until approved.",
    ),
    Guarantee(
        "catalog:quarantine",
        "Poisoned definitions are quarantined on every surface; detection and false-positive rates are stated.",
    ),
    Guarantee(
        "catalog:collision",
        "The same name on three servers, reserved names, confusables, duplicates in one server: deterministic, nothing "
        "overwritten, all reported.",
        later="confusables are kept apart now, and reported with the screen stage",
    ),
    Guarantee(
        "catalog:bounds",
        "A 5 MB schema, depth 5,000, `$ref` loops, `$ref` to a local listener, a 100,000-tool server, an endless "
        "cursor: the item is dropped with a reason, the rest is indexed, memory bounded.",
    ),
    Guarantee(
        "rank:deterministic",
        "The same corpus and query give the same order over processes, insertion orders and stores.",
    ),
    Guarantee(
        "rank:flood",
        "1 % hostile tools that flood the catalogue cost honest recall@5 under 5 points and hold at most 2 of 5 places "
        "in 99 % of queries.",
    ),
    Guarantee(
        "rank:stuffing",
        "1 % hostile tools stuffed with words cost honest recall@5 under 5 points and hold at most 2 of 5 places in "
        "99 % of queries.",
    ),
)

_FAULTS = _group(
    "Downstream faults",
    *(
        Guarantee(f"fault:{name}", sentence)
        for name, sentence in (
            ("crash", "A crash before, during or after the reply: a typed error at once, restart, no second send."),
            ("hang", "A server that hangs: the total deadline holds, cancellation is sent, the slot is freed."),
            ("drip", "A server that drips: the total deadline holds, cancellation is sent, the slot is freed."),
            ("garbage", "Half lines and binary: bounded memory, explicit notice."),
            ("huge", "A 100 MB line, a 1 GB result: bounded memory, explicit notice."),
            ("start", "Slow or never starting servers delay nobody."),
            ("breaker", "Five failures open the breaker; it fails fast; half-open after 30 s."),
            ("changed", "A list that changes mid-call, a removed tool, a changed schema: all are noticed."),
            ("storm", "1,000 `list_changed` a second: one re-index per interval."),
            ("orphans", "No orphans after SIGTERM, none after kill -9 of the gateway."),
        )
    ),
)

_STORAGE = _group(
    "Storage",
    Guarantee(
        "store:contract",
        "One suite over all stores; the same top 10.",
        later="MongoDB joins with its store",
    ),
    Guarantee(
        "store:kill9", "Random kill -9 during indexing, 100 times: integrity holds, the visible generation is whole."
    ),
    Guarantee(
        "store:down",
        "The database stops: liveness true, readiness false, stale answers or a typed error within 2 s, recovery "
        "within 5 s.",
    ),
    Guarantee(
        "store:move",
        "A whole catalogue moves between stores: the same top 10, nothing is embedded; a broken file changes nothing.",
    ),
    Guarantee(
        "replica:serving",
        "Several gateways over one database: one killed with -9, one restarted, only requests in flight fail; a "
        "publish is found on all within 1 s.",
    ),
    Guarantee(
        "replica:turns",
        "One replica at a time indexes a given server, the others serve what it published; when it dies, another takes "
        "over.",
    ),
    Guarantee(
        "store:full",
        "Disk full: a typed error, the old generation still served.",
        later="SQLite's disk is filled; that of a PostgreSQL server is out of a test's reach",
    ),
    Guarantee("store:upgrade", "Databases of earlier versions migrate; newer ones are refused clearly."),
    Guarantee("embed:model-change", "A new model rebuilds beside the old one and switches at once; vectors never mix."),
    Guarantee("embed:down", "Embedder down: keyword answers marked degraded; recovery without restart."),
)

_LOAD = _group(
    "Load and limits",
    Guarantee(
        "load:clients",
        "1,000 concurrent clients for 10 minutes: no errors outside limits, no growth of memory or descriptors.",
        gap="200 clients at once are measured in benchmarks/gateway; ten minutes of 1,000 come with operating",
    ),
    Guarantee(
        "load:limits",
        "A body of 4 MiB + 1: 413; a 1 MB query: 400; rate limit: 429 with Retry-After or a tool error.",
        later="a long query is a tool error, and 400 with REST",
    ),
    Guarantee("load:cancel", "A client that leaves frees all its work."),
    Guarantee("text:scripts", "20 scripts, RTL, emoji, NUL, lone surrogates: no crash, true round trip."),
)

_EGRESS = _group(
    "Egress, processes, secrets, audit",
    Guarantee(
        "egress:ssrf",
        "Private, loopback and metadata addresses in every form, rebinding and redirects: refused, a local listener "
        "sees nothing.",
    ),
    Guarantee("egress:origin", "Evil, null or duplicate Origin, wrong Host: 403."),
    Guarantee("proc:argv", "Metacharacters in a server's command arrive literally."),
    Guarantee("proc:env", "A child sees only the listed environment."),
    Guarantee(
        "secret:nowhere",
        "Canaries in config, environment, headers, arguments: none in logs, traces, metrics, errors, database.",
        later="traces and metrics come with telemetry",
    ),
    Guarantee(
        "audit:every-call",
        "Exactly one line per call, also for failures: who, tenant, key, fingerprint, decision, outcome, ms, argument "
        "shape.",
    ),
    Guarantee("audit:injection", "Newlines and ANSI in names stay harmless."),
    Guarantee(
        "docs:complete",
        "Every setting, flag, metric, error code and endpoint is documented; README blocks run.",
        gap=f"settings, flags, errors and blocks are tested in tests/docs; metrics and endpoints {GATEWAY}",
    ),
)

GUARANTEES: tuple[Guarantee, ...] = (*_PROTOCOL, *_ACCESS, *_CATALOGUE, *_FAULTS, *_STORAGE, *_LOAD, *_EGRESS)
