"""Several files make one config: later files have precedence, with a note."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolscout.config import read_config
from toolscout.fields import Fields


def write(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(json.dumps(values), "utf-8")
    return path


def test_a_later_file_replaces_a_server_of_the_same_name_and_the_config_says_so(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", {"mcpServers": {"x": {"command": "old"}, "y": {"command": "y"}}})
    second = write(tmp_path / "b.json", {"servers": {"x": {"command": "new"}, "z": {"command": "z"}}})
    config = read_config([first, second], {})
    assert [(server.title, server.command) for server in config.servers] == [("x", "new"), ("y", "y"), ("z", "z")]
    assert config.files == (str(first), str(second))
    assert config.notes == (f"server 'x' of {first} is replaced by {second}",)


def test_core_tools_add_up_and_the_last_surface_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "a.json", {"toolscout": {"core": ["a__b", "c__d"], "surface": "browse"}})
    second = write(tmp_path / "b.json", {"mcpServers": {}, "toolscout": {"core": ["c__d", "e__f"]}})
    config = read_config([first, second], {})
    assert (config.core, config.surface, config.servers) == (("a__b", "c__d", "e__f"), "browse", ())


def test_no_file_is_no_server() -> None:
    assert read_config([]).servers == ()


def test_variables_come_from_the_process_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.json", {"mcpServers": {"x": {"command": "${TOOLSCOUT_TEST_X}"}}})
    monkeypatch.setenv("TOOLSCOUT_TEST_X", "mine")
    assert read_config(str(path)).servers[0].command == "mine"
    assert read_config(path, {"TOOLSCOUT_TEST_X": "yours"}).servers[0].command == "yours"


def test_two_readings_of_one_file_are_equal_so_that_a_change_shows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"mcpServers": {"x": {"command": "x"}, "y": {"command": "y"}}})
    before = read_config(path, {})
    assert read_config(path, {}) == before
    write(path, {"mcpServers": {"x": {"command": "x"}, "y": {"command": "z"}}})
    after = read_config(path, {})
    assert [new == old for new, old in zip(after.servers, before.servers, strict=True)] == [True, False]


def test_every_field_of_toolscouts_own_is_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    field_names: set[str] = set()
    monkeypatch.setattr(Fields, "finish", lambda fields: field_names.update(fields.names_read))
    options = {"oauth": {"token_file": "x"}, "tools": {"t": {}}}
    read_config(write(tmp_path / "a.json", {"mcpServers": {"x": {"command": "x", "toolscout": options}}}), {})
    page = (Path(__file__).parent.parent.parent / "docs" / "config.md").read_text("utf-8")
    assert len(field_names) > 15
    assert {name for name in field_names if f"`{name}`" not in page} == set()
