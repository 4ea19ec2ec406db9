"""`toolscout import` finds the servers of the hosts, and shows no secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from homes import ENTRY, SECTION, USER_FILES, write
from toolscout.cli.hosts import host_files

CANARY = "c4n4ry"


def test_without_any_host_it_says_so_and_prints_the_entry_to_add(home: Path, toolscout: Callable[..., Any]) -> None:
    ran = toolscout("import")
    assert ran.code == 1
    first, second, entry = ran.out.splitlines()
    assert first == "No agent host on this machine has MCP servers in a config that toolscout knows."
    assert second == "For any other host, add this to its servers:"
    assert list(json.loads(entry)["mcpServers"]) == ["toolscout"]
    assert toolscout("import", "--json").json == {"found": [], "changes": []}


def test_long_paths_and_many_servers_stay_readable_in_80_columns(
    home: Path, toolscout: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    write(home / USER_FILES["cursor"], {"mcpServers": {f"server-{number}": ENTRY for number in range(6)}})
    lines = [line.strip() for line in toolscout("import").out.splitlines()]
    assert any(line.endswith("~/.cursor/mcp.json") for line in lines)
    assert "server-0 (npx), server-1 (npx), server-2 (npx), server-3 (npx)," in lines


@guarantee("term:safe")
def test_a_servers_name_in_a_projects_file_forges_no_line(home: Path, toolscout: Callable[..., Any]) -> None:
    write(home / "project" / ".mcp.json", {"mcpServers": {"a\nmoved  all": {"url": "http://localhost/mcp"}}})
    for arguments in (("import",), ("import", ".mcp.json", "--write")):
        assert not any(line.strip().startswith("moved  all") for line in toolscout(*arguments).out.splitlines())


@pytest.mark.parametrize("host", sorted(USER_FILES))
def test_every_host_is_found_at_its_place(home: Path, toolscout: Callable[..., Any], host: str) -> None:
    toml = '[mcp_servers.github]\ncommand = "npx"\nargs = ["-y", "pkg"]\n'
    entry = {"type": "stdio", "cmd": "npx"} if host == "goose" else ENTRY
    write(home / USER_FILES[host], toml if host == "codex" else {SECTION[host]: {"github": entry}})
    (found,) = toolscout("import", "--json").json["found"]
    assert found == {
        "host": host,
        "file": str(home / USER_FILES[host]),
        "project": None,
        "shared": False,
        "writable": True,
        "in_front": False,
        "servers": [{"name": "github", "transport": "stdio", "at": "npx"}],
        "problem": None,
    }
    assert toolscout("import", host, "--json").json["found"] == [found]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("claude-code", ".mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("gemini", ".gemini/settings.json"),
        ("kiro", ".kiro/settings/mcp.json"),
        ("zed", ".zed/settings.json"),
        ("roo", ".roo/mcp.json"),
        ("amazon-q", ".amazonq/mcp.json"),
        ("junie", ".junie/mcp/mcp.json"),
        ("qwen", ".qwen/settings.json"),
    ],
)
def test_the_projects_own_files_are_found_as_shared(
    home: Path, toolscout: Callable[..., Any], host: str, name: str
) -> None:
    write(home / "project" / name, {SECTION[host]: {"github": ENTRY}})
    (found,) = toolscout("import", "--json").json["found"]
    assert (found["host"], found["shared"], found["project"]) == (host, True, str(home / "project"))


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        (
            "darwin",
            {"HOME": "/Users/u"},
            {
                "claude-desktop": "/Users/u/Library/Application Support/Claude/claude_desktop_config.json",
                "vscode": "/Users/u/Library/Application Support/Code/User/mcp.json",
                "zed": "/Users/u/.config/zed/settings.json",
                "cursor": "/Users/u/.cursor/mcp.json",
            },
        ),
        (
            "win32",
            {"USERPROFILE": "C:/Users/u", "APPDATA": "C:/Users/u/AppData/Roaming"},
            {
                "claude-desktop": "C:/Users/u/AppData/Roaming/Claude/claude_desktop_config.json",
                "vscode": "C:/Users/u/AppData/Roaming/Code/User/mcp.json",
                "zed": "C:/Users/u/AppData/Roaming/Zed/settings.json",
                "claude-code": "C:/Users/u/.claude.json",
            },
        ),
        (
            "linux",
            {"HOME": "/h", "XDG_CONFIG_HOME": "/x", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/d"},
            {
                "claude-desktop": "/x/Claude/claude_desktop_config.json",
                "claude-code": "/c/.claude.json",
                "codex": "/d/config.toml",
                "windsurf": "/h/.codeium/windsurf/mcp_config.json",
            },
        ),
    ],
)
def test_each_system_has_its_own_places(platform: str, environ: dict[str, str], expected: dict[str, str]) -> None:
    places = {host.name: file for host, file, shared in host_files(environ, Path("/p"), platform) if not shared}
    assert {name: places[name].as_posix() for name in expected} == expected


def test_no_secret_is_shown(home: Path, toolscout: Callable[..., Any]) -> None:
    entries = {
        "a": {"command": "npx", "args": [f"--key={CANARY}"], "env": {"K": CANARY}},
        "b": {"url": f"https://u:{CANARY}@a.b/{CANARY}?k={CANARY}", "headers": {"X": CANARY}},
        "c": {"command": f"docker run -e K={CANARY} x/{CANARY}"},
        "d": {"url": f"http://[{CANARY}"},
        "e": CANARY,
    }
    write(home / ".cursor" / "mcp.json", {"mcpServers": entries})
    for arguments in (
        ["import"],
        ["import", "--json"],
        ["import", "--write"],
        ["import", "--json"],
        ["import", "--undo"],
    ):
        ran = toolscout(*arguments)
        assert ran.code == 0, ran
        assert CANARY not in ran.out + ran.err


def test_a_broken_file_is_reported_and_the_others_are_shown(home: Path, toolscout: Callable[..., Any]) -> None:
    broken = write(home / ".cursor" / "mcp.json", '{"mcpServers": {,}}')
    write(home / ".lmstudio" / "mcp.json", {"mcpServers": {"x": ENTRY}})
    ran = toolscout("import", "--json")
    assert [bool(found["problem"]) for found in ran.json["found"]] == [True, False]
    done = {change["host"]: change["done"] for change in toolscout("import", "--write", "--json").json["changes"]}
    assert done == {"cursor": "skipped", "lmstudio": "moved"}
    assert broken.read_text("utf-8") == '{"mcpServers": {,}}'
    named = toolscout("import", str(broken))
    assert named.code == 2
    assert f"{broken}:1: invalid JSON" in named.err


def test_what_is_neither_a_host_nor_a_file_suggests_a_host(home: Path, toolscout: Callable[..., Any]) -> None:
    ran = toolscout("import", "curser")
    assert ran.code == 2
    assert "did you mean: cursor" in ran.err
    assert "absent.json cannot be read" in toolscout("import", "absent.json").err
    assert toolscout("import", "--write", "--undo").code == 2


def test_the_entry_for_any_other_host_has_absolute_paths(home: Path, toolscout: Callable[..., Any]) -> None:
    write(home / USER_FILES["cursor"], {"mcpServers": {"a": ENTRY}})
    lines = toolscout("import").out.splitlines()
    entry = json.loads(lines[lines.index("For any other host, add this to its servers:") + 1])["mcpServers"][
        "toolscout"
    ]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-1] == "serve"
