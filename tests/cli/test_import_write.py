"""`toolscout import --write` puts toolscout in front of a host's servers and loses nothing."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homes import ENTRY, SECTION, USER_FILES, read, snapshot, write
from toolscout.cli.host_import import put_in_front
from toolscout.cli.hosts import HOSTS, read_server_lists
from toolscout.config import read_config
from toolscout.settings import config_folder

JSON_HOSTS = sorted(host for host, file in USER_FILES.items() if file.endswith(".json"))


@pytest.mark.parametrize("host", JSON_HOSTS)
def test_a_host_starts_toolscout_alone_and_toolscout_has_its_servers(
    home: Path, toolscout: Callable[..., Any], host: str
) -> None:
    section, file = SECTION[host], home / USER_FILES[host]
    servers = {"github": ENTRY, "web": {"url": "https://a.b/mcp", "alwaysAllow": ["x"]}}
    write(file, {"theme": "dark", section: servers, "last": [1]}, mode=0o640)
    before = snapshot(home)
    ran = toolscout("import", "--write")
    assert ran.code == 0
    moved = home / ".config" / "toolscout" / f"{host}.json"
    values = read(file)
    assert list(values) == ["theme", section, "last"]
    assert (values["theme"], values["last"], list(values[section])) == ("dark", [1], ["toolscout"])
    entry = values[section]["toolscout"]
    assert [entry["command"], *entry["args"]][-3:] == ["serve", "--config", str(moved)]
    assert Path(entry["command"]).is_absolute()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert stat.S_IMODE(moved.stat().st_mode) == 0o600
    assert read(moved)[section] == servers
    assert [server.title for server in read_config(moved, {}).servers] == ["github", "web"]
    assert read_config(file, {}).servers == ()
    assert before[USER_FILES[host]] == snapshot(home)[f"{USER_FILES[host]}.toolscout-backup"]

    written = snapshot(home)
    assert toolscout("import", "--write", "--json").json["changes"][0]["done"] == "unchanged"
    assert snapshot(home) == written

    assert toolscout("import", "--undo", "--json").json["changes"][0]["done"] == "restored"
    assert snapshot(home) == before
    assert not moved.parent.exists()
    assert toolscout("import", "--undo").code == 1


def test_everything_outside_the_list_of_servers_stays_byte_for_byte(home: Path, toolscout: Callable[..., Any]) -> None:
    text = '\ufeff{\r\n\t// my theme\r\n\t"theme": "x",\r\n\t"context_servers": {"a": {"command": "x",},},\r\n}\r\n'
    file = write(home / ".config" / "zed" / "settings.json", "")
    file.write_bytes(text.encode("utf-8"))
    assert "comments" not in toolscout("import", "zed", "--write").out
    now = file.read_bytes().decode("utf-8")
    assert now.startswith('\ufeff{\r\n\t// my theme\r\n\t"theme": "x",\r\n\t"context_servers": {\r\n\t\t"toolscout": {')
    assert now.endswith("\t\t}\r\n\t},\r\n}\r\n")
    toolscout("import", "zed", "--undo")
    assert file.read_bytes() == text.encode("utf-8")


def test_comments_that_would_be_lost_are_reported(home: Path, toolscout: Callable[..., Any]) -> None:
    text = '{"context_servers": {\n// mine\n"a": {"command": "x"}}}'
    file = write(home / ".config" / "zed" / "settings.json", text)
    assert "comments among the servers" in toolscout("import").out
    assert "comments among its servers are only in the backup" in toolscout("import", "--write").out
    toolscout("import", "--undo")
    assert file.read_text("utf-8") == text


def test_claude_codes_projects_each_keep_their_own_servers(home: Path, toolscout: Callable[..., Any]) -> None:
    projects = {
        "/p/one": {"history": [1], "mcpServers": {"b": ENTRY}},
        "/q/one": {"mcpServers": {"c": {"command": "${workspaceFolder}/c"}}},
        "/r": {"mcpServers": {}},
    }
    file = write(home / ".claude.json", {"startups": 3, "mcpServers": {"a": ENTRY}, "projects": projects})
    before = snapshot(home)
    (change,) = toolscout("import", "claude-code", "--write", "--json").json["changes"]
    assert change["servers"] == ["a", "b", "c"]
    values = read(file)
    assert list(values["mcpServers"]) == ["toolscout"]
    # A project's entry must not hide the user's, which it would do under the same name.
    assert list(values["projects"]["/p/one"]["mcpServers"]) == ["toolscout-one"]
    assert values["projects"]["/p/one"]["history"] == [1]
    assert values["projects"]["/r"] == {"mcpServers": {}}
    assert len(set(change["moved_to"])) == 3
    servers = {server.title: server for server in read_config(change["moved_to"], {}).servers}
    assert servers["c"].command == "/q/one/c"
    toolscout("import", "--undo")
    assert snapshot(home) == before


def test_a_shared_file_is_rewritten_only_when_it_is_named(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / "project" / ".mcp.json", {"mcpServers": {"a": ENTRY}})
    before = snapshot(home)
    assert "others share this file" in toolscout("import", "--write").out
    assert "others share this file" in toolscout("import", "claude-code", "--write").out
    assert snapshot(home) == before
    assert toolscout("import", ".mcp.json", "--write", "--json").json["changes"][0]["done"] == "moved"
    assert list(read(file)["mcpServers"]) == ["toolscout-project"]
    assert toolscout("import", ".mcp.json", "--undo", "--json").json["changes"][0]["done"] == "restored"
    assert snapshot(home) == before


def test_a_file_of_no_known_host_can_be_named(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / "other" / "agents.json", {"mcpServers": {"a": ENTRY}})
    before = snapshot(home)
    assert toolscout("import", str(file), "--write").code == 0
    assert (home / ".config" / "toolscout" / "agents.json").is_file()
    toolscout("import", "--undo")
    assert snapshot(home) == before


CODEX = """# my settings
model = "o3"  # the large one

[mcp_servers.github]
command = "npx"
args = ["-y", "pkg"]
enabled_tools = ["search"]
env_vars = ["HOME_REGION"]

[mcp_servers.github.env]
TOKEN = "x"

[tui]
theme = 'dark'   # mine

[mcp_servers.web]
url = "https://a.b/mcp"
bearer_token_env_var = "WEB_TOKEN"
"""


def test_codex_is_written_and_the_rest_of_its_toml_is_kept(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / ".codex" / "config.toml", CODEX)
    before = snapshot(home)
    (change,) = toolscout("import", "codex", "--write", "--json").json["changes"]
    assert (change["done"], change["servers"]) == ("moved", ["github", "web"])
    text = file.read_text("utf-8")
    assert '# my settings\nmodel = "o3"  # the large one\n' in text
    assert "[tui]\ntheme = 'dark'   # mine\n" in text
    values = tomllib.loads(text)
    assert list(values["mcp_servers"]) == ["toolscout"]
    assert values["mcp_servers"]["toolscout"]["args"][-2:] == ["--config", change["moved_to"][0]]
    assert values["mcp_servers"]["toolscout"]["env_vars"] == ["HOME_REGION", "WEB_TOKEN"]
    github, web = read_config(change["moved_to"], {"WEB_TOKEN": "t"}).servers
    assert (github.env, web.headers) == ({"TOKEN": "x"}, {"Authorization": "Bearer t"})
    assert github.server.tool_overlay("delete").enabled is False
    assert toolscout("import", "codex", "--write", "--json").json["changes"][0]["done"] == "unchanged"

    file.write_text(text.replace("dark", "light"), "utf-8")
    assert toolscout("import", "--undo", "--json").json["changes"][0]["done"] == "put back"
    restored = tomllib.loads(file.read_text("utf-8"))
    assert restored["mcp_servers"] == tomllib.loads(CODEX)["mcp_servers"]
    assert restored["tui"] == {"theme": "light"}

    write(file, CODEX)
    Path(f"{file}.toolscout-backup").unlink()
    toolscout("import", "codex", "--write")
    assert toolscout("import", "--undo", "--json").json["changes"][0]["done"] == "restored"
    assert snapshot(home) == before


def test_a_server_that_codex_gets_later_adds_its_variables_also_as_a_table(
    home: Path, toolscout: Callable[..., Any]
) -> None:
    file = write(home / ".codex" / "config.toml", CODEX)
    toolscout("import", "codex", "--write")
    more = '\n[mcp_servers.late]\ncommand = "npx"\nenv_vars = ["WEB_TOKEN", {name = "ZONE", source = "local"}]\n'
    write(file, file.read_text("utf-8") + more)
    (change,) = toolscout("import", "codex", "--write", "--json").json["changes"]
    assert (change["done"], change["servers"]) == ("moved", ["late"])
    names = tomllib.loads(file.read_text("utf-8"))["mcp_servers"]["toolscout"]["env_vars"]
    assert names == ["HOME_REGION", "WEB_TOKEN", {"name": "ZONE", "source": "local"}]


def test_opencode_is_written_in_its_own_form(home: Path, toolscout: Callable[..., Any]) -> None:
    local = {"type": "local", "command": ["npx", "-y", "pkg"], "environment": {"T": "{env:TOKEN}"}}
    remote = {"type": "remote", "url": "https://a.b/mcp", "headers": {"X": "{env:TOKEN}"}}
    file = write(home / ".config" / "opencode" / "opencode.json", {"mcp": {"a": local, "b": remote}, "theme": "x"})
    before = snapshot(home)
    (found,) = toolscout("import", "opencode", "--json").json["found"]
    assert [server["at"] for server in found["servers"]] == ["npx", "a.b"]
    (change,) = toolscout("import", "--write", "--json").json["changes"]
    entry = read(file)["mcp"]["toolscout"]
    assert (entry["type"], entry["command"][-3:]) == ("local", ["serve", "--config", *change["moved_to"]])
    moved = read(Path(change["moved_to"][0]))
    moved["mcp"]["a"]["env"] = {"AWS_PROFILE": "${AWS_PROFILE}"}
    kept = write(home / "kept.json", moved)
    assert read_config(kept, {"TOKEN": "t", "AWS_PROFILE": "dev"}).servers[0].env == {"T": "t", "AWS_PROFILE": "dev"}
    kept.unlink()
    a, b = read_config(change["moved_to"], {"TOKEN": "t"}).servers
    assert (a.command, a.args, a.env, b.headers) == ("npx", ("-y", "pkg"), {"T": "t"}, {"X": "t"})
    assert read_config(file, {}).servers == ()
    toolscout("import", "--undo")
    assert snapshot(home) == before


def test_opencodes_file_with_comments_is_found_and_written_too(home: Path, toolscout: Callable[..., Any]) -> None:
    text = '{\n  // mine\n  "mcp": {"a": {"type": "local", "command": ["npx"]}},\n  "theme": "x", // dark\n}\n'
    file = write(home / ".config" / "opencode" / "opencode.jsonc", text)
    (change,) = toolscout("import", "opencode", "--write", "--json").json["changes"]
    assert (change["done"], change["servers"]) == ("moved", ["a"])
    written = file.read_text("utf-8")
    assert written.startswith("{\n  // mine\n")
    assert written.endswith('"theme": "x", // dark\n}\n')
    assert toolscout("import", "--undo").code == 0
    assert file.read_text("utf-8") == text


def test_what_the_servers_need_from_the_environment_is_handed_on_by_the_host(
    home: Path, toolscout: Callable[..., Any]
) -> None:
    servers = {
        "a": {"command": "${workspaceFolder}/x", "args": ["${env:KEY}"], "env": {"T": "${input:my-token}"}},
        "b": {"url": "${URL:-http://a.b}", "note": "${env:UNUSED}"},
    }
    inputs = [{"id": "my-token", "type": "promptString"}]
    file = write(home / USER_FILES["vscode"], {"servers": servers, "inputs": inputs})
    toolscout("import", "--write")
    env = read(file)["servers"]["toolscout"]["env"]
    assert env == {
        "TOOLSCOUT_WORKSPACE_FOLDER": "${workspaceFolder}",
        "KEY": "${env:KEY}",
        "TOOLSCOUT_INPUT_MY_TOKEN": "${input:my-token}",
        "URL": "${URL:-http://a.b}",
    }
    assert read(file)["inputs"] == inputs
    filled = {**env, "TOOLSCOUT_WORKSPACE_FOLDER": "/w", "KEY": "k", "TOOLSCOUT_INPUT_MY_TOKEN": "t"}
    a, b = read_config(home / ".config" / "toolscout" / "vscode.json", filled).servers
    assert (a.command, a.args, a.env, b.url) == ("/w/x", ("k",), {"T": "t"}, "http://a.b")


def test_gemini_keeps_its_bare_variables_after_the_move(home: Path, toolscout: Callable[..., Any]) -> None:
    file = write(home / USER_FILES["gemini"], {"mcpServers": {"a": {"command": "x", "env": {"K": "$KEY"}}}})
    toolscout("import", "--write")
    assert read(file)["mcpServers"]["toolscout"]["env"] == {"KEY": "$KEY"}
    (server,) = read_config(home / ".config" / "toolscout" / "gemini.json", {"KEY": "k"}).servers
    assert server.env == {"K": "k"}


def test_an_existing_toolscout_entry_gets_the_path_of_the_moved_servers(
    home: Path, toolscout: Callable[..., Any]
) -> None:
    mine = {"command": "toolscout", "args": ["serve", "--config", "/mine.json"], "env": {"A": "b"}}
    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"mine": mine, "a": ENTRY}})
    before = snapshot(home)
    toolscout("import", "--write")
    moved = str(home / ".config" / "toolscout" / "cursor.json")
    extended = {**mine, "args": [*mine["args"], "--config", moved]}
    assert read(file)["mcpServers"] == {"mine": extended}
    write(file, {"mcpServers": {"mine": extended}, "theme": "x"})
    toolscout("import", "--undo")
    assert read(file) == {"mcpServers": {"a": ENTRY, "mine": mine}, "theme": "x"}
    assert snapshot(home)[".cursor/mcp.json.toolscout-backup"] == before[".cursor/mcp.json"]


def test_a_file_of_the_users_own_is_never_overwritten(home: Path, toolscout: Callable[..., Any]) -> None:
    own = write(home / ".config" / "toolscout" / "cursor.json", {"mcpServers": {"mine": ENTRY}})
    write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    before = snapshot(home)
    (change,) = toolscout("import", "--write", "--json").json["changes"]
    assert change["moved_to"] != [str(own)]
    assert read(own) == {"mcpServers": {"mine": ENTRY}}
    toolscout("import", "--undo")
    assert snapshot(home) == before


def test_a_link_stays_a_link(home: Path, toolscout: Callable[..., Any]) -> None:
    real = write(home / "dotfiles" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    before = snapshot(home)
    toolscout("import", "--write")
    assert link.is_symlink()
    assert list(read(real)["mcpServers"]) == ["toolscout"]
    toolscout("import", "--undo")
    assert link.is_symlink()
    assert snapshot(home) == before


def test_a_write_that_fails_leaves_the_hosts_file_as_it_was(
    home: Path, toolscout: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    original, renamed = file.read_bytes(), Path.replace

    def full(path: Path, target: Path) -> Path:
        if target == file:
            raise OSError(28, "No space left on device")
        return renamed(path, target)

    monkeypatch.setattr(Path, "replace", full)
    ran = toolscout("import", "--write")
    assert ran.code == 2
    assert "cannot be written: No space left on device" in ran.err
    assert file.read_bytes() == original
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".mcp.json.")] == []
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "project")
    assert toolscout("import", "cursor", "--write").code == 0
    toolscout("import", "cursor", "--undo")
    assert json.loads(file.read_bytes()) == json.loads(original)


def test_a_file_that_the_host_changes_meanwhile_is_not_overwritten(
    home: Path, toolscout: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolscout.cli import host_import
    from toolscout.cli.import_record import write_file

    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})

    def interfering(path: Path, data: bytes, mode: int) -> None:
        write_file(path, data, mode)
        file.write_text('{"mcpServers": {"b": {}}}', "utf-8")

    monkeypatch.setattr(host_import, "write_file", interfering)
    ran = toolscout("import", "--write")
    assert ran.code == 2
    assert "was changed in the meantime" in ran.err
    assert read(file) == {"mcpServers": {"b": {}}}


def test_the_running_executable_is_what_the_host_will_start(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolscout.cli.import_ import launch_command

    executable = write(home / "bin" / "toolscout", "#!/bin/sh\n", mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(executable), "import"])
    assert launch_command() == [str(executable)]
    monkeypatch.setattr(sys, "argv", ["/lib/toolscout/__main__.py"])
    assert launch_command() == [sys.executable, "-m", "toolscout"]


def test_putting_in_front_works_from_python_too(home: Path) -> None:
    host = next(host for host in HOSTS if host.name == "cursor")
    file = write(home / ".cursor" / "mcp.json", {"mcpServers": {"a": ENTRY}})
    edit = put_in_front(list(read_server_lists(host, file)), ["/bin/toolscout"], config_folder())
    assert (edit.done, edit.servers) == ("moved", ("a",))
    assert read(file)["mcpServers"]["toolscout"]["command"] == "/bin/toolscout"
