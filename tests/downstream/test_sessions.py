"""Sessions pass results, progress and questions on unchanged, in both protocol eras, and keep tenants apart."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from downstreams import ANYONE, alive, fake, gone, opened, until
from guarantees import guarantee
from servers import free_port, listening, stdio
from toolscout.config import ServerConfig
from toolscout.downstream import sessions
from toolscout.downstream.server import DownstreamServer
from toolscout.errors import CallError
from toolscout.models import Caller

pytestmark = pytest.mark.process

MODERN = str(Path(__file__).parent.parent / "modern_server.py")


class Agent:
    """An agent that records progress reports and questions, and answers questions."""

    def __init__(self, answer=None):
        self.capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
        self.answer = answer
        self.reports = []
        self.questions = []

    async def progress(self, progress, total, message):
        self.reports.append((progress, total, message))

    async def ask(self, method, params):
        self.questions.append((method, params))
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


def text_of(result):
    return result["content"][0]["text"]


async def test_a_modern_server_is_used_with_the_stateless_protocol(modern):
    async with opened(modern) as here:
        server = here.downstream.servers["modern"]
        assert server.status.protocol == "2026-07-28"
        assert {"echo", "who"} <= {tool["name"] for tool in await server.list_tools()}
        assert isinstance(server, DownstreamServer)
        assert server.ttl_s == 60.0
        result = await here.call("modern", "echo", {"text": "hi"})
        assert result["structuredContent"] == {"text": "hi"}
        assert result["_meta"]["k"] == "v"
        agent = Agent()
        assert text_of(await here.call("modern", "progress", upstream=agent)) == "done"
        assert agent.reports[0] == (0.0, 3.0, "step 0")
        with pytest.raises(CallError, match="no tool nonsense") as caught:
            await here.call("modern", "nonsense")
        assert caught.value.details == {"code": -32602, "data": {"name": "nonsense"}}


async def test_input_required_is_returned_raw_and_the_answer_is_passed_on(modern):
    async with opened(modern) as here:
        agent = Agent()
        first = await here.call("modern", "ask", upstream=agent)
        assert first["resultType"] == "input_required"
        extra = {
            "inputResponses": {"q": {"action": "accept", "content": {"name": "Ada"}}},
            "requestState": first["requestState"],
        }
        assert text_of(await here.call("modern", "ask", upstream=agent, extra=extra)) == "{'name': 'Ada'} state-1"
        assert agent.questions == []


async def test_each_call_declares_the_agents_capabilities_and_not_its_envelope(modern):
    async with opened(modern) as here:
        await here.downstream.servers["modern"].list_tools()
        foreign = {"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01", "own": 1}}
        request = json.loads(
            text_of(await here.call("modern", "who", {"region": "eu"}, upstream=Agent(), extra=foreign))
        )
        assert request["capabilities"] == {"elicitation": {"form": {}}}
        assert request["version"] == "2026-07-28"
        if modern.transport == "http":
            assert request["headers"]["mcp-param-region"] == "eu"
        assert json.loads(text_of(await here.call("modern", "who", {"region": "eu"})))["capabilities"] in (None, {})


async def test_a_change_of_a_modern_servers_tool_list_is_reported(modern):
    async with opened(modern) as here:
        await here.changed("modern", 1)
        before = len(await here.downstream.servers["modern"].list_tools())
        await here.call("modern", "change")
        await here.changed("modern", 2)
        assert len(await here.downstream.servers["modern"].list_tools()) == before + 1


async def test_a_result_arrives_exactly_as_the_server_sent_it(tmp_path):
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
        assert sorted(agent.reports) == [(0.0, None, None), (1.0, None, None), (2.0, None, None)]


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
async def test_a_question_reaches_the_agent_if_its_call_is_the_only_one(tmp_path, method):
    async with opened(fake(tmp_path).config) as here:
        agent = Agent({"action": "accept", "vendor": None})
        question = {"method": method, "params": {"message": "who?", "vendor": 1}}
        assert json.loads(text_of(await here.call("fake", "ask", question, upstream=agent))) == agent.answer
        assert agent.questions == [(method, {"message": "who?", "vendor": 1})]


@guarantee("secret:nowhere")
async def test_a_secret_that_a_server_quotes_is_hidden_in_questions_and_progress(tmp_path):
    agent = Agent({"action": "decline"})
    async with opened(fake(tmp_path, env={"API_TOKEN": "canary-12345"}).config) as here:
        for method in ("elicitation/create", "sampling/createMessage"):
            question = {"method": method, "params": {"message": "is canary-12345 yours?"}}
            await here.call("fake", "ask", question, upstream=agent)
        await here.call("fake", "progress", {"message": "using canary-12345"}, upstream=agent)
    assert [params for _, params in agent.questions] == [{"message": "is *** yours?"}] * 2
    assert {message for _, _, message in agent.reports} == {"using ***"}


async def test_the_deadline_is_paused_while_the_agent_answers_a_question(tmp_path):
    class Slow(Agent):
        async def ask(self, method, params):
            await asyncio.sleep(0.6)
            return {"action": "accept"}

    async with opened(fake(tmp_path, timeout_s=0.4).config) as here:
        assert "accept" in text_of(await here.call("fake", "ask", {"method": "elicitation/create"}, upstream=Slow()))


async def test_a_question_is_refused_clearly_if_it_cannot_be_passed_on(tmp_path):
    question = {"method": "elicitation/create"}
    server = fake(tmp_path)
    async with opened(server.config) as here:
        refusal = json.loads(text_of(await here.call("fake", "ask", question, upstream=Agent())))
        assert refusal["message"] == "this agent answers nothing"
        assert "exactly one" in text_of(await here.call("fake", "ask", question))
        unknown = json.loads(text_of(await here.call("fake", "ask", {"method": "vendor/thing"}, upstream=Agent({}))))
        assert unknown["code"] == -32601
        assert json.loads(text_of(await here.call("fake", "ask", {"method": "ping"}))) is None

        other, asker = Agent({}), Agent({})
        beside = asyncio.create_task(here.call("fake", "hang", upstream=other))
        await server.until("tools/call", 5)
        assert "exactly one" in text_of(await here.call("fake", "ask", question, upstream=asker))
        assert other.questions == asker.questions == []
        beside.cancel()


async def test_listing_tools_during_a_call_does_not_block_the_servers_question(tmp_path):
    async with opened(fake(tmp_path).config) as here:
        agent = Agent({"action": "accept"})
        server = here.downstream.servers["fake"]
        asking = (here.call("fake", "ask", {"method": "elicitation/create"}, upstream=agent) for _ in range(1))
        *_, result = await asyncio.gather(server.list_tools(), server.list_tools(), *asking)
        assert "accept" in text_of(result)


async def test_the_official_everything_server_can_ask_the_agent(everything_server):
    async with opened(everything_server) as here:
        answer = {"model": "m", "role": "assistant", "content": {"type": "text", "text": "forty-two"}}
        agent = Agent(answer)
        result = await here.call("everything", "trigger-sampling-request", {"prompt": "x"}, upstream=agent)
        assert "forty-two" in text_of(result)
        assert agent.questions[0][0] == "sampling/createMessage"


async def test_an_older_http_server_asks_through_the_open_response(everything_http):
    async with opened(everything_http) as here:
        agent = Agent({"action": "decline"})
        result = await here.call("everything-http", "trigger-elicitation-request", upstream=agent)
        assert agent.questions[0][0] == "elicitation/create"
        assert result["content"]


async def test_each_tenant_has_its_own_session_unless_the_config_shares_one(tmp_path):
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


async def test_the_least_recently_used_session_is_closed_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 2)
    server = fake(tmp_path)
    async with opened(server.config) as here:
        for tenant in ("a", "b", "a", "c", "a"):
            await here.call("fake", "echo", caller=Caller(tenant=tenant))
        assert len(server.starts) == 4
        busy = [asyncio.create_task(here.call("fake", "hang", caller=Caller(tenant=tenant))) for tenant in ("a", "c")]
        await server.until("tools/call", 7)
        live, waiting = here.downstream.servers["fake"], Caller(tenant="d")
        assert isinstance(live, DownstreamServer)
        with pytest.raises(CallError, match="nothing was sent"):
            await live.call_tool_within("echo", {}, within_s=0.2, caller=waiting)
        call = asyncio.create_task(here.call("fake", "echo", caller=waiting))
        await asyncio.wait([call], timeout=0.3)
        assert not call.done()
        busy[0].cancel()
        assert (await call)["content"]
        busy[1].cancel()
    assert gone(*server.starts)


async def test_an_idle_session_of_a_tenant_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "IDLE_S", 0.2)
    server = fake(tmp_path)
    async with opened(server.config) as here:
        await here.call("fake", "echo", caller=Caller(tenant="a"))
        await until(lambda: len(server.starts) == 2 and not alive(server.starts[-1]))
        await here.call("fake", "echo", caller=Caller(tenant="a"))
        assert len(server.starts) == 3
