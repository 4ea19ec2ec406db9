"""The parameters of the facade as the documents of known systems name them, and answers that tell the truth."""

from __future__ import annotations

import inspect
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from toolscout import InputFileError, InvalidValueError, Scout, Settings, ToolMetadata, ToolRegistry, read_config
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


async def test_the_names_that_documents_of_other_systems_use_are_accepted() -> None:
    def scout_with(name: str, **options: Any) -> Any:
        return getattr(scout, name)(*options.pop("given", ()), **options)

    async with Scout.open(tools=ROWS) as scout:
        assert len(await scout_with("search_tools", given=("mail",), max_results=1, detail_level="full")) == 1
        assert len(await scout_with("discover_tools", given=("send a mail",), max_results=1)) == 1
        assert (await scout_with("list_tools", detail_level="full")).metadata.detail == "full"
        assert len(await scout_with("find_by_tags", given=(["mail", "send"],), match_mode="all")) == 1
        assert len(await scout_with("get_related_tools", tool_name="mail__send_mail", max_results=1)) == 1
        assert len(await scout_with("get_tool_details", tool_names=["mail__send_mail"])) == 1
        with pytest.raises(TypeError, match="max_result'"):
            await scout_with("search_tools", given=("mail",), max_result=1)
    assert list(inspect.signature(Scout.search_tools).parameters)[:4] == ["self", "query", "tags", "top_k"]


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


async def test_a_registry_counts_the_time_of_its_providers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    class Slow:
        async def list_tool_metadata(self) -> list[ToolMetadata]:
            return [ToolMetadata(name="send_mail", description="Send a mail")]

        async def get_tool(self, name: str) -> dict[str, Any]:
            clock[0] += 5.0
            return {"name": name, "inputSchema": {"type": "object"}}

        async def call_tool(self, name: str, arguments: Any) -> str:
            return name

    registry = ToolRegistry(settings=Settings(embedder="none"))
    registry.add_provider(Slow())
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    answer = await registry.search("send a mail")
    assert (len(answer), answer.metadata.took_ms) == (1, 5_000.0)


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
@pytest.mark.parametrize("form", ["rows", "lines", "array", "object", "answer"])
async def test_the_formats_of_chat_apis_are_read(tmp_path: Path, row: dict[str, object], form: str) -> None:
    file = tmp_path / "tools.json"
    texts = {"lines": json.dumps(row), "array": json.dumps([row], indent=1), "object": json.dumps({"tools": [row]})}
    texts["answer"] = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [row]}})
    file.write_text(texts.get(form, ""))
    async with Scout.open(tools=[row] if form == "rows" else file) as scout:
        (match,) = await scout.list_tools("full")
        assert (match.tool.key, match.tool.input_schema) == ("local__a_tool", {"type": "object"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no tool"),
        ("[]", "holds no tool"),
        ("hello", "line 1: not JSON"),
        ("[{}]", "tool 1: a row needs a name"),
    ],
)
async def test_a_file_without_a_single_tool_is_an_error(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(text)
    with pytest.raises(InputFileError, match=why):
        async with Scout.open(tools=file):
            pass


async def test_one_tool_alone_is_refused_instead_of_being_read_as_no_tool() -> None:
    with pytest.raises(InvalidValueError, match="must be a list"):
        async with Scout.open(tools={"name": "send_mail"}):  # type: ignore[dict-item]
            pass
