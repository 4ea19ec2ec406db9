"""Tenants of one server: calls of one tenant that hang or fail neither delay nor fail those of another."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from downstreams import QUICK, fake, opened, until
from fake_http import fake_http
from guarantees import guarantee
from toolscout import Caller
from toolscout.config import ServerConfig
from toolscout.errors import CallTimeoutError, ServerUnavailableError

pytestmark = [pytest.mark.process, guarantee("fault:tenants")]

ACME, ZETA = Caller(tenant="acme"), Caller(tenant="zeta")


@asynccontextmanager
async def hanging(calls):
    """Run calls that never end, and cancel them afterwards."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("shared", [False, True])
async def test_a_tenant_that_fills_its_slots_leaves_those_of_another_free(tmp_path, shared):
    server = fake(tmp_path, concurrency=2, shared=shared)
    async with opened(server.config) as here, hanging(here.call("fake", "hang", caller=ACME) for _ in range(8)):
        await until(lambda: len(server.calls("hang")) == 2)
        for caller in (ZETA, Caller()):
            assert (await here.call("fake", "echo", caller=caller))["content"]
        assert len(server.calls("hang")) == 2


@pytest.mark.parametrize("shared", [False, True])
async def test_the_circuit_breaker_of_a_tenant_stops_no_call_of_another(tmp_path, shared):
    server = fake(tmp_path, shared=shared, timeout_s=0.3)
    async with opened(server.config, settings=replace(QUICK, breaker_failures=2)) as here:
        await here.call("fake", "echo", caller=ZETA)
        for _ in range(2):
            with pytest.raises(CallTimeoutError):
                await here.call("fake", "hang", caller=ACME)
        with pytest.raises(ServerUnavailableError, match="2 times in a row"):
            await here.call("fake", "echo", caller=ACME)
        for caller in (ZETA, Caller()):
            assert (await here.call("fake", "echo", caller=caller))["content"]


async def test_crashes_that_one_tenant_causes_stop_no_call_of_another(tmp_path):
    server = fake(tmp_path)
    async with opened(server.config, settings=replace(QUICK, breaker_failures=2)) as here:
        for _ in range(2):
            with pytest.raises(ServerUnavailableError, match="went away"):
                await here.call("fake", "crash_before", caller=ACME)
        with pytest.raises(ServerUnavailableError, match="2 times in a row"):
            await here.call("fake", "crash_before", caller=ACME)
        assert (await here.call("fake", "echo", caller=ZETA))["content"]


async def test_many_tenants_that_hang_leave_a_connection_to_a_shared_url():
    with fake_http() as server:
        config = ServerConfig(
            title="web",
            transport="http",
            url=f"{server.origin}/mcp",
            private=True,
            shared=True,
            concurrency=1,
            timeout_s=10.0,
        )
        callers = [Caller(tenant=f"t{number}") for number in range(20)]
        async with (
            opened(config) as here,
            hanging(here.call("web", "hang", caller=caller) for caller in callers),
        ):
            assert (await here.call("web", "echo", caller=ZETA))["content"]
            await until(lambda: len(server.calls("hang")) == len(callers))
