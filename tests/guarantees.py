"""What toolscout guarantees, as data. Each guarantee has an id, and tests are marked with the ids that they prove:

    @guarantee("store:kill9")
    async def test_a_killed_writer_leaves_one_complete_generation(): ...

A guarantee without a test has the reason as its `gap`. A guarantee that is proven in part says under `later` what is
missing. `tests/test_guarantees.py` fails if a guarantee has neither a test nor a gap, or both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One guarantee. `gap` says why it has no test, `later` which part of the sentence is not tested yet."""

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
        "The public conformance suite passes at 2025-11-25 and 2026-07-28. Exceptions are listed with reasons.",
    ),
    Guarantee(
        "proto:malformed",
        "Malformed requests get a 4xx or a JSON-RPC error and reach no downstream server. The next valid request is "
        "answered. Tested with 10,000 generated cases: no crash, no 500.",
    ),
    Guarantee(
        "proto:list-stable",
        "`tools/list` is byte-identical for the same caller over 1,000 calls, restarts and re-indexes that change "
        "nothing. It has `ttlMs` and `cacheScope`.",
    ),
    Guarantee(
        "proto:passthrough",
        "All kinds of content, structuredContent, `_meta`, `isError`, resource links and input_required are passed on "
        "unchanged.",
    ),
    Guarantee("proto:dual-era", "Clients and servers of the stateless protocol and of older versions work together."),
)

_ACCESS = _group(
    "Identity and access",
    Guarantee(
        "auth:default",
        "HTTP beyond loopback does not start without authentication, unless a flag allows it.",
    ),
    Guarantee(
        "auth:token",
        "A token with a wrong audience, issuer, expiry or algorithm, or in the query string, gets 401 with "
        "`resource_metadata`, and the store is not read.",
    ),
    Guarantee(
        "auth:no-passthrough",
        "The caller's credentials are never sent to a downstream server.",
    ),
    Guarantee(
        "access:one-predicate",
        "For each caller, search, details and calls allow the same tools, and never those of another tenant. Tested "
        "with 10,000 random policies.",
    ),
    Guarantee(
        "access:absent-equals-forbidden",
        "An absent and a forbidden tool give the same code, message and format. No count, score, related tool or "
        "suggestion changes when hidden tools are added.",
        later="PostgreSQL beyond 50,000 tools, where hidden tools can change which of the nearest are found",
    ),
    Guarantee(
        "signin:bound",
        "A token of somebody who signed in is used for its own user, server and issuer only. It is encrypted at rest. "
        "One renewal runs at a time. The answer of an issuer ends only the sign-in that asked for it, once, in the "
        "browser that began it, at the callback of its own server.",
    ),
    Guarantee("access:fails-closed", "If the rules or the identity cannot be evaluated, access is denied."),
    Guarantee(
        "access:resources",
        "Resources, prompts and completions obey allow rules, deny rules and limits, and leave an audit line, as calls "
        "do.",
    ),
    Guarantee(
        "tenant:isolation",
        "Two tenants that use the same names at the same time see nothing of each other, on every store.",
        later="MongoDB, when its store exists",
    ),
)

_CATALOGUE = _group(
    "Catalogue",
    Guarantee(
        "catalog:pin",
        "A definition that changes by one character is reported. In strict mode it is withheld until approved.",
    ),
    Guarantee(
        "catalog:approve",
        "What is approved is what was shown: a definition that waits for a decision is approved as KEY@VERSION.",
    ),
    Guarantee(
        "catalog:archive",
        "The key of an archived tool is its server and its name, its definition has the bounds of a live one, and the "
        "unpacked bytes of an archive are bounded.",
    ),
    Guarantee(
        "catalog:voice",
        "No text of a server stands in a description of the gateway's own tools.",
    ),
    Guarantee(
        "catalog:quarantine",
        "Poisoned definitions are quarantined on every surface, and poisoned entries in the lists of resources and "
        "prompts are withheld. Detection and false-positive rates are published.",
    ),
    Guarantee(
        "catalog:collision",
        "The same name on three servers, reserved names, confusable names and duplicates in one server have a "
        "deterministic result. Nothing is overwritten, and all are reported.",
    ),
    Guarantee(
        "catalog:bounds",
        "A 5 MB schema, a depth of 5,000, `$ref` loops, a `$ref` to a local address, a server with 100,000 tools or an "
        "endless cursor: the item is dropped with a reason, the rest is indexed, and memory stays bounded.",
    ),
    Guarantee(
        "rank:deterministic",
        "The same tools and query give the same order in every process and store, for any order of insertion.",
    ),
    Guarantee(
        "rank:flood",
        "If 1 % of the tools are hostile copies, recall@5 of the honest tools falls by less than 5 points, and hostile "
        "tools take at most 2 of 5 places in 99 % of queries.",
    ),
    Guarantee(
        "rank:stuffing",
        "If 1 % of the tools are stuffed with keywords, recall@5 of the honest tools falls by less than 5 points, and "
        "hostile tools take at most 2 of 5 places in 99 % of queries.",
    ),
)

_FAULTS = _group(
    "Downstream faults",
    *(
        Guarantee(f"fault:{name}", sentence)
        for name, sentence in (
            (
                "crash",
                "After a crash the caller gets an error at once, the server restarts, and nothing is sent twice.",
            ),
            ("hang", "A call to a server that hangs ends at its deadline, is cancelled, and frees its slot."),
            (
                "drip",
                "A call to a server that sends byte by byte ends at its deadline, is cancelled, and frees its slot.",
            ),
            ("garbage", "Incomplete lines and binary data are reported, and memory stays bounded."),
            ("huge", "A line of 100 MB and a result of 1 GB are reported, and memory stays bounded."),
            ("start", "A server that starts slowly or never does not delay others."),
            (
                "breaker",
                "Five failures open the circuit breaker. Calls then fail at once. After 30 s, or 5 s if "
                "it answers pings, one call is let through.",
            ),
            ("changed", "A list that changes during a call, a removed tool and a changed schema are noticed."),
            ("storm", "1,000 `list_changed` notifications a second lead to one re-index per interval."),
            (
                "index",
                "One server's definitions, however large or crafted, delay no other server's call. Of 50 calls a "
                "second to a healthy server none fails, p95 stays within twice that of before, memory within 100 MiB.",
            ),
            (
                "flood",
                "A server that sends what nobody asked for, as fast as it can, takes a small share of the gateway's "
                "time: messages, events, lines that are no messages, standard error. Healthy calls go on as with "
                "`fault:index`.",
            ),
            (
                "schema",
                "A check of arguments by a schema ends within the time of its call or is refused: patterns, branching "
                "references, unique items and long lists of names or values cannot hold the process. Slow checks of "
                "one caller delay no other, and without a process to run them in they are refused.",
            ),
            (
                "body",
                "Every body that is read whole is bounded in bytes and time, whatever its content type: also errors, "
                "tokens and OAuth metadata. A stream of events is closed when its call ends or is given up.",
            ),
            (
                "questions",
                "A server's questions are bounded in number, and together they never put a call's ceiling off.",
            ),
            (
                "tenants",
                "Calls of one tenant that hang or fail neither delay nor fail the calls of another tenant to the same "
                "server.",
            ),
            ("orphans", "No server process is left after SIGTERM or kill -9 of the gateway."),
        )
    ),
)

_STORAGE = _group(
    "Storage",
    Guarantee(
        "store:contract",
        "All stores pass the same tests and return the same top 10.",
        later="MongoDB, when its store exists",
    ),
    Guarantee(
        "store:kill9", "After kill -9 at random moments of indexing, 100 times, the visible generation is complete."
    ),
    Guarantee(
        "store:down",
        "While the database is down, the process is alive but not ready, and answers are stale or a typed error within "
        "2 s. It recovers within 5 s.",
    ),
    Guarantee(
        "store:move",
        "A catalogue moves between stores with the same top 10 and without embedding. A broken file changes nothing.",
    ),
    Guarantee(
        "replica:serving",
        "With several gateways over one database, only requests in flight fail when one is killed or restarted. A "
        "publication is visible on all within 1 s.",
    ),
    Guarantee(
        "replica:turns",
        "One replica at a time indexes a given server, and the others serve what it published. If it dies, another "
        "takes over.",
    ),
    Guarantee(
        "store:full",
        "When the disk is full, a typed error is raised, and the old generation is still served.",
        later="tested with SQLite, not with the disk of a PostgreSQL server",
    ),
    Guarantee(
        "store:restore",
        "A SQLite file that takes the place of the open one counts from the next request on: revoked keys, switches, "
        "tools. While there is none or it cannot be read, no key is accepted.",
    ),
    Guarantee(
        "store:clean-up",
        "Vectors and pins of tools that are long gone are deleted. A tool that comes back within 90 days is compared "
        "with its pin, and what an operator decided is kept.",
    ),
    Guarantee("store:upgrade", "Databases of earlier versions are migrated. Databases of newer versions are refused."),
    Guarantee(
        "embed:model-change",
        "Vectors of a new model are built beside the old ones and used all at once. They are never mixed.",
    ),
    Guarantee(
        "embed:down",
        "While the embedder is down, answers use words and are marked degraded. It recovers without a restart.",
    ),
)

_LOAD = _group(
    "Load and limits",
    Guarantee(
        "load:clients",
        "1,000 concurrent clients for 10 minutes get no errors within limits. Memory and descriptors do not grow.",
        later="ten minutes with 1,000 clients are a benchmark, `python -m benchmarks.load`, and no test",
    ),
    Guarantee(
        "load:limits",
        "A body of 4 MiB + 1 gets 413, a query of 1 MB gets 400. Too many requests or sessions of a key, and too many "
        "wrong keys of an address, get 429 with Retry-After. A call over its limit is a tool error.",
        later="a long query is a tool error; 400 comes with REST",
    ),
    Guarantee("load:cancel", "When a client disconnects, all its work is cancelled."),
    Guarantee(
        "text:scripts",
        "Text in 20 scripts, right-to-left text, emoji, NUL and lone surrogates are stored and returned unchanged.",
    ),
)

_EGRESS = _group(
    "Egress, processes, secrets, audit",
    Guarantee(
        "egress:ssrf",
        "Private, loopback and metadata addresses are refused in every form, also after DNS rebinding and redirects.",
    ),
    Guarantee("egress:origin", "A foreign, null or duplicate Origin and a wrong Host get 403."),
    Guarantee("proc:argv", "Shell metacharacters in a server's command have no effect."),
    Guarantee("proc:env", "A server process gets only the environment that the config lists."),
    Guarantee(
        "secret:nowhere",
        "Secrets in config, environment, headers and arguments are in no log, trace, metric, error or database.",
    ),
    Guarantee(
        "audit:every-call",
        "Every call leaves exactly one line, also if it fails: user, tenant, key, fingerprint, decision, outcome, ms "
        "and the types of the arguments. A full disk tears no line and loses none; a setting refuses calls meanwhile.",
    ),
    Guarantee("audit:injection", "Line breaks and terminal escape sequences in names have no effect."),
    Guarantee(
        "docs:complete",
        "Every setting, flag, metric, error code and endpoint is documented. The blocks of the README run.",
    ),
)

_FIRST_HOUR = _group(
    "First hour",
    Guarantee(
        "private:offline",
        "No process of toolscout opens a connection that nobody asked for, or writes a file outside its own folders. "
        "The telemetry of a dependency is off before it loads.",
    ),
    Guarantee("start:partial", "An entry of the config that cannot be used never stops the other servers."),
    Guarantee("term:safe", "No character of a server moves a terminal or forges a line, in any command and any log."),
    Guarantee(
        "import:links",
        "No file is written through a link, except a config file of the user's own that is a link by their choice.",
    ),
    Guarantee(
        "console:safe",
        "The console shows what servers send as text. Its page runs no inline script and loads nothing from elsewhere, "
        "other sites can neither frame it nor act through it, and a session has the rights of its key alone.",
    ),
    Guarantee("import:rights", "Moving the servers of a host never gives an agent more tools than the host did."),
)

_PLANNED = _group(
    "Planned",
    Guarantee(
        "learn:private",
        "The texts of requests are not kept, and nobody's experience leaves their tenant.",
        gap="nothing learns from use yet: no request is remembered",
    ),
    Guarantee(
        "learn:steer",
        "What one caller does moves no tool into or out of another caller's first five hits.",
        gap="nothing learns from use yet: hits depend on the catalogue and the request alone",
    ),
    Guarantee(
        "plan:sandbox",
        "A plan of several calls reaches nothing but the caller's own tools, within its limits. Each call is subject "
        "to the policy and leaves an audit line.",
        gap="there are no plans yet: an agent makes each call itself",
    ),
    Guarantee(
        "load:workers",
        "Limits, sessions and parked calls hold across the workers of one gateway. A worker that dies costs only its "
        "own calls.",
        gap="a gateway serves in one process yet, and replicas need a sticky load balancer for parked calls",
    ),
)

GUARANTEES: tuple[Guarantee, ...] = (
    *_PROTOCOL,
    *_ACCESS,
    *_CATALOGUE,
    *_FAULTS,
    *_STORAGE,
    *_LOAD,
    *_EGRESS,
    *_FIRST_HOUR,
    *_PLANNED,
)
