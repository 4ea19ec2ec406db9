"""Who sees what: tools of another tenant, of another user or switched off show through no method, count or score."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from guarantees import guarantee
from toolscout import Caller, Scout, ToolNotFoundError, ToolscoutError
from toolscout.errors import to_wire

pytestmark = guarantee("access:absent-equals-forbidden", "tenant:isolation")

LOCAL: list[dict[str, Any]] = [
    {"server": "mail", "name": "send_letter", "description": "Send a letter by post.", "tags": ["post"]},
    {"server": "mail", "name": "read_letter", "description": "Read a letter.", "tags": ["post"]},
    {"server": "shop", "name": "buy_stamps", "description": "Buy stamps for letters.", "category": "commerce"},
]
SECRET = [
    {
        "server": "vault",
        "name": f"secret_letter_{number}",
        "description": "Send a secret letter by post, with stamps.",
        "category": "classified",
        "tags": ["post", "hush"],
        "related": ["mail__send_letter"],
    }
    for number in range(5)
] + [{"server": "mail", "name": "send_letter", "description": "Another letter.", "category": "classified"}]

KEYS = ("mail__send_letter", "mail__read_letter", "shop__buy_stamps", "vault__secret_letter_0", "mail__send_leter")
RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")


async def _or_error(work: Any) -> dict[str, Any]:
    try:
        shown = (await work).timed(0).to_dict()
    except ToolscoutError as error:
        return to_wire(error)
    return shown


async def everything(scout: Scout, caller: Caller) -> list[Any]:
    """Ask every method everything that could tell of a hidden tool."""
    seen: list[Any] = []
    for ranker in RANKERS:
        answers = await scout.search_tools(
            ["send a secret letter", "stamps", "vault__secret_letter_0"],
            ranker=ranker,
            threshold=0,
            explain=True,
            detail="full",
            caller=caller,
        )
        seen.append([answer.timed(0).to_dict() for answer in answers])
        seen.append(await _or_error(scout.search_tools("letter", tags=["post"], ranker=ranker, caller=caller)))
    seen.append(await _or_error(scout.search_tools("letter", category="classified", caller=caller)))
    seen.append(await _or_error(scout.search_tools("letter", servers=["vault"], caller=caller)))
    seen.append(await _or_error(scout.search_tools("  ", caller=caller)))
    seen.append(await _or_error(scout.list_tools(detail="full", caller=caller)))
    seen.append(await _or_error(scout.list_tools(server="vault", caller=caller)))
    seen.append(await _or_error(scout.list_tools(category="classified", caller=caller)))
    seen.append(await _or_error(scout.find_by_tags(["hush", "post"], caller=caller)))
    seen.append([item.to_dict() for item in await scout.list_categories(caller=caller)])
    seen.append([item.to_dict() for item in await scout.list_tags(caller=caller)])
    for key in KEYS:
        seen.append(await _or_error(scout.get_tool_details(key, caller=caller)))
        seen.append(await _or_error(scout.get_related_tools(key, caller=caller)))
    seen.append(await _or_error(scout.get_tool_details(list(KEYS), caller=caller)))
    return seen


async def _give(scout: Scout, owner: str, rows: list[dict[str, Any]]) -> None:
    """Index tools that belong to one user."""
    await scout.index_tools(rows, caller=Caller(user=owner))


@pytest.fixture
async def scout(open_scout: Callable[..., Scout]) -> AsyncIterator[Scout]:
    """Give a scout over the tools that everyone of the local tenant may see."""
    async with open_scout(LOCAL) as opened:
        yield opened


async def test_tools_of_another_tenant_change_no_answer(scout: Scout) -> None:
    before = await everything(scout, Caller())
    await scout.index_tools(SECRET, caller=Caller(tenant="other"))
    assert await everything(scout, Caller()) == before


async def test_the_other_tenant_sees_its_own_tools_and_no_others(scout: Scout) -> None:
    other = Caller(tenant="other")
    await scout.index_tools(SECRET, caller=other)
    shown = str(await everything(scout, other))
    assert "vault__secret_letter_0" in shown
    assert not [row["description"] for row in LOCAL if str(row["description"]) in shown]
    details = await scout.get_tool_details("mail__send_letter", caller=other)
    assert details[0].tool.description == "Another letter."
    assert (await scout.list_tools(caller=other)).metadata.total == len(SECRET)


async def test_a_tenant_that_has_nothing_sees_nothing(scout: Scout) -> None:
    nobody = Caller(tenant="nobody")
    assert (await scout.list_tools(caller=nobody)).metadata.total == 0
    assert len(await scout.search_tools("letter", threshold=0, caller=nobody)) == 0


async def test_tools_of_a_user_change_no_answer_of_anyone_else(scout: Scout) -> None:
    callers = (Caller(), Caller(user="bob"), Caller(tenant="other", user="ann"))
    before = [await everything(scout, caller) for caller in callers]
    await _give(scout, "ann", SECRET[:5])
    assert [await everything(scout, caller) for caller in callers] == before


async def test_a_user_sees_their_own_tools_beside_everyones(scout: Scout) -> None:
    ann = Caller(user="ann")
    await _give(scout, "ann", SECRET[:5])
    keys = {match.tool.key for match in await scout.search_tools("letter", threshold=0, caller=ann)}
    assert {"vault__secret_letter_0", "mail__send_letter"} <= keys
    assert (await scout.list_tools(caller=ann)).metadata.total == 8


async def test_a_disabled_tool_is_seen_nowhere_and_comes_back(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(LOCAL) as alone:
        expected = await everything(alone, Caller())
    async with open_scout([*LOCAL, *SECRET[:5]]) as both:
        full = await everything(both, Caller())
        for number in range(5):
            await both.set_enabled(f"vault__secret_letter_{number}", False)
        assert await everything(both, Caller()) == expected
        for number in range(5):
            await both.set_enabled(f"vault__secret_letter_{number}", True)
        assert await everything(both, Caller()) == full


async def test_absent_and_forbidden_tools_are_told_apart_by_nothing(scout: Scout) -> None:
    await scout.index_tools(SECRET, caller=Caller(tenant="other"))
    wires = []
    for key in ("vault__secret_letter_3", "vault__nothing_of_it_is"):
        with pytest.raises(ToolNotFoundError) as raised:
            await scout.get_tool_details(key)
        wire = to_wire(raised.value)
        wire["error"]["message"] = wire["error"]["message"].replace(key, "KEY")
        wires.append({**wire["error"], "suggestions": []})
    assert wires[0] == wires[1]


async def test_a_tenant_cannot_switch_or_remove_what_it_cannot_see(scout: Scout) -> None:
    other = Caller(tenant="other")
    with pytest.raises(ToolNotFoundError):
        await scout.set_enabled("shop__buy_stamps", False, caller=other)
    assert await scout.remove_server("shop", caller=other) == 0
    assert (await scout.list_tools()).metadata.total == len(LOCAL)
