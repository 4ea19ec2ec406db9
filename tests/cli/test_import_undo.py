"""`toolscout import --undo` restores the original servers, and keeps later edits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from homes import ENTRY, USER_FILES, read, snapshot, write


def test_servers_added_later_move_too_and_undoing_keeps_them(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    original = file.read_bytes()
    toolscout("import", "--write")
    values = read(file)
    values["mcpServers"]["b"] = {"command": "b"}
    write(file, values)
    assert toolscout("import", "--write", "--json").json["changes"][0]["servers"] == ["b"]
    assert list(read(file)["mcpServers"]) == ["toolscout"]
    moved = home / ".config" / "toolscout" / "cursor.json"
    assert list(read(moved)["mcpServers"]) == ["a", "b"]
    backup = Path(f"{file}.toolscout-backup")
    assert backup.read_bytes() == original
    assert toolscout("import", "--undo", "--json").json["changes"][0]["done"] == "put back"
    assert read(file) == {"mcpServers": {"a": ENTRY, "b": {"command": "b"}}}
    assert not moved.exists()


def test_undoing_keeps_what_the_host_has_written_since(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / ".claude.json", {"startups": 3, "mcpServers": {"a": ENTRY}})
    toolscout("import", "--write")
    values = read(file)
    write(file, {**values, "startups": 4, "mcpServers": {**values["mcpServers"], "new": ENTRY}})
    ran = toolscout("import", "--undo")
    assert "only its servers were put back" in ran.out
    assert read(file) == {"startups": 4, "mcpServers": {"a": ENTRY, "new": ENTRY}}


def test_undoing_keeps_what_the_user_has_written_into_the_moved_file(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    original = file.read_bytes()
    toolscout("import", "--write")
    moved = home / ".config" / "toolscout" / "cursor.json"
    values = read(moved)
    values["mcpServers"]["a"]["toolscout"] = {"tags": ["mine"]}
    write(moved, values)
    ran = toolscout("import", "--undo")
    assert "your edits are kept" in ran.out
    assert file.read_bytes() == original
    assert read(Path(f"{moved}.undone")) == values


def test_undoing_a_file_that_is_gone_loses_nothing(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    toolscout("import", "--write")
    file.unlink()
    assert toolscout("import", "--undo", "--json").json["changes"][0]["done"] == "skipped"
    assert (home / ".config" / "toolscout" / "cursor.json").is_file()
    write(file, {})
    assert "has no list of servers any more" in toolscout("import", "--undo").out
    assert (home / ".config" / "toolscout" / "cursor.json").is_file()


def test_undoing_a_broken_file_is_an_error_and_changes_nothing(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    toolscout("import", "--write")
    write(file, "{broken")
    before = snapshot(home)
    assert toolscout("import", "--undo").code == 2
    assert snapshot(home) == before


def test_one_host_is_undone_without_the_others(home: Path, toolscout: Callable[..., Any]) -> None:
    for host in ("cursor", "kiro"):
        write(home / USER_FILES[host], {"mcpServers": {"a": ENTRY}})
    toolscout("import", "--write")
    assert [change["host"] for change in toolscout("import", "kiro", "--undo", "--json").json["changes"]] == ["kiro"]
    in_front = {found["host"]: found["in_front"] for found in toolscout("import", "--json").json["found"]}
    assert in_front == {"cursor": True, "kiro": False}
