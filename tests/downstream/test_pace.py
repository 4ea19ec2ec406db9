"""How fast is read what one server sends."""

import asyncio

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from guarantees import guarantee
from toolscout.downstream.in_flight import SendTracker
from toolscout.downstream.pace import Pace

pytestmark = guarantee("fault:flood")


class Time:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def work(pace: Pace, time: Time, step_s: float, until_s: float) -> float:
    """Work in steps, with the pauses that are asked for. Return how long was worked."""
    worked_s = 0.0
    while time.now_s < until_s:
        time.now_s += step_s
        worked_s += step_s
        time.now_s += pace.spend(step_s)
    return worked_s


def test_a_server_that_sends_without_end_takes_a_twentieth_of_the_time():
    time = Time()
    pace = Pace(time)
    work(pace, time, 0.001, until_s=10.0)
    start_s = time.now_s
    assert 0.04 < work(pace, time, 0.001, start_s + 60.0) / 60.0 < 0.06


def test_a_burst_leaves_most_of_each_moment_to_others():
    time = Time()
    assert work(Pace(time), time, 0.001, until_s=0.5) < 0.2


def test_a_long_answer_now_and_then_is_read_at_once():
    time = Time()
    pace = Pace(time)
    for _ in range(10):
        time.now_s += 5.0
        assert pace.spend(0.004) == 0.0


async def test_replies_that_a_server_does_not_read_do_not_pile_up():
    class Blocked:
        sent = 0

        async def send(self, _item: SessionMessage) -> None:
            self.sent += 1
            await anyio.sleep_forever()

    inner = Blocked()
    stream = SendTracker(inner)
    reply = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
    replies = [asyncio.create_task(stream.send(reply)) for _ in range(1_000)]
    await asyncio.wait(replies, return_when=asyncio.FIRST_COMPLETED)
    request = asyncio.create_task(stream.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=2, method="ping"))))
    waiting = [task for task in replies if not task.done()]
    assert len(waiting) == 64
    while inner.sent < 65:  # noqa: ASYNC110 - the request is written all the same
        await asyncio.sleep(0)
    for task in (*waiting, request):
        task.cancel()
    await asyncio.wait([*waiting, request])
