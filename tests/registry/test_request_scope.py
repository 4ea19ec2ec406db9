"""Request-scoped providers add tools to one request, with precedence, and to no other request."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

from tool_providers import Api, Failing, Folder, raises
from toolscout import InvalidValueError, Settings, ToolNotFoundError, request_providers
from toolscout.registry.search_engine import SearchEngine, SharedTools


def names(answer):
    return [match.tool.name for match in answer]


def text(result):
    return result.content[0].text


async def test_the_tools_of_a_request_are_found_and_called_in_it_and_nowhere_else(registry):
    ann = Folder({"ann_notes": "Notes of Ann"}, name="ann")
    with request_providers(ann):
        assert names(await registry.search("ann_notes", ranker="fuzzy"))[0] == "ann_notes"
        assert names(await registry.search("send_email", ranker="fuzzy"))[0] == "send_email"
        assert text(await registry.call_tool("ann_notes", {"city": "Ulm"})) == "ann: ann_notes in Ulm"
    assert "ann_notes" not in names(await registry.search("ann_notes", ranker="fuzzy"))
    assert await registry.get_tool("ann_notes") is None
    with pytest.raises(ToolNotFoundError) as raised:
        await registry.call_tool("ann_notes", {"city": "Ulm"})
    assert raised.value.suggestions == ()
    assert "ann_notes" not in [item.name for item in await registry.list_tool_metadata()]


async def test_the_block_may_be_asynchronous(registry):
    async with request_providers(Api(Folder({"ann_notes": "Notes"}))):
        assert text(await registry.call_tool("ann_notes", {"city": "Ulm"})) == "folder: ann_notes in Ulm"
    assert await registry.get_tool("ann_notes") is None


async def test_a_request_wins_over_everybody_in_the_order_given(registry):
    everybody = Folder({"shared": "Everybody's"}, name="everybody")
    registry.add_provider(everybody)
    first = Folder({"shared": "First", "sql_query": "First's own"}, name="first")
    second = Folder({"shared": "Second", "second": "Second"}, name="second")
    for _ in range(3):
        with request_providers(first, second):
            assert text(await registry.call_tool("shared", {"city": "Ulm"})) == "first: shared in Ulm"
            assert text(await registry.call_tool("sql_query", {"city": "Ulm"})) == "first: sql_query in Ulm"
            assert text(await registry.call_tool("second", {"city": "Ulm"})) == "second: second in Ulm"
            answer = {
                match.tool.name: match.tool.description for match in await registry.search("shared query", limit=50)
            }
            assert (answer["shared"], answer["sql_query"]) == ("First", "First's own")
        with request_providers(second, first):
            assert text(await registry.call_tool("shared", {"city": "Ulm"})) == "second: shared in Ulm"
    assert text(await registry.call_tool("shared", {"city": "Ulm"})) == "everybody: shared in Ulm"
    assert registry.problems == []


async def test_a_block_within_another_adds_to_it_and_wins(registry):
    tenant = Folder({"shared": "Of the tenant", "tenant_only": "Of the tenant"}, name="tenant")
    user = Folder({"shared": "Of the user"}, name="user")
    with request_providers(tenant):
        with request_providers(user):
            assert text(await registry.call_tool("shared", {"city": "Ulm"})) == "user: shared in Ulm"
            assert text(await registry.call_tool("tenant_only", {"city": "Ulm"})) == "tenant: tenant_only in Ulm"
        assert text(await registry.call_tool("shared", {"city": "Ulm"})) == "tenant: shared in Ulm"


async def test_a_block_is_entered_once_and_takes_only_providers(registry):
    block = request_providers(Folder({}))
    with block, pytest.raises(InvalidValueError, match="already entered"), block:
        pass
    with pytest.raises(InvalidValueError, match="is not a provider"):
        request_providers(cast("Any", "ann"))


@pytest.mark.fuzz
async def test_two_hundred_requests_at_once_see_each_its_own(registry):
    together = asyncio.Barrier(200)

    async def request(number: int) -> None:
        own = Folder({f"notes_{number}": f"Notes of user {number}", "mine": f"Of {number}"}, name=f"user {number}")
        with request_providers(own):
            await together.wait()
            answer = await registry.search("notes mine", ranker="fuzzy", limit=200)
            assert sorted(names(answer)) == sorted([f"notes_{number}", "mine"])
            assert text(await registry.call_tool("mine", {"city": "Ulm"})) == f"user {number}: mine in Ulm"
            with pytest.raises(ToolNotFoundError):
                await registry.call_tool(f"notes_{(number + 1) % 200}", {"city": "Ulm"})

    await asyncio.gather(*(request(number) for number in range(200)))
    assert names(await registry.search("notes mine", ranker="fuzzy")) == []
    assert registry.problems == []


async def test_of_two_hundred_requests_at_once_one_has_tools_and_the_others_do_not_see_them(registry):
    together = asyncio.Barrier(200)

    async def request(number: int) -> list[str]:
        await together.wait()
        if number == 77:
            with request_providers(Folder({"secret_tool": "Only for one"})):
                return names(await registry.search("secret_tool", ranker="fuzzy"))
        return names(await registry.search("secret_tool", ranker="fuzzy"))

    answer = await asyncio.gather(*(request(number) for number in range(200)))
    assert [number for number, hits in enumerate(answer) if "secret_tool" in hits] == [77]


async def test_tasks_and_threads_of_the_request_have_its_tools_and_others_do_not(registry):
    with request_providers(Folder({"ann_notes": "Notes"})):
        inside = asyncio.create_task(registry.get_tool("ann_notes"))
        in_thread = asyncio.to_thread(lambda: asyncio.run(registry.get_tool("ann_notes")))
        assert await inside is not None
        assert await in_thread is not None
        seen = []
        thread = threading.Thread(target=lambda: seen.append(asyncio.run(registry.get_tool("ann_notes"))))
        thread.start()
        await asyncio.to_thread(thread.join)
        assert seen == [None]


async def test_handlers_and_providers_run_in_the_context_of_the_request(registry):
    seen = []

    class Looks(Folder):
        def call_tool(self, name, arguments):
            seen.append(asyncio.run(registry.get_tool("ann_notes")) is not None)
            return "ok"

    registry.add_provider(Looks({"looks": "Look"}))

    @registry.tool
    async def looks_too() -> str:
        seen.append(await registry.get_tool("ann_notes") is not None)
        return "ok"

    with request_providers(Folder({"ann_notes": "Notes"})):
        await registry.call_tool("looks", {"city": "Ulm"})
        await registry.call_tool("looks_too")
    await registry.call_tool("looks_too")
    assert seen == [True, True, False]


async def test_a_provider_of_a_request_that_fails_costs_only_its_own_tools(registry):
    with request_providers(Failing({}, stage="list", answer=raises), Folder({"ann_notes": "Notes"})):
        assert names(await registry.search("ann_notes", ranker="fuzzy"))[0] == "ann_notes"
        assert text(await registry.call_tool("sql_query", {"query": "x"})) == "executed: x"
    assert [problem.provider for problem in registry.problems] == ["failing"]


async def test_a_registry_as_the_provider_of_a_request_shows_its_own_tools_once(registry, make_registry):
    tenant = make_registry(name="tenant")
    tenant.register_tool({"name": "tenant_tool", "description": "Of the tenant"}, lambda: "tenant's")
    with request_providers(tenant):
        assert names(await registry.search("tenant_tool", ranker="fuzzy"))[0] == "tenant_tool"
        assert text(await registry.call_tool("tenant_tool")) == "tenant's"
        assert text(await tenant.call_tool("tenant_tool")) == "tenant's"
    with request_providers(registry):
        assert text(await registry.call_tool("sql_query", {"query": "x"})) == "executed: x"
    assert await registry.get_tool("tenant_tool") is None


async def test_the_next_request_of_the_same_user_embeds_nothing(registry, embedder):
    for round_ in range(2):
        before = embedder.documents
        with request_providers(Folder({"ann_diary": "What Ann did on a day"})):
            await registry.search("diary")
        assert embedder.documents - before == (4 if round_ == 0 else 0)


async def test_the_tools_of_requests_long_ago_are_removed_from_the_index(embedder):
    engine = SearchEngine(Settings(), embedder, max_requests=3)

    async def search(number: int) -> str:
        rows = [{"name": f"notes_{number}", "description": f"Notes {number}"}]
        answer, _ = await engine.search(
            f"notes_{number}",
            latest=lambda: SharedTools(revision=0, rows=[]),
            revision=0,
            request_rows=rows,
            limit=1,
            ranker="fuzzy",
        )
        return answer[0].tool.name

    assert [await search(number) for number in range(8)] == [f"notes_{number}" for number in range(8)]
    assert len(await engine.indexed_requests()) == 3
    assert await search(0) == "notes_0"
    engine.close()
