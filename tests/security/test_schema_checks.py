"""Arguments are checked by strangers' schemas within the time of the call, and nobody waits for another's check."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, Settings
from toolscout.arguments import validate_arguments
from toolscout.config import Config, ServerConfig
from toolscout.errors import CallError, CallTimeoutError, CheckUnavailableError, InvalidArgumentsError
from toolscout.execution.argument_check import CHECK_S, check_arguments
from toolscout.models import Caller, Tool
from toolscout.ports import WorkStoppedError
from toolscout.schema_cost import cost_of
from toolscout.worker import WorkerPool

pytestmark = [pytest.mark.process, guarantee("fault:schema")]

HOSTILE = str(Path(__file__).parent.parent / "hostile_server.py")
SLOW = {"a": "a" * 64 + "b"}
TIMEOUT_S = 3.0
NO_WAIT_S = CHECK_S
"""Less than one slow check takes. It is time to stop one, to start a process, and for a busy machine."""


@pytest.fixture
def make_tool():
    def make(schema: dict[str, Any]) -> Tool:
        fingerprint = sha256(repr(schema).encode()).hexdigest()
        return Tool(
            key="a__b", id="a__b", server="a", server_title="a", name="b", input_schema=schema, fingerprint=fingerprint
        )

    return make


@pytest.fixture
async def scout() -> AsyncIterator[Scout]:
    server = ServerConfig(
        title="hostile", transport="stdio", command=sys.executable, args=(HOSTILE, "schemas"), timeout_s=TIMEOUT_S
    )
    settings = Settings(store="memory:", connect_timeout_s=20.0)
    async with Scout.open(Config(servers=(server,)), settings=settings, embedder=HashEmbedder()) as opened:
        yield opened


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    opened = WorkerPool()
    yield opened
    await opened.close()


async def took_s(work: Awaitable[Any]) -> float:
    """Return how long work takes, whether or not it succeeds."""
    started = asyncio.get_running_loop().time()
    with suppress(CallError, WorkStoppedError):
        await work
    return asyncio.get_running_loop().time() - started


@pytest.mark.timing
async def test_calls_that_wait_for_slow_checks_end_at_their_deadline_and_a_good_one_does_not_wait(scout: Scout):
    slow = [asyncio.create_task(took_s(scout.call_tool("hostile__pattern", SLOW))) for _ in range(12)]
    await scout.call_tool("hostile__plain", {"a": 1})
    async with asyncio.timeout(NO_WAIT_S):
        assert (await scout.call_tool("hostile__pattern", {"a": "aaa"})).result["content"]
    assert max(await asyncio.gather(*slow)) < TIMEOUT_S + 0.5


@pytest.mark.timing
async def test_the_check_and_the_answer_of_a_server_have_one_deadline(scout: Scout):
    slow = asyncio.create_task(took_s(scout.call_tool("hostile__pattern", SLOW)))
    await scout.call_tool("hostile__plain", {"a": 1})
    assert await took_s(scout.call_tool("hostile__silent", {})) < TIMEOUT_S + 0.3
    await slow


async def test_a_call_whose_check_is_not_done_at_its_deadline_is_not_sent(pool: WorkerPool, make_tool):
    tool = make_tool({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}})
    with pytest.raises(CallTimeoutError, match=r"not checked within 0\.1 s; nothing was sent"):
        await check_arguments(tool, SLOW, pool, caller=Caller(), within_s=0.1)


@pytest.mark.timing
@pytest.mark.parametrize(
    "bad", [[Caller()], [Caller(tenant="bad", user=str(number)) for number in range(8)]], ids=["one", "a tenant"]
)
async def test_bad_arguments_of_others_delay_nobody(pool: WorkerPool, make_tool, bad: list[Caller]):
    tool = make_tool({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}})
    slow = [
        asyncio.create_task(took_s(check_arguments(tool, SLOW, pool, caller=caller, within_s=TIMEOUT_S)))
        for caller in bad * (24 // len(bad))
    ]
    await asyncio.sleep(0)
    good = Caller(tenant="good")
    for _ in range(3):
        async with asyncio.timeout(NO_WAIT_S):
            await check_arguments(tool, {"a": "aaa"}, pool, caller=good, within_s=TIMEOUT_S)
    await asyncio.gather(*slow)


@pytest.mark.timing
async def test_the_definitions_of_servers_never_take_all_processes_from_calls(pool: WorkerPool, make_tool):
    import re

    tool = make_tool({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}})
    slow = [
        asyncio.create_task(
            took_s(pool.run(re.search, "(a+)+$", SLOW["a"], owner=("definitions", str(n)), timeout_s=TIMEOUT_S))
        )
        for n in range(8)
    ]
    await asyncio.sleep(0)
    async with asyncio.timeout(NO_WAIT_S):
        await check_arguments(tool, {"a": "aaa"}, pool, caller=Caller(), within_s=TIMEOUT_S)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_without_a_process_slow_schemas_are_refused_and_cheap_ones_are_checked(scout: Scout, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(CheckUnavailableError, match="no process can be started") as caught:
        await scout.call_tool("hostile__pattern", {"a": "aaa"})
    assert "nothing was sent" in caught.value.hint
    assert (await scout.call_tool("hostile__plain", {"a": 1})).result["content"]
    with pytest.raises(InvalidArgumentsError, match="must be integer"):
        await scout.call_tool("hostile__plain", {"a": "x"})


@pytest.mark.parametrize(
    ("pattern", "cheap"),
    [
        ("^[a-z0-9-]+$", True),
        (r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$", True),
        ("^(yes|no)$", True),
        ("(a+)+$", False),
        ("^(a|a)*$", False),
        ("^(.*)(.*)(.*)(.*)x$", False),
        ("a?" * 30 + "a" * 30, False),
        (r"^(?=.*\d).+$", False),
        (r"^(.+)\1$", False),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", False),
    ],
)
def test_only_patterns_that_cannot_backtrack_for_long_are_checked_in_place(pattern, cheap):
    cost = cost_of({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
    assert cost.allows({"a": "x" * 100}) is cheap


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
        {"$ref": "https://example.com/schema"},
        {"unevaluatedProperties": False},
        {"anyOf": [{"type": "object"}] * 1_000},
        {"properties": {"a": {"pattern": "x" * 1_000}}},
        {"required": [f"n{number}" for number in range(20_000)]},
        {"dependentRequired": {"a": [f"n{number}" for number in range(20_000)]}},
        {"required": [*range(500), *map(str, range(500))]},
        {"type": ["object"] * 20_000},
        {"properties": {"a": {"enum": [{"b": number} for number in range(10_000)]}}},
        {"$defs": {f"d{number}": {"type": "string"} for number in range(8_000)}},
        {"$defs": {"never": {"pattern": "x" * 1_000}}},
        {"$defs": {"never": {"patternProperties": {"x" * 1_000: {}}}}},
        {"default": [[]] * 10_000},
    ],
    ids=lambda schema: next(iter(schema)),
)
def test_a_schema_of_unknown_cost_is_never_checked_in_place(schema):
    assert not cost_of({"type": "object", **schema}).allows({})


@pytest.mark.parametrize(
    ("schema", "few", "many"),
    [
        (
            {"properties": {"a": {"items": {"enum": [f"n{number}" for number in range(1_000)]}}}},
            {"a": ["x"]},
            {"a": ["x"] * 200},
        ),
        (
            {"properties": {"a": {"items": {"required": [f"n{number}" for number in range(100)]}}}},
            {"a": [{}]},
            {"a": [{}] * 100},
        ),
        (
            {"dependentRequired": {"a": [f"n{number}" for number in range(100)]}},
            {"a": 1},
            {"a": [{"a": 1}] * 100},
        ),
    ],
    ids=["enum", "required", "dependentRequired"],
)
def test_what_many_values_are_compared_with_is_not_checked_in_place(schema, few, many):
    cost = cost_of({"type": "object", **schema})
    assert cost.allows(few)
    assert not cost.allows(many)


@pytest.mark.timing
def test_the_names_that_are_missing_are_described_once_and_quickly(make_tool):
    tool = make_tool({"type": "object", "required": [f"n{number}" for number in range(20_000)]})
    started = time.perf_counter()
    with pytest.raises(InvalidArgumentsError, match=r"'n0', 'n1', .* and 19980 more is missing$") as caught:
        validate_arguments(tool, {})
    assert time.perf_counter() - started < NO_WAIT_S
    assert len(caught.value.message) < 1_000


@pytest.mark.parametrize(
    ("step", "value"),
    [(1e-300, 10**400), (0.5, float("inf")), (0.5, -(10**400))],
    ids=["small step", "infinite", "huge"],
)
def test_a_number_that_the_check_cannot_compute_is_left_to_the_server(make_tool, step, value):
    tool = make_tool({"type": "object", "properties": {"a": {"multipleOf": step}}})
    assert validate_arguments(tool, {"a": value}) == ({"a": value}, ())


async def test_what_is_checked_apart_has_the_same_result_as_in_place(pool: WorkerPool, make_tool):
    tool = make_tool({"type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False})
    for arguments in ({"a": 1}, {"a": "1"}, '{"a": 1}', {"arguments": {"a": 1}}):
        apart = await check_arguments(tool, arguments, pool, caller=Caller(), within_s=20.0)
        assert apart == validate_arguments(tool, arguments)
    wrongs: tuple[Any, ...] = ({"a": "x"}, {"b": 1}, [], "x")
    for wrong in wrongs:
        with pytest.raises(InvalidArgumentsError) as here:
            validate_arguments(tool, wrong)
        with pytest.raises(InvalidArgumentsError) as there:
            await check_arguments(tool, wrong, pool, caller=Caller(), within_s=20.0)
        assert (there.value.message, there.value.details) == (here.value.message, here.value.details)
