"""What a server sends without end is given up: bodies that call themselves events, and questions during a call."""

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from downstreams import QUICK, bounded_memory, fake, healthy, opened, until
from fake_http import FakeHttp, fake_http
from guarantees import guarantee
from toolscout.config import OAuthConfig, ServerConfig
from toolscout.downstream import in_flight
from toolscout.downstream.http_body import BodyError, BoundedBody, EventBody
from toolscout.downstream.in_flight import Attempt
from toolscout.downstream.pace import Pace
from toolscout.errors import CallError, CallTimeoutError
from toolscout.jsonrpc_lines import MAX_VALUES

pytestmark = pytest.mark.process

SOON_S = 5.0
"""Far less than the ten seconds for which a connection may be silent beyond the time of a call."""

MOST_SENT = 64 << 20
"""More than the buffers of the kernel and one message hold, and far less than the server would send."""


@pytest.fixture
def server():
    with fake_http() as running:
        yield running


def web(server: FakeHttp, **fields: Any) -> ServerConfig:
    fields = {"timeout_s": 10.0, **fields}
    return ServerConfig(title="web", transport="http", url=f"{server.origin}/mcp", private=True, **fields)


@guarantee("fault:body")
async def test_an_endless_error_that_is_called_a_stream_of_events_is_not_read(server, tmp_path):
    async with opened(web(server), fake(tmp_path, "healthy").config) as here, healthy(here):
        with bounded_memory(), pytest.raises(CallError, match="1048576 bytes"):
            await here.call("web", "endless_error")
        assert (await here.call("web", "echo"))["content"]
    assert server.sent_bytes < MOST_SENT


@guarantee("fault:body")
@pytest.mark.parametrize("part", ["metadata", "token"])
async def test_endless_oauth_answers_that_are_called_streams_of_events_are_not_read(server, part):
    server.token, server.endless = "T1", part
    config = web(server, oauth=OAuthConfig(client_id="me", client_secret="secret"))
    with bounded_memory():
        async with opened(config, ready=False) as here:
            await here.state("web", "failed")
    # It connects several times, with and without a session, and reads a bounded part each time.
    assert server.sent_bytes < 4 * MOST_SENT


@guarantee("fault:body")
@pytest.mark.parametrize("resumable", [False, True])
async def test_a_stream_is_closed_when_its_call_is_given_up(server, resumable):
    async with opened(web(server, timeout_s=0.2)) as here:
        with pytest.raises(CallTimeoutError):
            await here.call("web", "endless_comments", {"resumable": resumable})
        assert await asyncio.to_thread(server.ended.wait, SOON_S)
        assert (await here.call("web", "echo"))["content"]
    assert not [headers for _, _, headers, _ in server.seen if "last-event-id" in headers]


@guarantee("fault:body")
async def test_a_stream_is_closed_when_its_call_is_cancelled(server):
    async with opened(web(server)) as here:
        call = asyncio.create_task(here.call("web", "endless_comments"))
        await until(lambda: bool(server.calls("endless_comments")))
        call.cancel()
        assert await asyncio.to_thread(server.ended.wait, SOON_S)
        assert (await here.call("web", "echo"))["content"]


async def read(kind: type[BoundedBody], parts: list[bytes]) -> bytes:
    class Parts(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in parts:
                yield part

    return b"".join([part async for part in kind(Parts(), Attempt(), Pace(), most_s=math.inf)])


@guarantee("fault:body")
@pytest.mark.parametrize(
    "end", [[b"\n", b"\n"], [b"\r", b"\n", b"\r", b"\n"], [b"\n\n"], [b"\n", b"\n: next"], [b"\n\r\n"]]
)
async def test_a_long_stream_of_small_events_is_read_whole_however_it_is_cut(end):
    event = [b"data: [" + b"[]," * (MAX_VALUES // 8) + b"0]", *end]
    assert await read(EventBody, event * 9) == b"".join(event * 9)


@guarantee("fault:body")
@pytest.mark.parametrize("end", [[b"\n"], [b"\r", b"\n"], [b"\r", b"", b"\n"]])
async def test_an_event_of_many_lines_counts_as_one(end):
    with pytest.raises(BodyError, match="values"):
        await read(EventBody, [b"data: [" + b"[]," * (MAX_VALUES // 8) + b"0]", *end] * 9)


class Agent:
    """An agent that answers every question at once, or never."""

    def __init__(self, *, silent: bool = False) -> None:
        self.asked = 0
        self._silent = silent
        self.capabilities: dict[str, Any] = {"elicitation": {}}

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Ignore progress."""

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        """Answer a question, unless it is a silent agent."""
        self.asked += 1
        if self._silent:
            await asyncio.Event().wait()
        return {"action": "decline"}


@guarantee("fault:questions")
async def test_a_call_asks_at_most_16_questions(tmp_path):
    agent = Agent()
    async with opened(fake(tmp_path).config) as here:
        result = await here.call("fake", "ask_many", {"count": 400}, upstream=agent)
    assert agent.asked == in_flight.MAX_QUESTIONS
    assert result["content"][0]["text"] == str(400 - in_flight.MAX_QUESTIONS)


@guarantee("fault:questions")
async def test_overlapping_questions_put_the_ceiling_of_a_call_off_once(tmp_path, monkeypatch):
    monkeypatch.setattr(in_flight, "MAX_PAUSE_S", 0.3)
    async with opened(fake(tmp_path, timeout_s=0.3).config, settings=QUICK) as here:
        started = asyncio.get_running_loop().time()
        with pytest.raises(CallTimeoutError):
            await here.call("fake", "ask_many", {"count": 12}, upstream=Agent(silent=True))
        took_s = asyncio.get_running_loop().time() - started
    assert took_s < 12 * 0.3


@guarantee("fault:questions")
async def test_the_pauses_of_all_questions_together_are_bounded():
    request = in_flight.InFlightRequest()
    now = asyncio.get_running_loop().time
    async with asyncio.timeout(5.0) as deadline:
        request.deadline = deadline
        ceiling = now() + 5.0 + in_flight.MAX_PAUSE_S
        for _ in range(50):
            with request.paused(), request.paused():
                assert (deadline.when() or 0.0) <= ceiling
                await asyncio.sleep(0)
            assert (deadline.when() or 0.0) <= now() + 5.0


@guarantee("fault:huge")
async def test_a_long_error_is_cut(tmp_path):
    async with opened(fake(tmp_path).config) as here:
        with pytest.raises(CallError) as caught:
            await here.call("fake", "long_error")
    assert len(caught.value.message) < 10_000
    assert caught.value.details["data"] == "500,004 bytes of data that are not passed on"
