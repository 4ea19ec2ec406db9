"""With a server behind a URL, a failed request fails one call only, and bodies are bounded."""

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from downstreams import QUICK, bounded_memory, fake, healthy, opened
from fake_http import fake_http
from guarantees import guarantee
from servers import free_port, listening
from toolscout.config import ServerConfig
from toolscout.downstream.http_client import DownstreamHttpClient
from toolscout.errors import CallError, CallTimeoutError, ServerUnavailableError


def web(server, **fields):
    fields = {"timeout_s": 10.0, **fields}
    return ServerConfig(title="web", transport="http", url=f"{server.origin}/mcp", private=True, **fields)


@pytest.fixture
def server():
    with fake_http() as running:
        yield running


@pytest.mark.process
@guarantee("fault:crash")
@pytest.mark.parametrize("tool", ["drop", "half", "half_events"])
async def test_a_broken_answer_fails_its_call_alone_and_the_call_is_not_repeated(server, tmp_path, tool):
    async with opened(web(server), fake(tmp_path, "healthy").config) as here, healthy(here):
        beside = asyncio.create_task(here.call("web", "echo", {"text": "beside"}))
        with pytest.raises(CallError):
            await here.call("web", tool)
        assert (await beside)["content"][0]["text"] == "beside"
        assert (await here.call("web", "echo"))["content"][0]["text"] == "ok"
    assert len(server.calls(tool)) == 1


@guarantee("fault:garbage")
async def test_answers_that_are_not_json_or_are_compressed_fail_their_call_alone(server):
    async with opened(web(server)) as here:
        for tool in ("nonsense", "compressed"):
            with pytest.raises(CallError):
                await here.call("web", tool)
        assert (await here.call("web", "echo"))["content"]


@pytest.mark.process
@guarantee("fault:huge")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_body_of_100_mb_is_not_read(server, tmp_path, kind):
    async with opened(web(server), fake(tmp_path, "healthy").config) as here, healthy(here):
        with bounded_memory(), pytest.raises(CallError):
            await here.call("web", "huge", {"bytes": 100 << 20, "kind": kind})
        assert (await here.call("web", "echo"))["content"]
    assert len(server.calls("huge")) == 1


@guarantee("fault:hang")
async def test_at_the_deadline_a_call_over_http_ends_and_its_slot_is_freed(server):
    async with opened(web(server, timeout_s=0.4, concurrency=1)) as here:
        with pytest.raises(CallTimeoutError, match="sent once"):
            await here.call("web", "hang", {"seconds": 2})
        assert (await here.call("web", "echo"))["content"]
    cancelled = [body for _, _, _, body in server.seen if body and body.get("method") == "notifications/cancelled"]
    assert len(cancelled) == 1


@guarantee("fault:hang")
@pytest.mark.parametrize(("timeout_s", "setting_s"), [(None, 120.0), (120.0, 5.0)])
async def test_a_server_may_be_silent_for_as_long_as_a_call_may_take(timeout_s, setting_s):
    limits = []

    def answer(request):
        limits.append(request.extensions["timeout"]["read"])
        return httpx2.Response(200, json={})

    config = ServerConfig(title="web", transport="http", url="http://web.test/mcp", timeout_s=timeout_s)
    settings = replace(QUICK, call_timeout_s=setting_s)
    async with DownstreamHttpClient(config, settings, transport=httpx2.MockTransport(answer)) as client:
        await client.post(config.url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
        await client.post(config.url, json={"jsonrpc": "2.0", "method": "notifications/cancelled"})
    call_s, notification_s = limits
    assert 120.0 < call_s < 150.0
    assert notification_s < 5.0


@guarantee("fault:breaker")
async def test_errors_of_a_proxy_in_front_count_as_failures_of_the_server(server):
    async with opened(web(server), settings=replace(QUICK, breaker_failures=3)) as here:
        for _ in range(3):
            with pytest.raises(ServerUnavailableError, match="503"):
                await here.call("web", "status", {"status": 503})
        with pytest.raises(ServerUnavailableError, match="in a row"):
            await here.call("web", "echo")
    assert len(server.calls("status")) == 3


@guarantee("fault:crash")
async def test_a_server_that_has_lost_the_session_gets_a_new_one_and_no_call_twice(server):
    async with opened(web(server)) as here:
        await here.call("web", "forget")
        with pytest.raises(ServerUnavailableError, match="forgotten"):
            await here.call("web", "echo", {"text": "lost"})
        assert (await here.call("web", "echo", {"text": "found"}))["content"][0]["text"] == "found"
    assert len(server.calls("echo")) == 2


@guarantee("fault:start")
async def test_a_server_that_is_not_running_is_reported_as_unreachable(server):
    config = web(server)
    server.shutdown()
    server.server_close()
    async with opened(config, ready=False) as here:
        assert "cannot connect to it" in (await here.state("web", "failed")).status.detail


@pytest.mark.process
@guarantee("fault:crash")
async def test_a_server_that_went_away_is_detected_by_the_first_call_and_reconnected(tmp_path):
    command = [sys.executable, str(Path(__file__).parent.parent / "modern_server.py"), "--http"]
    port = free_port()
    config = ServerConfig(title="web", transport="http", url=f"http://127.0.0.1:{port}/mcp", private=True)
    with listening(*command, str(port), port=port):
        stack = AsyncExitStack()
        here = await stack.enter_async_context(opened(config))
        await here.call("web", "echo", {"text": "there"})
        await here.changed("web", 1)
    async with stack:
        with pytest.raises(ServerUnavailableError):
            await here.call("web", "echo")
        await here.state("web", "failed")
        with pytest.raises(ServerUnavailableError, match="nothing was sent"):
            await here.call("web", "echo")
        with listening(*command, str(port), port=port):
            await here.state("web", "ready")
            assert (await here.call("web", "echo", {"text": "back"}))["content"][0]["text"] == "back"


@guarantee("auth:no-passthrough")
async def test_only_the_credentials_of_the_config_are_sent(server, tmp_path):
    server.token = "own-token"
    config = web(server, headers={"Authorization": "Bearer own-token", "X-Own": "1"})
    async with opened(config) as here:
        extra = {"_meta": {"authorization": "Bearer callers"}}
        await here.call("web", "echo", extra=extra)
    for _, path, headers, _ in server.seen:
        if path == "/mcp":
            assert headers["authorization"] == "Bearer own-token"
            assert "callers" not in str(headers)


@pytest.mark.process
@guarantee("fault:breaker")
@pytest.mark.parametrize("kind", ["stdio", "json", "events"])
async def test_an_error_with_the_code_of_a_lost_connection_is_the_servers_own(server, tmp_path, kind):
    config = fake(tmp_path, "web").config if kind == "stdio" else web(server)
    async with opened(config, settings=replace(QUICK, breaker_failures=3)) as here:
        for _ in range(4):
            with pytest.raises(CallError, match=r"^busy$") as caught:
                await here.call("web", "error_32000", {"text": "busy", "events": kind == "events"})
            assert not isinstance(caught.value, ServerUnavailableError)
            assert caught.value.details == {"code": -32000}
        assert (await here.call("web", "echo"))["content"]


@guarantee("fault:crash")
async def test_a_broken_event_stream_leaves_the_outcome_unknown(server):
    async with opened(web(server)) as here:
        with pytest.raises(ServerUnavailableError, match="its outcome is not known") as caught:
            await here.call("web", "half_events")
        assert caught.value.details == {"outcome": "unknown"}
