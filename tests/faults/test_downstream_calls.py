"""A server that fails during a call fails that call with a clear error. Other calls go on, nothing is sent twice."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from downstreams import ANYONE, QUICK, alive, bounded_memory, fake, gone, healthy, opened
from guarantees import guarantee
from toolscout.errors import CallError, CallTimeoutError, ServerUnavailableError

pytestmark = pytest.mark.process

CALL_S = 0.4


@pytest.fixture
def pair(tmp_path):
    """Give a server that will fail and one that will not."""
    return fake(tmp_path), fake(tmp_path, "healthy")


@guarantee("fault:crash")
@pytest.mark.parametrize("tool", ["crash_before", "crash_during"])
async def test_a_crash_before_the_reply_is_a_typed_error_and_the_server_is_restarted(pair, tool):
    broken, well = pair
    async with opened(broken.config, well.config) as here, healthy(here):
        with bounded_memory(), pytest.raises(ServerUnavailableError, match="sent once") as caught:
            await here.call("fake", tool)
        assert "outcome is not known" in caught.value.message
        # The next call waits for the restart and is the first that the new process receives.
        assert (await here.call("fake", "echo", {"text": "back"}))["content"][0]["text"] == "back"
        assert len(broken.starts) == 2
    assert len(broken.calls(tool)) == 1
    assert gone(*broken.starts, *well.starts)


@guarantee("fault:crash")
async def test_a_crash_after_the_reply_loses_nothing(pair):
    broken, well = pair
    async with opened(broken.config, well.config) as here, healthy(here):
        assert (await here.call("fake", "crash_after"))["content"][0]["text"] == "ok"
        await broken.started(2)
        assert (await here.call("fake", "echo"))["content"][0]["text"] == "ok"
    assert len(broken.calls("crash_after")) == 1
    assert gone(*broken.starts)


@guarantee("fault:crash")
async def test_a_crash_fails_every_running_call_and_each_is_sent_once(pair):
    broken, well = pair
    async with opened(broken.config, well.config) as here, healthy(here):
        waiting = [asyncio.create_task(here.call("fake", "hang")) for _ in range(5)]
        await broken.until("tools/call", 5)
        with pytest.raises(ServerUnavailableError):
            await here.call("fake", "crash_before")
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(failure) for failure in failures] == [ServerUnavailableError] * 5
        await here.call("fake", "echo")
    assert len(broken.calls("hang")) == 5


@guarantee("fault:hang", "fault:drip")
@pytest.mark.parametrize("tool", ["hang", "drip"])
async def test_at_the_deadline_the_call_is_cancelled_at_the_server_and_its_slot_is_freed(tmp_path, tool):
    broken = fake(tmp_path, timeout_s=CALL_S, concurrency=2)
    well = fake(tmp_path, "healthy")
    async with opened(broken.config, well.config) as here, healthy(here):
        failures = await asyncio.gather(*(here.call("fake", tool) for _ in range(2)), return_exceptions=True)
        assert [type(failure) for failure in failures] == [CallTimeoutError] * 2
        assert all("sent once" in str(failure) for failure in failures)
        cancelled = await broken.until("notifications/cancelled", 2)
        assert {item["params"]["requestId"] for item in cancelled} == {item["id"] for item in broken.calls(tool)}
        if tool == "hang":
            # Both slots are free: two more calls run side by side.
            assert len(await asyncio.gather(here.call("fake", "echo"), here.call("fake", "echo"))) == 2
    assert len(broken.calls(tool)) == 2
    assert gone(*broken.starts)


@guarantee("fault:hang")
async def test_a_call_that_waits_for_a_slot_until_its_deadline_is_not_sent(tmp_path):
    class Thinking:
        """An agent that answers on request. The call that asks it has no deadline until then."""

        def __init__(self):
            self.capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
            self.question, self.decision = asyncio.Event(), asyncio.Event()

        async def ask(self, method, params):
            self.question.set()
            await self.decision.wait()
            return {"action": "accept"}

    broken, agent = fake(tmp_path, timeout_s=CALL_S, concurrency=1), Thinking()
    async with opened(broken.config) as here:
        first = asyncio.create_task(here.call("fake", "ask", {"method": "elicitation/create"}, upstream=agent))
        await agent.question.wait()
        with pytest.raises(CallTimeoutError, match="nothing was sent"):
            await here.call("fake", "echo")
        agent.decision.set()
        assert "accept" in (await first)["content"][0]["text"]
    assert broken.calls("echo") == []


@guarantee("fault:hang")
@pytest.mark.parametrize(
    ("timeout_s", "setting_s", "effective_s"), [(None, 0.3, 0.3), (0.3, 30.0, 0.3), (30.0, 0.3, None)]
)
async def test_the_timeout_of_the_config_is_used_and_without_one_that_of_the_settings(
    tmp_path, timeout_s, setting_s, effective_s
):
    server = fake(tmp_path, timeout_s=timeout_s)
    async with opened(server.config, settings=replace(QUICK, call_timeout_s=setting_s)) as here:
        call = here.call("fake", "later", {"seconds": 0.6})
        if effective_s is None:
            assert (await call)["content"][0]["text"] == "ok"
        else:
            with pytest.raises(CallTimeoutError, match=f"within {effective_s} s"):
                await call


@guarantee("fault:hang")
async def test_a_caller_that_disconnects_cancels_the_call_and_frees_its_slot(tmp_path):
    broken = fake(tmp_path, concurrency=1)
    async with opened(broken.config) as here:
        leaving = asyncio.create_task(here.call("fake", "hang"))
        await broken.until("tools/call")
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await broken.until("notifications/cancelled")
        await here.call("fake", "echo")


@guarantee("fault:hang")
async def test_a_server_that_stops_reading_is_ended_when_its_health_check_fails(tmp_path):
    broken = fake(tmp_path, timeout_s=CALL_S)
    well = fake(tmp_path, "healthy")
    settings = replace(QUICK, breaker_failures=3, breaker_pause_s=0.01)
    async with opened(broken.config, well.config, settings=settings) as here, healthy(here):
        for tool in ("deaf", "echo", "echo"):
            with pytest.raises(CallTimeoutError):
                await here.call("fake", tool, {"text": "x" * 200_000})
        await broken.started(2)
        await here.state("fake", "ready")
        assert (await here.call("fake", "echo"))["content"][0]["text"] == "ok"
    assert len(broken.calls("deaf")) == 1
    assert gone(*broken.starts)


@guarantee("fault:garbage")
async def test_garbage_and_half_lines_are_skipped_and_the_answer_arrives(pair):
    broken, well = pair
    async with opened(broken.config, well.config) as here, healthy(here):
        with bounded_memory():
            assert (await here.call("fake", "garbage"))["content"][0]["text"] == "after"
        assert (await here.call("fake", "echo"))["content"][0]["text"] == "ok"
        assert len(broken.starts) == 1


@guarantee("fault:huge")
@pytest.mark.parametrize("id_last", [False, True], ids=["id-first", "id-last"])
async def test_an_answer_of_100_mb_fails_that_call_alone_with_a_clear_error(pair, id_last):
    broken, well = pair
    settings = replace(QUICK, max_line_bytes=4 << 20)
    async with opened(broken.config, well.config, settings=settings) as here, healthy(here):
        beside = asyncio.create_task(here.call("fake", "later", {"seconds": 0.2}))
        with bounded_memory(), pytest.raises(CallError, match="bytes; more than 4194304 are not read"):
            await here.call("fake", "huge", {"bytes": 100 << 20, "id_last": id_last})
        assert (await beside)["content"][0]["text"] == "ok"
        assert len(broken.starts) == 1
    assert len(broken.calls("huge")) == 1


@guarantee("fault:huge")
async def test_a_result_of_1_gb_is_bounded(tmp_path):
    broken, well = fake(tmp_path, timeout_s=30.0), fake(tmp_path, "healthy")
    settings = replace(QUICK, max_line_bytes=16 << 20)
    async with opened(broken.config, well.config, settings=settings) as here, healthy(here):
        with bounded_memory(64), pytest.raises(CallError, match="are not read"):
            await here.call("fake", "huge", {"bytes": 1 << 30})
        assert (await here.call("fake", "echo"))["content"][0]["text"] == "ok"
    assert gone(*broken.starts)


@guarantee("fault:huge")
async def test_an_endless_line_ends_the_servers_process_and_harms_nobody_else(pair):
    broken, well = pair
    async with opened(broken.config, well.config) as here, healthy(here):
        with bounded_memory(), pytest.raises(ServerUnavailableError):
            await here.call("fake", "endless")
        assert (await here.call("fake", "echo"))["content"][0]["text"] == "ok"
        assert len(broken.starts) == 2
    assert not any(alive(pid) for pid in broken.starts)


@guarantee("fault:crash")
async def test_arguments_that_are_not_json_are_refused_before_they_are_sent(tmp_path):
    whole = fake(tmp_path)
    async with opened(whole.config) as here:
        with pytest.raises(CallError, match="nothing was sent"):
            await here.call("fake", "echo", {"text": "\ud800"})
        assert (await here.call("fake", "echo"))["content"][0]["text"] == "ok"
    assert len(whole.calls("echo")) == 1


@guarantee("fault:crash")
async def test_other_requests_fail_with_the_same_errors(tmp_path):
    whole = fake(tmp_path)
    async with opened(whole.config) as here:
        with pytest.raises(CallError, match="Method not found") as caught:
            await here.downstream.servers["fake"].request("resources/list", caller=ANYONE)
    assert caught.value.details["code"] == -32601
