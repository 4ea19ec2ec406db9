"""Two tenants with the same names share one store, and neither sees anything of the other."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Caller, Scout, ToolNotFoundError, UnknownCategoryError, UnknownTagError

pytestmark = guarantee("tenant:isolation")

TENANTS = {"red": Caller(tenant="red", user="ann"), "blue": Caller(tenant="blue", user="ann")}


def rows(tenant: str, turn: int) -> list[dict[str, Any]]:
    """Write the same names for both tenants, and in every text the tenant's own mark."""
    names = ["send_mail", "delete_file", f"only_{tenant}", f"turn_{turn}"]
    return [
        {
            "name": name,
            "server": "shared name",
            "description": f"{tenant}mark {name.replace('_', ' ')} in turn {turn}",
            "category": f"{tenant}mark category",
            "tags": [f"{tenant}mark", "common"],
            "related": ["send_mail", "only_red", "only_blue"],
            "input_schema": {"type": "object", "properties": {f"{tenant}mark": {"type": "string"}}},
        }
        for name in names
    ]


@pytest.fixture(params=["memory", "sqlite"])
async def scout(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scout]:
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'catalogue.db'}"
    async with Scout.open(store=url, embedder=HashEmbedder()) as opened:
        for turn in range(3):
            for tenant, caller in TENANTS.items():
                await opened.index_tools(rows(tenant, turn), caller=caller)
        yield opened


async def everything(scout: Scout, caller: Caller, other: str) -> str:
    """Send every kind of request, also about tools of the other tenant, and return all answers."""
    answers: list[Any] = []
    for ranker in ("hybrid", "semantic", "keyword", "fuzzy", "boosted"):
        for query in ("send mail", f"only {other}", f"{other}mark", "delete file in turn 2"):
            answer = await scout.search_tools(
                query, ranker=ranker, detail="full", explain="mark" not in query, threshold=0, caller=caller
            )
            answers.append((answer.matches, answer.timed(0).metadata))
            with pytest.raises(UnknownTagError) as untagged:
                await scout.search_tools(query, ranker=ranker, tags=[f"{other}mark"], caller=caller)
            answers.append((untagged.value.suggestions, untagged.value.hint))
    listed = await scout.list_tools(detail="full", caller=caller)
    answers += [
        (listed.matches, listed.metadata, listed.pagination),
        await scout.list_categories(caller=caller),
        await scout.list_tags(caller=caller),
        (await scout.find_by_tags(["common"], caller=caller)).matches,
        (await scout.get_tool_details([match.tool.key for match in listed], caller=caller)).matches,
        *[(await scout.get_related_tools(match.tool.key, limit=50, caller=caller)).matches for match in listed],
    ]
    for asked in (
        scout.get_tool_details(f"shared-name__only_{other}", caller=caller),
        scout.get_related_tools(f"shared-name__only_{other}", caller=caller),
    ):
        with pytest.raises(ToolNotFoundError) as absent:
            await asked
        answers.append(absent.value.suggestions)
    with pytest.raises(UnknownCategoryError) as unknown:
        await scout.search_tools("mail", category=f"{other}mark category", caller=caller)
    answers.append((unknown.value.suggestions, unknown.value.categories))
    return re.sub(r"took_ms=[\d.]+", "took_ms=0", repr(answers))


@pytest.mark.parametrize(("tenant", "other"), [("red", "blue"), ("blue", "red")])
async def test_no_answer_of_one_tenant_holds_anything_of_the_other(scout: Scout, tenant: str, other: str) -> None:
    answers = await everything(scout, TENANTS[tenant], other)
    assert f"{tenant}mark" in answers
    assert f"{other}mark" not in answers
    assert f"tenant='{other}'" not in answers


async def test_counts_are_of_the_tenant_alone(scout: Scout) -> None:
    for caller in TENANTS.values():
        assert (await scout.search_tools("mail", caller=caller)).metadata.total == 4
        assert [item.count for item in await scout.list_categories(caller=caller)] == [4]
    assert (await scout.search_tools("mail", ranker="keyword")).metadata.total == 0


async def test_what_one_tenant_does_leaves_the_other_as_it_was(scout: Scout) -> None:
    red, blue = TENANTS["red"], TENANTS["blue"]
    before = await everything(scout, blue, "red")
    await scout.set_enabled("shared-name__send_mail", False, caller=red)
    await scout.index_tools([{"name": "new", "server": "shared name"}], caller=red)
    await scout.index_tools([{"name": "new", "server": "another"}], caller=red)
    assert await scout.remove_server("shared-name", caller=red) == 1
    assert await everything(scout, blue, "red") == before
    assert [match.tool.key for match in await scout.list_tools(caller=red)] == ["another__new"]


async def test_a_tenant_cannot_switch_or_remove_what_only_the_other_has(scout: Scout) -> None:
    with pytest.raises(ToolNotFoundError):
        await scout.set_enabled("shared-name__only_blue", False, caller=TENANTS["red"])
    assert await scout.remove_server("no-such-server", caller=TENANTS["red"]) == 0
    assert len(await scout.list_tools(caller=TENANTS["blue"])) == 4
