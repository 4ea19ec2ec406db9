"""The parameters of the facade as the documents of known systems name them, and answers that tell the truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolscout import InvalidValueError, Scout, read_config

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


async def test_every_answer_says_how_long_it_took() -> None:
    async with Scout.open(tools=ROWS) as scout:
        answers = [
            await scout.search_tools("mail"),
            await scout.list_tools(),
            await scout.find_by_tags(["mail"]),
            await scout.get_related_tools("mail__send_mail"),
            await scout.get_tool_details("mail__send_mail"),
        ]
        assert all(answer.metadata.took_ms > 0 for answer in answers)


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
