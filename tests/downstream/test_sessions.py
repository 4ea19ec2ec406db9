"""What passes between an agent and a server, untouched: results, progress, questions, in both eras."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from downstreams import ANYONE, alive, fake, gone, opened, until
from servers import free_port, listening, stdio
from toolscout.config import ServerConfig
from toolscout.downstream import sessions
from toolscout.errors import CallError
from toolscout.models import Caller

MODERN = str(Path(__file__).parent.parent / "modern_server.py")


class Agent:
    """An agent that remembers what it was told and answers what it is asked."""

    def __init__(self, answer=None):
        self.capabilities = {"elicitation": {"form": {}}}
        self.answer = answer
        self.told = []
        self.asked = []

    async def progress(self, progress, total, message):
        self.told.append((progress, total, message))

    async def ask(self, method, params):
        self.asked.append((method, params))
        if self.answer is None:
            raise CallError("this agent answers nothing")
        return self.answer


@pytest.fixture(scope="module")
def modern_stdio():
    return stdio("modern", sys.executable, MODERN)


@pytest.fixture(scope="module")
def modern_http():
    port = free_port()
    with listening(sys.executable, MODERN, "--http", str(port), port=port):
        yield ServerConfig(title="modern", transport="http", url=f"http://127.0.0.1:{port}/mcp", private=True)


@pytest.fixture(params=["modern_stdio", "modern_http"])
def modern(request):
    return request.getfixturevalue(request.param)


def said(result):
    return result["content"][0]["text"]


async def test_a_modern_server_is_spoken_to_in_its_own_way(modern):
    async with opened(modern) as here:
        server = here.downstream.servers["modern"]
        assert server.status.protocol == "2026-07-28"
        assert {"echo", "who"} <= {tool["name"] for tool in await server.list_tools()}
        assert server.ttl_s == 60.0
        result = await here.call("modern", "echo", {"text": "hi"})
        assert result["structuredContent"] == {"text": "hi"}
        assert result["_meta"]["k"] == "v"
        agent = Agent()
        assert said(await here.call("modern", "progress", upstream=agent)) == "done"
        assert agent.told[0] == (0.0, 3.0, "step 0")
        with pytest.raises(CallError, match="no tool nonsense") as caught:
            await here.call("modern", "nonsense")
        assert caught.value.details == {"code": -32602, "data": {"name": "nonsense"}}


async def test_input_required_comes_back_raw_and_its_answer_is_sent_on(modern):
    async with opened(modern) as here:
        agent = Agent()
        first = await here.call("modern", "ask", upstream=agent)
        assert first["resultType"] == "input_required"
        extra = {
            "inputResponses": {"q": {"action": "accept", "content": {"name": "Ada"}}},
            "requestState": first["requestState"],
        }
        assert said(await here.call("modern", "ask", upstream=agent, extra=extra)) == "{'name': 'Ada'} state-1"
        assert agent.asked == []


async def test_the_agents_abilities_are_declared_per_call_and_its_envelope_is_not_handed_on(modern):
    async with opened(modern) as here:
        await here.downstream.servers["modern"].list_tools()
        foreign = {"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01", "own": 1}}
        heard = json.loads(said(await here.call("modern", "who", {"region": "eu"}, upstream=Agent(), extra=foreign)))
        assert heard["capabilities"] == {"elicitation": {"form": {}}}
        assert heard["version"] == "2026-07-28"
        if modern.transport == "http":
            assert heard["headers"]["mcp-param-region"] == "eu"
        assert json.loads(said(await here.call("modern", "who", {"region": "eu"})))["capabilities"] in (None, {})


async def test_a_modern_servers_change_of_its_list_is_noticed(modern):
    async with opened(modern) as here:
        await here.changed("modern", 1)
        before = len(await here.downstream.servers["modern"].list_tools())
        await here.call("modern", "change")
        await here.changed("modern", 2)
        assert len(await here.downstream.servers["modern"].list_tools()) == before + 1


async def test_a_result_arrives_exactly_as_it_was_sent(tmp_path):
    async with opened(fake(tmp_path).config) as here:
        assert await here.call("fake", "vendor") == {
            "content": [{"type": "future", "z": None}],
            "vendor": {"a": None},
            "_meta": {"m": 1},
            "structuredContent": {"n": None},
        }
        assert (await here.call("fake", "is_error"))["isError"] is True
        with pytest.raises(CallError, match="no such thing") as caught:
            await here.call("fake", "error")
        assert caught.value.details == {"code": -32050, "data": {"why": "because"}}


async def test_progress_of_an_older_server_reaches_the_agent(tmp_path):
    async with opened(fake(tmp_path).config) as here:
        agent = Agent()
        await here.call("fake", "progress", upstream=agent)
        assert sorted(agent.told) == [(0.0, None, None), (1.0, None, None), (2.0, None, None)]


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
async def test_a_question_reaches_the_agent_whose_call_is_the_only_one(tmp_path, method):
    async with opened(fake(tmp_path).config) as here:
        agent = Agent({"action": "accept", "vendor": None})
        question = {"method": method, "params": {"message": "who?", "vendor": 1}}
        assert json.loads(said(await here.call("fake", "ask", question, upstream=agent))) == agent.answer
        assert agent.asked == [(method, {"message": "who?", "vendor": 1})]


async def test_the_deadline_rests_while_the_agent_thinks(tmp_path):
    class Slow(Agent):
        async def ask(self, method, params):
            await asyncio.sleep(0.6)
            return {"action": "accept"}

    async with opened(fake(tmp_path, timeout_s=0.4).config) as here:
        assert "accept" in said(await here.call("fake", "ask", {"method": "elicitation/create"}, upstream=Slow()))


async def test_a_question_is_refused_in_words_where_nobody_can_be_asked(tmp_path):
    question = {"method": "elicitation/create"}
    server = fake(tmp_path)
    async with opened(server.config) as here:
        refused = json.loads(said(await here.call("fake", "ask", question, upstream=Agent())))
        assert refused["message"] == "this agent answers nothing"
        assert "exactly one" in said(await here.call("fake", "ask", question))
        unknown = json.loads(said(await here.call("fake", "ask", {"method": "vendor/thing"}, upstream=Agent({}))))
        assert unknown["code"] == -32601
        assert json.loads(said(await here.call("fake", "ask", {"method": "ping"}))) is None

        other, asker = Agent({}), Agent({})
        beside = asyncio.create_task(here.call("fake", "hang", upstream=other))
        await server.until("tools/call", 5)
        assert "exactly one" in said(await here.call("fake", "ask", question, upstream=asker))
        assert other.asked == asker.asked == []
        beside.cancel()


async def test_a_listing_beside_a_call_does_not_stand_in_the_way_of_its_question(tmp_path):
    async with opened(fake(tmp_path).config) as here:
        agent = Agent({"action": "accept"})
        server = here.downstream.servers["fake"]
        asking = (here.call("fake", "ask", {"method": "elicitation/create"}, upstream=agent) for _ in range(1))
        *_, result = await asyncio.gather(server.list_tools(), server.list_tools(), *asking)
        assert "accept" in said(result)


async def test_the_real_thing_asks_too(everything_server):
    async with opened(everything_server) as here:
        answer = {"model": "m", "role": "assistant", "content": {"type": "text", "text": "forty-two"}}
        agent = Agent(answer)
        result = await here.call("everything", "trigger-sampling-request", {"prompt": "x"}, upstream=agent)
        assert "forty-two" in said(result)
        assert agent.asked[0][0] == "sampling/createMessage"


async def test_an_older_http_server_asks_through_its_open_answer(everything_http):
    async with opened(everything_http) as here:
        agent = Agent({"action": "decline"})
        result = await here.call("everything-http", "trigger-elicitation-request", upstream=agent)
        assert agent.asked[0][0] == "elicitation/create"
        assert result["content"]


async def test_tenants_have_sessions_of_their_own_unless_they_may_share(tmp_path):
    apart, shared = fake(tmp_path, "apart"), fake(tmp_path, "shared", shared=True)
    async with opened(apart.config, shared.config) as here:
        for caller in (ANYONE, Caller(tenant="a"), Caller(tenant="b"), Caller(tenant="a")):
            await here.call("apart", "echo", caller=caller)
            await here.call("shared", "echo", caller=caller)
        assert len(apart.starts) == 3
        assert len(shared.starts) == 1
        with pytest.raises(CallError):
            await here.call("apart", "crash_before", caller=Caller(tenant="a"))
        await here.call("apart", "echo", caller=Caller(tenant="a"))
        assert len(apart.starts) == 4
        assert here.downstream.servers["apart"].status.state == "ready"


async def test_the_session_that_was_not_used_for_longest_makes_room(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "MOST", 2)
    server = fake(tmp_path)
    async with opened(server.config) as here:
        for tenant in ("a", "b", "a", "c", "a"):
            await here.call("fake", "echo", caller=Caller(tenant=tenant))
        assert len(server.starts) == 4
        busy = [asyncio.create_task(here.call("fake", "hang", caller=Caller(tenant=tenant))) for tenant in ("a", "c")]
        await server.until("tools/call", 7)
        with pytest.raises(CallError, match="nothing was sent"):
            await here.call("fake", "echo", caller=Caller(tenant="d"))
        for task in busy:
            task.cancel()
    assert gone(*server.starts)


async def test_a_tenants_session_is_closed_when_nobody_uses_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions.SessionPool.__init__, "__kwdefaults__", {"idle_s": 0.2})
    server = fake(tmp_path)
    async with opened(server.config) as here:
        await here.call("fake", "echo", caller=Caller(tenant="a"))
        await until(lambda: len(server.starts) == 2 and not alive(server.starts[-1]))
        await here.call("fake", "echo", caller=Caller(tenant="a"))
        assert len(server.starts) == 3
