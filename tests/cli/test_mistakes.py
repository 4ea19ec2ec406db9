"""A user's mistake gives an error and a hint on stderr and an exit code, never a traceback."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("search", " "), 2, "the query is empty"),
        (("search", "mail", "--limit", "0"), 2, "limit is 0"),
        (("search", "mail", "-k", "-3"), 2, "limit is -3"),
        (("search", "mail", "--ranker", "best"), 2, "no ranker is called 'best'"),
        (("search", "mail", "--category", "payment"), 2, "did you mean: payments"),
        (("search", "mail", "--detail", "huge"), 2, "detail is minimal, brief or full"),
        (("search", "mail", "--match", "some"), 2, "match is 'any' or 'all'"),
        (("search", "mail", "--max-tokens", "0"), 2, "max_tokens is 0"),
        (("list", "--page", "0"), 2, "page is 0"),
        (("list", "--category", "none"), 2, "no tool is in a category 'none'"),
        (("list", "--server", "gmial"), 2, "did you mean: gmail"),
        (("search", "mail", "--server", "gmail", "--server", "none"), 2, "no tool is of a server 'none'"),
        (("search", "mail", "--tag", "emial"), 2, "did you mean: email"),
        (("related", "gmail__send_email", "--limit", "0"), 2, "limit is 0"),
        (("related", "nothing"), 1, "no tool has the key 'nothing'"),
        (("describe", "nothing"), 1, "no tool has the key 'nothing'"),
        (("gmail__send_email",), 2, "gmail__send_email is a tool, not a command"),
        (("gmail__send_email",), 2, "`toolscout call gmail__send_email` calls it"),
        (("index", "--tools", "/nowhere/tools.jsonl"), 2, "cannot be read: No such file or directory"),
        (
            ("policy", "check", "--policy", "/nowhere.toml"),
            2,
            "/nowhere.toml cannot be read: No such file or directory",
        ),
        (("eval", "a.jsonl", "/nowhere.jsonl"), 2, "/nowhere.jsonl cannot be read: No such file or directory"),
        (("index", "--tools", "x.jsonl", "--sample"), 2, "cannot be combined"),
    ],
)
def test_a_mistake_gives_a_clear_message(
    toolscout: Run, sample_store: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ran = toolscout(*arguments, "--store", sample_store)
    assert ran.code == code
    assert ran.out == ""
    assert said in ran.err
    assert ran.err.startswith("error: ")
    assert "hint: " in ran.err
    assert "Traceback" not in ran.err
    assert not re.search(r"[a-z]+_tools|list_tags|[a-z]='", ran.err), "a hint in the language of another surface"
    machine = toolscout(*arguments, "--store", sample_store, "--json")
    assert machine.code == code
    assert machine.err == ""
    assert {"code", "message", "hint", "suggestions"} <= set(machine.json["error"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("serch", "mail"),
        ("search",),
        ("search", "mail", "--limit", "many"),
        ("search", "mail", "--nonsense"),
        ("describe",),
        ("eval",),
    ],
)
def test_a_command_that_cannot_be_read_is_exit_code_two(toolscout: Run, arguments: tuple[str, ...]) -> None:
    ran = toolscout(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err
    assert "Traceback" not in ran.err
    machine = toolscout(*arguments, "--json")
    assert (machine.code, machine.err) == (2, "")
    assert machine.json["error"]["code"] == "usage"
    assert machine.json["error"]["message"]
    assert "--help`" in machine.json["error"]["hint"]


@pytest.mark.parametrize("url", ["redis://here", "sqlite:///", "catalogue.db", "mysql://db"])
def test_a_store_that_does_not_exist_says_which_do(toolscout: Run, url: str) -> None:
    ran = toolscout("list", "--store", url)
    assert ran.code == 2
    assert "names no store" in ran.err
    assert "sqlite:///PATH" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "mail"),
        ("list",),
        ("categories",),
        ("tags",),
        ("related", "a__b"),
        ("describe", "a__b"),
        ("export", "-"),
        ("changes",),
        ("approve", "a__b"),
        ("enable", "a__b"),
        ("keys", "list"),
        ("keys", "revoke", "abc"),
        ("policy", "check", "a__b"),
    ],
)
def test_reading_a_misspelt_path_creates_no_catalogue(
    toolscout: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    path = tmp_path / "typo" / "catalogue.db"
    ran = toolscout(*arguments, "--store", f"sqlite:///{path}")
    assert (ran.code, ran.out) == (3, "")
    assert f"error: there is no catalogue at {path}" in ran.err
    monkeypatch.setenv("TOOLSCOUT_STORE", f"sqlite:///{path}")
    assert toolscout(*arguments).code == 3
    assert not path.parent.exists()


def test_a_file_that_is_no_catalogue_is_exit_code_three(toolscout: Run, tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    path.write_bytes(b"this is no database at all, but long enough to be taken for one" * 50)
    ran = toolscout("list", "--store", f"sqlite:///{path}")
    assert ran.code == 3
    assert "not a database" in ran.err
    assert "hint: " in ran.err
    assert "Traceback" not in ran.err


def test_a_folder_in_the_place_of_the_file_is_exit_code_three(toolscout: Run, tmp_path: Path) -> None:
    ran = toolscout("search", "mail", "--store", f"sqlite:///{tmp_path}", "--json")
    assert ran.code == 3
    assert ran.json["error"]["code"] == "store_unavailable"


def test_a_catalogue_of_a_newer_toolscout_is_refused_clearly(toolscout: Run, tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    ran = toolscout("list", "--store", f"sqlite:///{path}", "--json")
    assert ran.code == 3
    assert ran.json["error"]["code"] == "store_newer"
    assert "upgrade" in ran.json["error"]["hint"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TOOLSCOUT_PAGE_SIZE", "many", "is not a whole number"),
        ("TOOLSCOUT_EMBED_TIMEOUT_S", "soon", "is not a number"),
        ("TOOLSCOUT_PAGE_SIZE", "-1", "cannot be negative"),
        ("TOOLSCOUT_EMBEDDER", "magic", "is not a known embedder"),
        ("TOOLSCOUT_STORE", "redis://here", "names no store"),
    ],
)
def test_a_setting_that_cannot_be_used_is_exit_code_two(
    toolscout: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    ran = toolscout("list")
    assert ran.code == 2
    assert said in ran.err
    assert name in ran.err or "store" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no queries"),
        ("nonsense", ":1: not a labelled query"),
        ('{"id": 1, "query": "x"}', ":1: not a labelled query"),
        ('{"id": 1, "query": "x", "gold": 5}', ":1: not a labelled query"),
        ("[]", ":1: not a labelled query"),
    ],
)
def test_labelled_queries_that_cannot_be_read_are_an_error(
    toolscout: Run, tmp_path: Path, text: str, said: str
) -> None:
    tools, queries = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl"
    tools.write_text(json.dumps({"name": "a"}))
    queries.write_text(text)
    ran = toolscout("eval", str(tools), str(queries))
    assert ran.code == 2
    assert said in ran.err
