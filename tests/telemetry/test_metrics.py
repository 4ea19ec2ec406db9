"""What is counted, how it is written, and that neither callers nor servers can make it grow without end."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from mcp import Client

from downstreams import fake, opened, until
from embedders import GatedEmbedder, HashEmbedder
from guarantees import guarantee
from scraping import samples, scrape
from toolscout import Caller, Scout, Settings
from toolscout.config import Config, ServerConfig
from toolscout.downstream.circuit_breaker import CircuitBreaker
from toolscout.errors import CallTimeoutError, EmbedderError, StoreError, UnknownServerError
from toolscout.gateway.diagnostics import Readiness
from toolscout.gateway.live_metrics import LiveMetrics
from toolscout.gateway.server import Gateway
from toolscout.storage.sqlite import SqliteStore
from toolscout.telemetry import Metrics
from toolscout.telemetry.exposition import Counter, Histogram
from toolscout.telemetry.metrics import MAX_SERVERS, error_label, method_label
from toolscout.testing import FakeServer

ROWS = [
    {"server": "weather", "name": "forecast", "description": "The weather forecast of a city"},
    {"server": "bank", "name": "transfer_money", "description": "Transfer money between accounts"},
]


def read(scout: Scout) -> dict[str, float]:
    return samples(scout.metrics.render().decode())


async def live(scout: Scout) -> dict[str, float]:
    gateway = Gateway(scout)
    return samples((await LiveMetrics(gateway, Readiness(scout)).read()).decode())


async def test_searches_are_counted_by_how_well_they_are_answered(open_scout):
    async with open_scout(ROWS) as scout:
        await scout.search_tools("weather forecast")
        await scout.search_tools(["transfer money", "weather forecast"])
        await scout.search_tools("weather", ranker="keyword")
        await scout.search_tools("weather", servers=["bank"], ranker="keyword", threshold=1_000)
        with pytest.raises(UnknownServerError):
            await scout.search_tools("weather", servers=["nobody"])
        found = read(scout)
    assert found["toolscout_search_duration_seconds_count{ranker=hybrid}"] == 2
    assert found["toolscout_search_duration_seconds_count{ranker=keyword}"] == 2
    judged = sum(found.get(f"toolscout_answers_total{{fit={fit}}}", 0) for fit in ("strong", "likely", "weak"))
    assert judged == 3
    assert found["toolscout_answers_total{fit=unrated}"] == 1
    assert found["toolscout_answers_total{fit=empty}"] == 1
    assert found["toolscout_search_errors_total{code=unknown_server}"] == 1
    assert found["toolscout_answer_tokens_total"] > 0
    assert found["toolscout_degraded_answers_total"] == found["toolscout_stale_answers_total"] == 0


async def test_what_agents_need_not_read_is_counted(open_scout):
    rows = [{**ROWS[0], "name": f"tool{number}", "description": f"Do thing {number} " * 20} for number in range(50)]
    async with open_scout(rows) as scout:
        answer = await scout.search_tools("do thing 7", limit=1)
        turn = await scout.discover_tools("do thing 7", limit=1)
        saved = answer.metadata.tokens_saved + turn.tokens_saved
        assert read(scout)["toolscout_tokens_saved_total"] == saved > 1_000


async def test_answers_by_words_alone_are_counted_as_degraded(open_scout):
    embedder = HashEmbedder()
    async with open_scout(ROWS, embedder=embedder) as scout:
        embedder.failure = EmbedderError("down", hint="wait")
        await scout.search_tools("weather forecast")
        assert read(scout)["toolscout_degraded_answers_total"] == 1


async def test_chat_turns_and_their_fallbacks_are_counted(open_scout, monkeypatch):
    async def broken(*_: Any) -> Any:
        raise StoreError("the index is gone")

    async with open_scout(ROWS) as scout:
        await scout.discover_tools("weather forecast")
        monkeypatch.setattr(SqliteStore, "candidates", broken)
        await scout.discover_tools("weather forecast")
        found = read(scout)
    assert found["toolscout_turn_duration_seconds_count"] == 2
    assert found["toolscout_turn_fallbacks_total"] == 1


async def test_query_vectors_from_the_cache_are_counted(open_scout):
    async with open_scout(ROWS, embedder=HashEmbedder()) as scout:
        for _ in range(3):
            await scout.search_tools("forecast")
        found = read(scout)
    hits, misses = (
        found[f"toolscout_cache_lookups_total{{cache=query_vectors,result={name}}}"] for name in ("hit", "miss")
    )
    assert hits == 2 * misses > 0


async def test_calls_are_counted_by_server_and_outcome_as_the_audit_log_has_them(open_scout):
    def answer(call: Any) -> Any:
        if call.name == "late":
            raise CallTimeoutError("too late", hint="wait")
        return {"content": [], "isError": call.name == "bad"}

    rows = [{"name": name, "description": name} for name in ("good", "bad", "late")]
    async with open_scout(servers=[FakeServer("shop", rows, answer=answer)]) as scout:
        for key in ("shop__good", "shop__good", "shop__bad", "shop__late", "shop__nothing", "nobody__x", "x" * 9_000):
            try:
                await scout.call_tool(key, {})
            except Exception as error:  # noqa: BLE001
                assert "AssertionError" not in repr(error)
        found = read(scout)
    calls = {name: value for name, value in found.items() if name.startswith("toolscout_calls_total")}
    assert calls == {
        "toolscout_calls_total{outcome=ok,server=shop}": 2,
        "toolscout_calls_total{outcome=tool_error,server=shop}": 1,
        "toolscout_calls_total{outcome=call_timeout,server=shop}": 1,
        "toolscout_calls_total{outcome=tool_not_found,server=other}": 3,
    }
    assert found["toolscout_call_duration_seconds_count{server=shop}"] == 4


async def test_indexing_is_counted_with_what_it_did(open_scout):
    async with open_scout(ROWS) as scout:
        await scout.index_tools([{**ROWS[0], "description": "Another forecast"}])
        found = read(scout)
    assert found["toolscout_index_duration_seconds_count"] == 2
    assert found["toolscout_indexed_tools_total{change=new}"] == 2
    assert found["toolscout_indexed_tools_total{change=changed}"] == 1


async def test_lists_that_wait_to_be_published_and_since_when_are_shown():
    embedder, server = GatedEmbedder(), FakeServer("shop", [{"name": "buy", "description": "Buy a thing"}])
    scout = Scout.open(servers=[server], settings=Settings(store="memory:"), embedder=embedder)
    opening = asyncio.create_task(scout.__aenter__())
    await until(lambda: bool(embedder.documents))
    found = await live(scout)
    assert found["toolscout_index_waiting"] == 1
    assert found["toolscout_index_lag_seconds"] <= (scout.sync.lag_s if scout.sync else 0)
    embedder.gate.set()
    await opening
    found = await live(scout)
    assert found["toolscout_index_waiting"] == found["toolscout_index_lag_seconds"] == 0
    assert found["toolscout_tools"] == found["toolscout_server_up{server=shop}"] == 1
    await scout.__aexit__()


async def test_servers_are_shown_by_state_and_a_disabled_one_is_not_down(open_scout):
    async with open_scout(store="memory:") as scout:
        off = ServerConfig(title="off", transport="stdio", command="x", enabled=False)
        unusable = ServerConfig(title="unusable", transport="http", problem="the url is missing")
        await scout.connect(Config(servers=(off, unusable)))
        found = await live(scout)
    assert found["toolscout_servers{state=disabled}"] == found["toolscout_servers{state=failed}"] == 1
    assert found["toolscout_server_up{server=unusable}"] == 0
    assert "toolscout_server_up{server=off}" not in found


async def test_a_store_that_is_down_is_shown_and_the_rest_is_still_there(open_scout, monkeypatch):
    async def down(*_: Any) -> Any:
        raise StoreError("gone", hint="wait")

    async with open_scout(ROWS) as scout:
        assert (await live(scout))["toolscout_store_up"] == 1
        monkeypatch.setattr(SqliteStore, "ping", down)
        monkeypatch.setattr(SqliteStore, "overview", down)
        found = await live(scout)
    assert found["toolscout_store_up"] == 0
    assert found["toolscout_tools"] == 2


@pytest.mark.process
async def test_the_open_breakers_of_tenants_are_counted(tmp_path):
    settings = Settings(breaker_failures=1, reindex_interval_s=0.05)
    async with opened(fake(tmp_path, "fake", timeout_s=0.3, shared=True).config, settings=settings) as here:
        for tenant in ("one", "two"):
            with pytest.raises(CallTimeoutError):
                await here.call("fake", "hang", caller=Caller(tenant=tenant))
        assert here.downstream.tripped_breakers() == {("fake", "open"): 2}


def test_a_breaker_is_open_then_half_open_until_its_trial_succeeds():
    now = 0.0
    breaker = CircuitBreaker("x", failures=1, pause_s=30, clock=lambda: now)
    states = [breaker.state]
    breaker.fail()
    states.append(breaker.state)
    now = 31.0
    states.append(breaker.state)
    assert breaker.enter()
    states.append(breaker.state)
    breaker.succeed()
    states.append(breaker.state)
    assert states == ["closed", "open", "half_open", "half_open", "closed"]


@guarantee("secret:nowhere")
def test_no_caller_and_no_server_can_make_more_series():
    metrics = Metrics()
    for number in range(MAX_SERVERS + 1_000):
        metrics.record_call(f"server{number}", "ok", 1.0)
    servers = {name for name in samples(metrics.render().decode()) if name.startswith("toolscout_calls_total")}
    assert len(servers) == MAX_SERVERS + 1
    assert "toolscout_calls_total{outcome=ok,server=other}" in servers
    assert method_label("canary") == error_label("-31999") == error_label("7") == "other"
    assert (method_label("tools/call"), error_label("-32602"), error_label("tool_error"), error_label("")) == (
        "tools/call",
        "-32602",
        "tool_error",
        "",
    )


def test_a_server_adds_few_lines():
    metrics = Metrics()
    counts = []
    for number in range(3):
        metrics.record_call(f"server{number}", "ok", 1.0)
        counts.append(len(metrics.render().splitlines()))
    assert counts[2] - counts[1] == counts[1] - counts[0] <= 16


def test_buckets_add_up_and_values_of_labels_are_escaped():
    who = 'a"b\\c\nd%s'
    seconds = Histogram("x_seconds", "X.", "who", buckets=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        seconds.observe(value, who)
    assert len("".join(seconds.lines()).splitlines()) == 7
    found = samples("".join(seconds.lines()))
    buckets = [found[f"x_seconds_bucket{{le={bound},who={who}}}"] for bound in ("0.1", "1.0", "+Inf")]
    assert buckets == [2, 3, 4]
    assert math.isclose(found[f"x_seconds_sum{{who={who}}}"], 7.65)
    seconds.observe(1.0, who)
    assert samples("".join(seconds.lines()))[f"x_seconds_count{{who={who}}}"] == 5


def test_a_counter_without_labels_is_there_before_the_first_event():
    assert samples("".join(Counter("x_total", "X.").lines())) == {"x_total": 0}
    assert samples("".join(Counter("x_total", "X.", "who").lines())) == {}


async def test_requests_to_the_gateway_have_a_duration_by_method_and_error(open_scout):
    server = FakeServer("demo", [{"name": "bad"}], answer=lambda _call: {"content": [], "isError": True})
    async with open_scout(servers=[server]) as scout:
        gateway = Gateway(scout)
        async with gateway.running(), Client(gateway.server) as client:
            await client.list_tools()
            await client.call_tool("call_tool", {"name": "demo__bad", "arguments": {}})
            found = read(scout)
    name = "mcp_server_operation_duration_seconds_count"
    assert found[f"{name}{{error_type=,mcp_method_name=tools/list}}"] >= 1
    assert found[f"{name}{{error_type=tool_error,mcp_method_name=tools/call}}"] == 1


@pytest.mark.process
async def test_a_running_gateway_shows_what_it_does_on_its_diagnostics_port(traced):
    before = traced.metrics()
    await traced.call("search_tools", {"query": "say back what I say"})
    await traced.call("call_tool", {"name": "fake__echo", "arguments": {"text": "hi"}})
    await traced.call("call_tool", {"name": "fake__error", "arguments": {}})
    found = {name: value - before.get(name, 0) for name, value in traced.metrics().items()}
    assert found["toolscout_search_duration_seconds_count{ranker=hybrid}"] == 1
    assert found["toolscout_calls_total{outcome=ok,server=fake}"] == 1
    assert found["toolscout_calls_total{outcome=call_failed,server=fake}"] == 1
    client = "mcp_client_operation_duration_seconds_count"
    assert found[f"{client}{{error_type=,mcp_method_name=tools/call}}"] == 1
    assert found[f"{client}{{error_type=other,mcp_method_name=tools/call}}"] == 1
    now = traced.metrics()
    assert now["toolscout_server_up{server=fake}"] == now["toolscout_server_up{server=web}"] == 1
    assert now["toolscout_server_up{server=gone}"] == 0
    assert now["toolscout_breakers{server=fake,state=open}"] == 0
    assert now["toolscout_store_up"] == now["toolscout_info{version=0.1.0}"] == 1
    text = scrape(traced.diagnostics)
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert families == [metric.name for metric in Metrics().all()]
