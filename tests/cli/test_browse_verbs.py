"""`toolscout list`, `categories`, `tags`, `related`, `describe`, `enable`, `disable`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from embedders import HashEmbedder
from toolscout import Scout
from toolscout.models import Caller

Run = Callable[..., Any]


def test_list_pages_through_everything(toolscout: Run, sample_store: str) -> None:
    keys: list[str] = []
    for page in (1, 2, 3):
        ran = toolscout("list", "--page", str(page), "--store", sample_store, "--json")
        keys += [tool["key"] for tool in ran.json["tools"]]
        assert ran.json["pagination"]["total_pages"] == 3
        assert ran.json["pagination"]["has_next"] is (page < 3)
    assert len(keys) == 128
    assert keys == sorted(keys)


def test_list_can_be_narrowed_and_sized(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("list", "--category", "databases", "--page-size", "2", "--store", sample_store, "--json")
    assert len(ran.json["tools"]) == 2
    assert {tool["category"] for tool in ran.json["tools"]} == {"databases"}
    one = toolscout("list", "--server", "gmail", "--detail", "minimal", "--store", sample_store, "--json")
    assert all(set(tool) == {"key", "call_with"} for tool in one.json["tools"])
    assert len(one.json["tools"]) == 9


def test_list_for_people_names_the_page(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("list", "--page", "2", "--store", sample_store)
    assert ran.code == 0
    assert "page 2 of 3" in ran.out
    assert ran.err == ""


def test_a_page_size_over_the_limit_prints_a_note(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("list", "--page-size", "1000", "--store", sample_store)
    assert "page 1 of 2\nA page has at most 100 tools.\n" in ran.out
    assert "at most" not in toolscout("list", "--page-size", "100", "--store", sample_store).out


def test_a_page_past_the_end_is_empty_and_exit_code_one(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("list", "--page", "9", "--store", sample_store)
    assert (ran.code, ran.out.strip()) == (1, "There are no tools to show.")
    assert toolscout("list", "--page", "9", "--store", sample_store, "--json").code == 1


@pytest.mark.parametrize("verb", ["list", "categories", "tags"])
def test_nothing_in_the_catalogue_is_exit_code_one(toolscout: Run, verb: str) -> None:
    assert toolscout(verb, "--store", "memory:").code == 1
    assert toolscout(verb, "--store", "memory:", "--json").code == 1


def test_categories_are_counted(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("categories", "--store", sample_store, "--json")
    assert sum(item["count"] for item in ran.json["categories"]) == 128
    table = toolscout("categories", "--store", sample_store)
    assert all(item["name"] in table.out for item in ran.json["categories"])


def test_a_catalogue_without_tags_says_so(toolscout: Run, tmp_path: Path) -> None:
    file, store = tmp_path / "tools.jsonl", f"sqlite:///{tmp_path / 'catalogue.db'}"
    file.write_text('{"name": "xyzzy"}', "utf-8")
    toolscout("index", "--tools", str(file), "--store", store)
    ran = toolscout("tags", "--store", store)
    assert (ran.code, ran.out) == (1, "No tool has a tag.\n")


def test_tags_are_counted(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("tags", "--store", sample_store, "--json")
    assert {"name": "outbox", "count": 1} in ran.json["tags"]
    table = toolscout("tags", "--store", sample_store)
    assert "outbox" in table.out


def test_related_names_the_relation(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("related", "github__create_issue", "--limit", "3", "--store", sample_store, "--json")
    assert [tool["relationship"] for tool in ran.json["tools"]] == ["explicitly_related"] * 3
    table = toolscout("related", "github__create_issue", "--store", sample_store)
    assert "explicitly_related" in table.out
    assert "jira__createIssue" in table.out


@pytest.mark.parametrize("verb", ["list", "related", "search"])
def test_keys_stay_whole_on_a_terminal_of_80_columns(
    toolscout: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"read_the_whole_book_of_number_{number}" for number in range(3)]
    rows = [{"server": "library", "name": name, "description": "Read a book, " * 9, "related": names} for name in names]
    store, file = f"sqlite:///{tmp_path / 'catalogue.db'}", tmp_path / "tools.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    toolscout("index", "--tools", str(file), "--store", store)
    arguments = {"related": [f"library__{names[0]}"], "search": ["read a book"]}.get(verb, [])
    ran = toolscout(verb, *arguments, "--store", store)
    assert f" library__{names[1]} " in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_describe_shows_tools_whole(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("describe", "gmail__send_email", "github__create_issue", "--store", sample_store, "--json")
    assert [tool["key"] for tool in ran.json["tools"]] == ["gmail__send_email", "github__create_issue"]
    assert all(tool["input_schema"]["properties"] for tool in ran.json["tools"])
    table = toolscout("describe", "gmail__send_email", "--store", sample_store)
    assert "Send a mail at once." in table.out
    assert ran.json["tools"][0]["version"] in table.out
    assert "to *" in table.out


def test_describe_with_one_wrong_key_shows_the_others_and_what_was_meant(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("describe", "gmail__send_email", "gmail__delete_emial", "--store", sample_store)
    assert ran.code == 1
    assert "Send a mail at once." in ran.out
    assert "gmail__delete_email" in ran.out
    machine = toolscout("describe", "gmail__send_email", "gmail__delete_emial", "--store", sample_store, "--json")
    assert (machine.code, len(machine.json["tools"])) == (1, 1)


@pytest.mark.parametrize("verb", ["describe", "related"])
def test_a_wrong_key_is_exit_code_one_with_what_was_meant(toolscout: Run, sample_store: str, verb: str) -> None:
    ran = toolscout(verb, "gmail__send_emial", "--store", sample_store)
    assert (ran.code, ran.out) == (1, "")
    assert "error: no tool has the key 'gmail__send_emial'" in ran.err
    assert "did you mean: gmail__send_email" in ran.err
    machine = toolscout(verb, "gmail__send_emial", "--store", sample_store, "--json")
    assert machine.code == 1
    assert machine.json["error"]["code"] == "tool_not_found"
    assert "gmail__send_email" in machine.json["error"]["suggestions"]


def test_a_disabled_tool_is_gone_until_it_is_enabled(toolscout: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text("\n".join(json.dumps({"name": name}) for name in ("one", "two", "three")))
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    toolscout("index", "--tools", str(file), "--store", store)

    def keys() -> list[str]:
        return [tool["key"] for tool in toolscout("list", "--store", store, "--json").json["tools"]]

    ran = toolscout("disable", "local__one", "local__two", "--store", store)
    assert (ran.code, ran.out) == (0, "disabled local__one\ndisabled local__two\n")
    assert keys() == ["local__three"]
    assert toolscout("describe", "local__one", "--store", store).code == 1
    toolscout("index", "--tools", str(file), "--store", store)
    assert keys() == ["local__three"]
    assert toolscout("enable", "local__one", "--store", store).code == 0
    assert keys() == ["local__one", "local__three"]
    assert toolscout("disable", "local__none", "--store", store).code == 1


def test_what_is_switched_off_is_listed_and_suggested_and_a_wrong_key_among_several_switches_none(
    toolscout: Run, tmp_path: Path
) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text("\n".join(json.dumps({"name": name, "server": "mail"}) for name in ("send", "erase", "read")))
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    toolscout("index", "--tools", str(file), "--store", store)

    def off(*options: str) -> list[str]:
        ran = toolscout("list", "--disabled", "--store", store, "--json", *options)
        assert ran.code == (0 if ran.json["tools"] else 1)
        return [tool["key"] for tool in ran.json["tools"]]

    assert off() == []
    ran = toolscout("disable", "mail__send", "mail__raed", "--store", store)
    assert (ran.code, ran.out) == (1, "")
    assert off() == []
    toolscout("disable", "mail__send", "mail__erase", "--store", store)
    assert off() == ["mail__erase", "mail__send"]
    assert off("--server", "other") == []
    assert "mail__erase" in toolscout("list", "--disabled", "--store", store).out
    assert toolscout("list", "--disabled", "--detail", "x", "--store", store).code == 2
    ran = toolscout("enable", "mail__earse", "--store", store)
    assert (ran.code, "did you mean: mail__erase" in ran.err) == (1, True)
    ran = toolscout("enable", "zzzz", "--store", store)
    assert (ran.code, "suggestions" in ran.err, "search for it" in ran.err) == (1, False, True)


def test_what_is_switched_off_is_narrowed_by_the_rules_of_every_listing(toolscout: Run, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"

    async def index() -> None:
        async with Scout.open(store=store, embedder=HashEmbedder()) as scout:
            for title, caller in (("The Post", Caller()), ("Ann's Post", Caller(user="ann"))):
                row = {"name": "send", "server": title, "category": "Letters"}
                await scout.index_tools([row], caller=caller)

    def listed(*options: str) -> list[str]:
        return [tool["key"] for tool in toolscout("list", *options, "--store", store, "--json").json["tools"]]

    asyncio.run(index())
    shared, every = ["The-Post__send"], ["Ann-s-Post__send", "The-Post__send"]
    asked: list[tuple[list[str], list[str]]] = [
        ([], shared),
        (["--server", "The Post"], shared),
        (["--server", "The-Post"], shared),
        (["--category", "letters"], shared),
        (["--as", "ann"], every),
        (["--as", "ann", "--category", "LETTERS"], every),
        (["--as", "ann", "--server", "Ann's Post"], every[:1]),
        (["--as", "bob"], shared),
    ]
    assert [listed(*options) for options, _ in asked] == [keys for _, keys in asked]
    assert toolscout("disable", "The-Post__send", "--store", store).code == 0
    assert toolscout("disable", "Ann-s-Post__send", "--as", "ann", "--store", store).code == 0
    assert [listed("--disabled", *options) for options, _ in asked] == [keys for _, keys in asked]


def test_categories_of_ones_own_have_their_descriptions(toolscout: Run, sample_store: str, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    server = {"command": "x", "env": {"T": "${file:not-there}"}}
    options = {"categories": {"payments": "Everything about money."}}
    config.write_text(json.dumps({"mcpServers": {"a": server}, "toolscout": options}))
    for files in ((str(config),), (str(tmp_path / "nowhere.json"), str(config))):
        named = [word for file in files for word in ("--config", file)]
        rows = toolscout("categories", *named, "--store", sample_store, "--json").json["categories"]
        described = {row["name"]: row["description"] for row in rows}
        assert described["payments"] == "Everything about money."
        assert described["browser"].startswith("Drives a web browser")
