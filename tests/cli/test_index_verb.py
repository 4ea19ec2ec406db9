"""`toolscout index`: the summary, and nothing else on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servers import stdio
from serving import write_config

Run = Callable[..., Any]
EITHER = str(Path(__file__).parent.parent / "either_server.py")

ROWS = [
    {"server": "mail", "name": "send", "description": "Send a letter."},
    {"server": "mail", "name": "read", "description": "Read a letter."},
]


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Return the address of a catalogue that does not exist yet."""
    return f"sqlite:///{tmp_path / 'catalogue.db'}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of two good rows, a bad line and a bad tool."""
    path = tmp_path / "tools.jsonl"
    lines = [json.dumps(row) for row in ROWS]
    path.write_text("\n".join([lines[0], "nonsense", lines[1], '{"name": "bad", "input_schema": 5}']))
    return path


def test_the_summary_counts_what_happened(toolscout: Run, store: str, file: Path) -> None:
    ran = toolscout("index", "--tools", str(file), "--store", store, "--json")
    assert ran.code == 0
    (summary,) = ran.json
    assert {key: summary[key] for key in ("total", "new", "changed", "unchanged", "removed", "embedded")} == {
        "total": 2,
        "new": 2,
        "changed": 0,
        "unchanged": 0,
        "removed": 0,
        "embedded": 2,
    }
    assert [item["where"] for item in summary["dropped"]] == [f"{file}:2", "local: 'bad'"]
    assert ran.err == ""


def test_people_see_the_reasons(toolscout: Run, store: str, file: Path) -> None:
    ran = toolscout("index", "--tools", str(file), "--store", store)
    assert ran.code == 0
    assert "2 tools: 2 new, 2 dropped (" in ran.out
    assert f"dropped {file}:2: not JSON: Expecting value at column 1\n" in ran.out
    assert "its input_schema must be an object, not int" in ran.out
    again = toolscout("index", "--tools", str(file), "--store", store)
    assert "2 tools: 2 unchanged, 2 dropped (" in again.out


def test_strict_makes_a_bad_line_an_error_and_indexes_nothing(toolscout: Run, store: str, file: Path) -> None:
    ran = toolscout("index", "--tools", str(file), "--strict", "--store", store)
    assert (ran.code, ran.out) == (2, "")
    assert f"error: {file}:2: not JSON" in ran.err
    assert "hint: " in ran.err
    assert toolscout("list", "--store", store, "--json").json["metadata"]["total"] == 0


def test_strict_makes_a_bad_tool_an_error_too(toolscout: Run, store: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text('{"name": "bad", "tags": 5}')
    ran = toolscout("index", "--tools", str(path), "--strict", "--store", store, "--json")
    assert ran.code == 2
    assert ran.json["error"]["code"] == "bad_tool"


def test_more_reasons_than_fit_are_counted(toolscout: Run, store: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(["nonsense"] * 14 + ['{"name": "one"}']))
    ran = toolscout("index", "--tools", str(path), "--store", store)
    assert ran.out.count("not JSON") == 10
    assert "4 more" in ran.out


def test_several_files_are_indexed_one_after_the_other(toolscout: Run, store: str, tmp_path: Path) -> None:
    paths = []
    for number, row in enumerate(ROWS):
        path = tmp_path / f"tools{number}.jsonl"
        path.write_text(json.dumps({**row, "server": f"server{number}"}))
        paths += ["--tools", str(path)]
    ran = toolscout("index", *paths, "--store", store, "--json")
    assert [summary["new"] for summary in ran.json] == [1, 1]


def test_servers_that_share_a_slug_are_reported(toolscout: Run, store: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(json.dumps({"server": server, "name": "a"}) for server in ("my server", "my-server")))
    ran = toolscout("index", "--tools", str(path), "--store", store)
    assert "renamed my server: its slug 'my-server' belongs to 'my-server'" in ran.out


def test_the_sample_is_ready_to_be_indexed(toolscout: Run, store: str) -> None:
    ran = toolscout("index", "--sample", "--store", store, "--json")
    assert ran.json[0]["new"] == 128
    assert ran.json[0]["dropped"] == []
    nothing = toolscout("index", "--store", store, "--json")
    assert nothing.code == 0
    assert nothing.json[0]["embedded"] == 0


def test_without_a_model_tools_are_indexed_for_words_and_embedded_later(
    toolscout: Run, store: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    assert toolscout("index", "--tools", str(file), "--store", store, "--json").json[0]["embedded"] == 0
    monkeypatch.delenv("TOOLSCOUT_EMBEDDER")
    ran = toolscout("index", "--store", store, "--json")
    assert ran.json[0]["embedded"] == 2


@pytest.mark.process
def test_without_a_file_the_servers_of_the_config_folder_are_indexed(
    toolscout: Run, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "toolscout").mkdir()
    write_config(tmp_path / "toolscout", stdio("either", sys.executable, EITHER))
    ran = toolscout("index", "--store", store)
    assert (ran.code, "either" in ran.out) == (0, True)
    assert toolscout("list", "--store", store, "--json").json["tools"]
    tenant = toolscout("index", "--tenant", "acme", "--store", store)
    assert tenant.out == "nothing to do: every tool has its vector\n"
    assert toolscout("list", "--tenant", "acme", "--store", store, "--json").json["tools"] == []


def test_with_nothing_to_do_it_says_so(toolscout: Run, store: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    toolscout("index", "--tools", str(file), "--store", store)
    monkeypatch.delenv("TOOLSCOUT_EMBEDDER")
    assert toolscout("index", "--store", store).out == "embedded 2 tools\n"
    assert toolscout("index", "--store", store).out == "nothing to do: every tool has its vector\n"


def test_without_a_config_and_without_tools_it_says_where_to_begin(toolscout: Run, store: str) -> None:
    ran = toolscout("index", "--store", store)
    assert ran.code == 1
    assert "The catalogue is empty." in ran.out
    assert "toolscout index --sample" in ran.out


@pytest.mark.parametrize("text", ["", "not a tool", "{}", '{"tools": []}'])
def test_a_file_without_a_single_tool_is_an_error(toolscout: Run, store: str, tmp_path: Path, text: str) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text(text)
    ran = toolscout("index", "--tools", str(path), "--store", store)
    assert ran.code == 2
    assert f"{path} holds no tool" in ran.err
