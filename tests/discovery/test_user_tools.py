"""Tools that one user adds: found, shown, counted and called by that user, and by nobody else in any way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from guarantees import guarantee
from scripted import Scripted, text
from toolscout import Caller, InvalidValueError, Scout, ServerUnavailableError, ToolMetadata, ToolNotFoundError

pytestmark = guarantee("access:one-predicate", "tenant:isolation")

SHARED = [
    {"server": "mail", "name": "send_email", "description": "Send an email to someone."},
    {"server": "bank", "name": "transfer_money", "description": "Transfer money to an account."},
]


def diary(said: str) -> Scripted:
    server = Scripted("diary")
    server.tool("read_diary", text(said), description="Read the diary of a day.")
    return server


@pytest.fixture
async def scout(open_scout: Callable[..., Scout]) -> AsyncIterator[Scout]:
    async with open_scout(SHARED) as opened:
        yield opened


async def everything(scout: Scout, caller: Caller) -> list[Any]:
    """Ask every method that answers a caller."""
    found = await scout.discover_tools("read the diary", caller=caller, similarity_threshold=-1)
    seen: list[Any] = [[(item.tool.key, item.similarity) for item in found], found.total_searched, found.tokens_saved]
    for ranker in ("hybrid", "semantic", "keyword", "fuzzy", "boosted"):
        answer = await scout.search_tools("read the diary", ranker=ranker, threshold=0, explain=True, caller=caller)
        seen.append(answer.timed(0).to_dict())
    seen.append((await scout.list_tools(detail="full", caller=caller)).timed(0).to_dict())
    seen.append((await scout.get_related_tools("mail__send_email", caller=caller)).timed(0).to_dict())
    seen += [await scout.list_categories(caller=caller), await scout.list_tags(caller=caller)]
    for ask in (scout.get_tool_details, scout.get_related_tools, scout.call_tool):
        with pytest.raises(ToolNotFoundError) as caught:
            await ask("diary__read_diary", caller=caller)
        seen.append((caught.value.message, caught.value.suggestions))
    return seen


async def test_what_one_user_adds_changes_nothing_for_anyone_else(scout: Scout) -> None:
    others = [Caller(), Caller(user="bob"), Caller(tenant="acme", user="ann")]
    await scout.index_tools(SHARED, caller=Caller(tenant="acme"))
    before = [await everything(scout, caller) for caller in others]
    await scout.index_server_tools("diary", diary("ann's"), user_id="ann")
    assert [await everything(scout, caller) for caller in others] == before


async def test_a_users_own_tool_is_found_opened_and_called_by_that_user(scout: Scout) -> None:
    await scout.index_server_tools("diary", diary("ann's"), user_id="ann")
    await scout.index_server_tools("diary", diary("bob's"), user_id="bob")
    for user in ("ann", "bob"):
        found = await scout.discover_tools("read the diary", user_id=user)
        assert found[0].tool.key == "diary__read_diary"
        assert found.total_searched == 3
        assert (await found.call({"name": "diary__read_diary", "input": {}})).text == f"{user}'s"
    with pytest.raises(ToolNotFoundError):
        await scout.call_tool("diary__read_diary", caller=Caller(user="eve"))


async def test_a_users_own_server_hides_the_shared_one_of_the_same_name(scout: Scout) -> None:
    own = Scripted("mail")
    own.tool("send_email", text("by ann's own server"), description="Send an email in ann's name.")
    await scout.index_server_tools("mail", own, user_id="ann")
    assert (await scout.call_tool("mail__send_email", caller=Caller(user="ann"))).text == "by ann's own server"
    with pytest.raises(ServerUnavailableError):
        await scout.call_tool("mail__send_email", caller=Caller(user="bob"))


async def test_a_server_and_a_user_can_be_removed(scout: Scout) -> None:
    for server in ("diary", "notes"):
        await scout.index_server_tools(server, diary("ann's"), user_id="ann")
    await scout.index_server_tools("diary", [{"name": "read_diary", "description": "Read."}], user_id="bob")
    assert await scout.remove_server("notes", user_id="ann") == 1
    assert await scout.remove_server("diary", user_id="ann") == 1
    assert len(await scout.list_tools(caller=Caller(user="ann"))) == 2
    assert await scout.remove_user("bob") == 1
    assert len(await scout.list_tools(caller=Caller(user="bob"))) == 2


async def test_a_user_without_a_name_is_refused_and_never_taken_for_everyone(scout: Scout) -> None:
    before = [match.tool.key for match in await scout.list_tools()]
    for asked in (
        scout.remove_user(""),
        scout.remove_server("mail", user_id=""),
        scout.index_server_tools("mail", [], user_id=""),
        scout.discover_tools("send an email", user_id=""),
    ):
        with pytest.raises(InvalidValueError, match="empty"):
            await asked
    assert [match.tool.key for match in await scout.list_tools()] == before != []


async def test_a_server_goes_by_its_title_as_by_its_slug(scout: Scout) -> None:
    for server in ("Ann's Diary", "Ann-s-Diary"):
        await scout.index_server_tools("Ann's Diary", diary("ann's"), user_id="ann")
        found = await scout.discover_tools("read the diary", user_id="ann", server_ids=[server])
        assert [item.tool.key for item in found] == ["Ann-s-Diary__read_diary"]
        assert (await scout.index_server_tools(server, user_id="ann")).unchanged == 1
        assert await scout.remove_server(server, user_id="ann") == 1
        with pytest.raises(ServerUnavailableError):
            await scout.index_server_tools(server, user_id="ann")


async def test_refreshing_asks_the_users_servers_again(scout: Scout) -> None:
    server = diary("ann's")
    await scout.index_server_tools("diary", server, user_id="ann")
    server.tool("write_diary", description="Write into the diary.")
    report = await scout.refresh(user_id="bob")
    assert report.new == 0
    report = await scout.refresh(user_id="ann")
    assert (report.new, report.unchanged) == (1, 1)
    assert (await scout.index_server_tools("diary", user_id="ann")).unchanged == 2


async def test_one_server_that_cannot_be_listed_keeps_its_tools_and_is_reported(scout: Scout) -> None:
    first, second = diary("ann's"), Scripted("notes")
    second.tool("take_note", description="Take a note.")
    await scout.index_server_tools("diary", first, user_id="ann")
    await scout.index_server_tools("notes", second, user_id="ann")
    first.state = "failed"
    second.tool("drop_note", description="Drop a note.")
    report = await scout.refresh(user_id="ann")
    assert (report.new, report.removed, [item.where for item in report.dropped]) == (1, 0, ["diary"])
    assert len(await scout.list_tools(caller=Caller(user="ann"))) == 5
    with pytest.raises(ServerUnavailableError):
        await scout.index_server_tools("diary", user_id="ann")
    with pytest.raises(ServerUnavailableError, match="no server nowhere"):
        await scout.index_server_tools("nowhere", user_id="ann")


class Notebook:
    """A provider as an author writes it, half of it asynchronous."""

    def list_tool_metadata(self) -> list[ToolMetadata]:
        return [ToolMetadata(name="take_note", description="Take a note.", keywords=("memo",))]

    async def get_tool(self, name: str) -> dict[str, Any] | None:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return {"name": name, "description": "Take a note.", "inputSchema": schema} if name == "take_note" else None

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if arguments["text"] == "boom":
            raise ValueError("no ink")
        return {"noted": arguments["text"]}


async def test_a_provider_can_be_indexed_and_called(scout: Scout) -> None:
    report = await scout.index_server_tools("notebook", Notebook(), user_id="ann")
    assert report.new == 1
    [match] = await scout.search_tools("memo", ranker="fuzzy", top_k=1, caller=Caller(user="ann"))
    assert (match.tool.keywords, match.tool.input_schema["required"]) == (("memo",), ["text"])
    result = await scout.call_tool("notebook__take_note", {"text": "milk"}, caller=Caller(user="ann"))
    assert result.result["structuredContent"] == {"noted": "milk"}
    assert json.loads(result.text) == {"noted": "milk"}
    failed = await scout.call_tool("notebook__take_note", {"text": "boom"}, caller=Caller(user="ann"))
    assert (failed.is_error, failed.text) == (True, "ValueError: no ink")


async def test_a_provider_that_is_iterable_is_still_a_provider(scout: Scout) -> None:
    class Pages(Notebook, list[str]):
        """A notebook that is also a list of its pages."""

    await scout.index_server_tools("notebook", Pages(["page one"]))
    result = await scout.call_tool("notebook__take_note", {"text": "milk"})
    assert json.loads(result.text) == {"noted": "milk"}


async def test_only_a_trusted_servers_word_counts_for_reading(scout: Scout) -> None:
    rows = [{"name": "peek", "description": "Look.", "annotations": {"readOnlyHint": True}}]
    await scout.index_server_tools("a", rows)
    await scout.index_server_tools("b", rows, trusted=True)
    found = {match.tool.server: match.tool.read_only for match in await scout.get_tool_details(["a__peek", "b__peek"])}
    assert found == {"a": False, "b": True}
