"""`toolscout eval`, `bench` and `doctor`."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from downstreams import until
from serving import serving
from toolscout.retrieval_metrics import LabelledQuery, QueryOutcome, ndcg, recall, reciprocal_rank, summarize

Run = Callable[..., Any]
FIGURES = [
    "ndcg@10",
    "recall@1",
    "recall@5",
    "recall@10",
    "mrr",
    "shown@5",
    "empty",
    "p50_ms",
    "p95_ms",
    "tools",
    "queries",
]

TOOLS = [
    {"id": "t1", "server": "mail", "name": "send_letter", "description": "Send a letter."},
    {"id": "t2", "server": "mail", "name": "read_letter", "description": "Read a letter."},
    {"server": "maps", "name": "plan_route", "description": "Plan a route."},
]
QUERIES = [
    {"id": 1, "query": "send a letter", "gold": ["t1"]},
    {"id": 2, "query": "plan a route", "gold": ["maps__plan_route"]},
    {"id": 3, "query": "xyzzy qqq", "gold": ["t2"]},
]


@pytest.mark.parametrize(
    ("found", "gold", "expected"),
    [
        ("abc", "a", (1.0, 1.0, 1.0)),
        ("abc", "b", (0.6309297535714575, 1.0, 0.5)),
        ("abc", "x", (0.0, 0.0, 0.0)),
        ("abc", "ab", (1.0, 1.0, 1.0)),
        ("axb", "ab", (0.9197207891481876, 1.0, 1.0)),
        ("", "a", (0.0, 0.0, 0.0)),
        ("abc", "abcdef", (0.6453, 0.5, 1.0)),
    ],
)
def test_the_figures_are_the_usual_ones(found: str, gold: str, expected: tuple[float, float, float]) -> None:
    right = frozenset(gold)
    figures = (ndcg(list(found), right, 10), recall(list(found), right, 10), reciprocal_rank(list(found), right))
    assert figures == pytest.approx(expected, abs=1e-3)


def test_only_the_first_k_count() -> None:
    assert ndcg(list("abc"), frozenset("c"), 2) == 0
    assert recall(list("abc"), frozenset("c"), 2) == 0


def test_figures_are_means_over_the_queries() -> None:
    right = LabelledQuery(id="1", query="q", gold=frozenset("a"))
    outcomes = [
        QueryOutcome(labelled=right, tool_ids=("a",), took_ms=1.0),
        QueryOutcome(labelled=right, tool_ids=("b",), took_ms=3.0),
    ]
    figures = summarize(outcomes, tools=7)
    assert list(figures) == FIGURES
    assert (figures["ndcg@10"], figures["recall@1"], figures["mrr"], figures["p50_ms"]) == (0.5, 0.5, 0.5, 2.0)
    assert (figures["tools"], figures["queries"]) == (7, 2)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Return a labelled set."""
    tools, queries = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl"
    tools.write_text("\n".join(json.dumps(row) for row in TOOLS))
    queries.write_text("\n".join(json.dumps(row) for row in QUERIES) + "\n\n")
    return str(tools), str(queries)


def test_eval_prints_the_documented_figures(toolscout: Run, files: tuple[str, str]) -> None:
    ran = toolscout("eval", *files, "--ranker", "keyword", "--json")
    assert ran.code == 0
    assert list(ran.json) == FIGURES
    assert ran.json["recall@1"] == ran.json["ndcg@10"] == pytest.approx(2 / 3, abs=1e-4)
    assert (ran.json["tools"], ran.json["queries"]) == (3, 3)
    assert ran.err == ""


def test_eval_measures_what_default_settings_show(toolscout: Run, files: tuple[str, str]) -> None:
    ran = toolscout("eval", *files, "--json")
    assert (ran.json["recall@10"], ran.json["shown@5"], ran.json["empty"]) == (1.0, 1.0, 0.0)
    assert "shown@5" in toolscout("eval", *files).out


def test_a_tool_that_serves_as_well_counts_where_asked() -> None:
    labelled = LabelledQuery(id="1", query="q", gold=frozenset("a"), also=frozenset("b"))
    outcomes = [QueryOutcome(labelled=labelled, tool_ids=("b", "c"), took_ms=1.0)]
    strict, lenient = summarize(outcomes, tools=3), summarize(outcomes, tools=3, lenient=True)
    assert (strict["ndcg@10"], strict["shown@5"]) == (0.0, 0.0)
    assert (lenient["ndcg@10"], lenient["shown@5"]) == (1.0, 1.0)


def test_what_is_not_among_the_first_five_is_not_shown_and_no_hit_is_an_empty_answer() -> None:
    labelled = LabelledQuery(id="1", query="q", gold=frozenset("a"))
    sixth, none = ("b", "c", "d", "e", "f", "a"), ()
    figures = summarize([QueryOutcome(labelled=labelled, tool_ids=ids, took_ms=1.0) for ids in (sixth, none)], tools=6)
    assert (figures["recall@10"], figures["shown@5"], figures["empty"]) == (0.5, 0.0, 0.5)


def test_requests_that_nothing_fits_are_measured_by_what_claims_to_fit() -> None:
    nothing = LabelledQuery(id="1", query="q", gold=frozenset())
    outcomes = [
        QueryOutcome(labelled=nothing, tool_ids=("a",), took_ms=1.0, fit="strong"),
        QueryOutcome(labelled=nothing, tool_ids=("a",), took_ms=1.0, fit="weak"),
        QueryOutcome(labelled=nothing, tool_ids=(), took_ms=1.0),
    ]
    figures = summarize(outcomes, tools=3)
    assert figures["declined"] == pytest.approx(2 / 3, abs=1e-4)
    assert figures["strong_right"] == 0.0
    assert "ndcg@10" not in figures


def test_eval_prints_no_figure_when_answers_are_degraded(
    toolscout: Run, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    ran = toolscout("eval", *files, "--json")
    assert ran.code != 0
    assert ran.json["error"]["message"].startswith("no figure: an answer was degraded")
    assert toolscout("eval", *files, "--ranker", "keyword", "--json").code == 0


def test_eval_names_every_figure_on_a_terminal_of_80_columns(
    toolscout: Run, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = toolscout("eval", *files, "--ranker", "keyword").out
    assert all(name in ran.split() for name in FIGURES)


def test_eval_looks_as_deep_as_its_option_says(toolscout: Run, files: tuple[str, str]) -> None:
    ran = toolscout("eval", *files, "-k", "3", "--ranker", "fuzzy", "--json")
    assert {"ndcg@3", "recall@1", "recall@3", "recall@5"} <= set(ran.json)


def test_bench_measures_each_size(toolscout: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")  # words alone: embedding 500 tools is the benchmark's own business
    ran = toolscout("bench", "--size", "130", "--json")
    assert ran.code == 0
    assert ran.json["index_tools_per_s"] > 0
    assert [row["tools"] for row in ran.json["search"]] == [130]
    assert 0 < ran.json["search"][0]["p50_ms"] <= ran.json["search"][0]["p95_ms"]


def test_doctor_finds_nothing_wrong_with_a_good_installation(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("doctor", "--store", sample_store, "--json")
    assert ran.code == 0
    findings = {item["what"]: item for item in ran.json}
    assert {"python", "settings", "model", "store", "catalogue"} <= set(findings)
    assert all(item["ok"] for item in ran.json)
    assert "128 tools" in findings["catalogue"]["detail"]
    table = toolscout("doctor", "--store", sample_store)
    assert "128 tools" in table.out


def test_doctor_does_not_create_a_missing_store(toolscout: Run, tmp_path: Path) -> None:
    ran = toolscout("doctor", "--store", f"sqlite:///{tmp_path / 'typo' / 'catalogue.db'}", "--json")
    findings = {item["what"]: item for item in ran.json}
    assert ran.code == 0
    assert "not created yet" in findings["store"]["detail"]
    assert "toolscout index" in findings["catalogue"]["fix"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_doctor_and_serve_find_damaged_pages_of_a_store_that_still_opens(
    toolscout: Run, sample_store: str, tmp_path: Path
) -> None:
    path = tmp_path / "catalogue.db"
    with closing(sqlite3.connect(sample_store.removeprefix("sqlite:///"))) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_records_1'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    ran = toolscout("doctor", "--store", f"sqlite:///{path}", "--json")
    store = next(item for item in ran.json if item["what"] == "store")
    assert ran.code == 1
    assert "is damaged" in store["detail"]
    assert "restore the file from a copy" in store["fix"]
    assert "API keys, approvals, switches and sign-ins in it are then lost" in store["fix"]
    with serving(tmp_path) as gateway:
        asyncio.run(until(lambda: f"the catalogue {path} is damaged: " in gateway.log.read_text()))
        assert "API keys" in gateway.log.read_text()


def test_doctor_names_a_store_that_other_accounts_can_read(toolscout: Run, tmp_path: Path) -> None:
    path, folder = tmp_path / "shared" / "catalogue.db", tmp_path / "shared"
    toolscout("index", "--sample", "--store", f"sqlite:///{path}")

    def complaints() -> list[str]:
        found = toolscout("doctor", "--store", f"sqlite:///{path}", "--json").json
        return [item["fix"] for item in found if not item["ok"]]

    assert complaints() == []
    path.chmod(0o644)
    assert complaints() == [], "nobody else gets into its folder"
    folder.chmod(0o755)
    assert complaints() == [f"chmod 600 {path}"]


def test_doctor_says_what_is_wrong_with_a_store_that_does_not_open(
    toolscout: Run, sample_store: str, tmp_path: Path
) -> None:
    path = tmp_path / "catalogue.db"
    with closing(sqlite3.connect(sample_store.removeprefix("sqlite:///"))) as db:
        db.execute("VACUUM INTO ?", (str(path),))
    with path.open("r+b") as file:
        file.write(b"no catalogue")
    store = next(item for item in toolscout("doctor", "--store", f"sqlite:///{path}", "--json").json if not item["ok"])
    assert store["detail"].endswith("is damaged: file is not a database")
    assert "API keys" in store["fix"]


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("TOOLSCOUT_PAGE_SIZE", "many", "settings"),
        ("TOOLSCOUT_POLCY", "policy.toml", "settings"),
        ("TOOLSCOUT_EMBEDDER", "builtin:/nowhere", "model"),
        ("TOOLSCOUT_EMBEDDER", "magic", "model"),
        ("TOOLSCOUT_STORE", "sqlite:////proc/nothing/catalogue.db", "store"),
        ("TOOLSCOUT_STORE", "redis://here", "store"),
    ],
)
def test_doctor_names_what_is_wrong_with_its_fix_and_exits_with_one(
    toolscout: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, what: str
) -> None:
    monkeypatch.setenv(name, value)
    ran = toolscout("doctor", "--json")
    assert ran.code == 1
    (bad,) = (item for item in ran.json if not item["ok"])
    assert bad["what"] == what
    assert bad["fix"]
    table = toolscout("doctor")
    assert table.code == 1
    assert f"bad {what}: " in table.out
    assert "fix: " in table.out


@pytest.mark.process
def test_serve_warns_of_a_variable_that_is_not_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCOUT_POLCY", "policy.toml")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with serving(tmp_path) as gateway:
        log = gateway.log.read_text()
    assert "WARNING TOOLSCOUT_POLCY is not a setting, did you mean TOOLSCOUT_POLICY?" in log


@pytest.mark.process
def test_doctor_index_and_serve_report_an_unreachable_server_with_a_fix(
    toolscout: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    entries = {"inner": {"url": "http://127.0.0.1:9/mcp"}, "absent": {"command": "no-such-command"}}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": entries}))
    remedies = {"inner": '"private": true', "absent": "check the command and the folder in its config"}
    fixes = {item["what"]: item["fix"] for item in toolscout("doctor", "--config", str(config), "--json").json}
    indexed = toolscout("index", "--config", str(config), "--store", "memory:")
    assert indexed.code == 1
    with serving(tmp_path) as gateway:
        asyncio.run(until(lambda: gateway.log.read_text().count(" is down: ") == 2))
        log = gateway.log.read_text()
    for title, remedy in remedies.items():
        assert remedy in fixes[f"server {title}"]
        assert "stderr" not in fixes[f"server {title}"]
        assert remedy.split()[-1] in indexed.out
        assert remedy in next(line for line in log.splitlines() if f"server {title} is down" in line)


def test_doctor_sees_tools_without_vectors(
    toolscout: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: tuple[str, str]
) -> None:
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    toolscout("index", "--tools", files[0], "--store", store)
    more = tmp_path / "more.jsonl"
    more.write_text('{"name": "late"}')
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    toolscout("index", "--tools", str(more), "--store", store)
    ran = toolscout("doctor", "--store", store, "--json")
    assert ran.code == 1
    (bad,) = (item for item in ran.json if not item["ok"])
    assert (bad["what"], "1 tool" in bad["detail"]) == ("vectors", True)
