"""The parameters of the facade as the documents of known systems name them, and answers that tell the truth."""

from __future__ import annotations

import inspect
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from toolscout import InvalidValueError, Scout, read_config
from toolscout.storage.sqlite.store import SqliteStore

ROWS = [
    {"name": "send_mail", "server": "mail", "description": "Send a mail", "tags": ["Mail", "send"]},
    {"name": "read_mail", "server": "mail", "description": "Read a mail", "tags": ["mail"], "category": "letters"},
    {"name": "send_mail", "server": "post", "description": "Send a letter", "tags": ["letter"]},
]


async def test_limit_and_top_k_are_the_same_and_stand_in_their_documented_places() -> None:
    async with Scout.open(tools=ROWS) as scout:
        for answer in (
            await scout.search_tools("send a mail", top_k=1),
            await scout.search_tools("send a mail", limit=1),
            await scout.search_tools("send a mail", None, 1),
            await scout.search_tools("send a mail", ["send"], 1),
        ):
            assert [match.tool.key for match in answer] == ["mail__send_mail"]
        assert len(await scout.discover_tools("send a mail", "ann", 1)) == 1
        assert len(await scout.discover_tools("send a mail", top_k=1)) == 1
        assert len(await scout.get_related_tools("mail__send_mail", 1)) == 1
        assert len(await scout.find_by_tags(["mail", "send"], "all")) == 1
        assert len(await scout.list_tools("full", "letters")) == 1


async def test_every_answer_says_how_long_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that advances with each use of the store, and that the test reads too."""
    clock = [0.0]

    def slow(method: Any) -> Any:
        async def wait(*arguments: Any, **options: Any) -> Any:
            clock[0] += 1.0
            return await method(*arguments, **options)

        return wait

    async with Scout.open(tools=ROWS) as scout:
        await scout.warm()
        for name, method in inspect.getmembers(SqliteStore, inspect.iscoroutinefunction):
            if not name.startswith("_"):
                monkeypatch.setattr(SqliteStore, name, slow(method))
        monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
        for ask in (
            partial(scout.search_tools, "mail"),
            partial(scout.search_tools, "mail", servers=["mail"]),
            scout.list_tools,
            partial(scout.list_tools, server="mail"),
            partial(scout.find_by_tags, ["mail"]),
            partial(scout.get_related_tools, "mail__send_mail"),
            partial(scout.get_related_tools, "read_mail"),
            partial(scout.get_tool_details, "mail__send_mail"),
        ):
            before = clock[0]
            answer = await ask()
            assert answer.metadata.took_ms == (clock[0] - before) * 1_000 > 0, ask
        before = clock[0]
        picked = await scout.discover_tools("send a mail")
        assert picked.search_duration_ms == (clock[0] - before) * 1_000 > 0


async def test_tools_found_by_tags_say_which_tags_they_have() -> None:
    async with Scout.open(tools=ROWS) as scout:
        found = await scout.find_by_tags(["mail", "SEND"])
        tags = {match.tool.key: match.matched_tags for match in found}
        assert tags == {"mail__read_mail": ("mail",), "mail__send_mail": ("Mail", "send")}


async def test_a_related_tool_may_be_named_without_its_server_if_only_one_has_the_name() -> None:
    async with Scout.open(tools=ROWS) as scout:
        bare = [match.tool.key for match in await scout.get_related_tools("read_mail")]
        assert bare == [match.tool.key for match in await scout.get_related_tools("mail__read_mail")] != []
        with pytest.raises(InvalidValueError, match="2 tools are called 'send_mail'") as caught:
            await scout.get_related_tools("send_mail")
        assert set(caught.value.suggestions) == {"mail__send_mail", "post__send_mail"}


async def test_own_categories_can_be_described(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {}, "toolscout": {"categories": {"letters": "Everything on paper."}}}))
    async with Scout.open(tools=ROWS) as scout:
        await scout.index_server_tools("mail", ROWS[:2], trusted=True)
        await scout.connect(read_config(path))
        described = {item.name: item.description for item in await scout.list_categories()}
        assert described["letters"] == "Everything on paper."


@pytest.mark.parametrize(
    "row",
    [
        {"type": "function", "function": {"name": "a_tool", "description": "x", "parameters": {"type": "object"}}},
        {"type": "function", "name": "a_tool", "description": "x", "parameters": {"type": "object"}},
        {"name": "a_tool", "description": "x", "input_schema": {"type": "object"}},
    ],
    ids=["openai-chat", "openai-responses", "anthropic"],
)
@pytest.mark.parametrize("form", ["rows", "lines", "array", "object"])
async def test_the_formats_of_chat_apis_are_read(tmp_path: Path, row: dict[str, object], form: str) -> None:
    file = tmp_path / "tools.json"
    texts = {"lines": json.dumps(row), "array": json.dumps([row], indent=1), "object": json.dumps({"tools": [row]})}
    file.write_text(texts.get(form, ""))
    async with Scout.open(tools=[row] if form == "rows" else file) as scout:
        (match,) = await scout.list_tools("full")
        assert (match.tool.key, match.tool.input_schema) == ("local__a_tool", {"type": "object"})
