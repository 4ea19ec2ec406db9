"""`toolscout import --write` gives an agent no more than its host did, and tells the user what changes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from homes import ENTRY, USER_FILES, read, write
from toolscout.cli.host_rules import LOST
from toolscout.config import read_config

Run = Callable[..., Any]
pytestmark = guarantee("import:rights")


def moved(toolscout: Run, *arguments: str) -> Any:
    (change,) = toolscout("import", "--write", "--json", *arguments).json["changes"]
    return change


def switched_off(change: Any, title: str, *names: str) -> list[str]:
    servers = {server.title: server.server for server in read_config(change["moved_to"], {}).servers}
    return [name for name in names if servers[title].tool_overlay(name).enabled is False]


def test_claude_codes_deny_rules_hold_and_its_other_rules_are_named(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["claude-code"], {"mcpServers": {"git hub": ENTRY, "mail": ENTRY}})
    rules = {
        "allow": ["mcp__git_hub__search", "Bash(ls)"],
        "deny": ["mcp__git_hub__delete_repo", "mcp__mail", "mcp__other__x"],
    }
    write(home / ".claude" / "settings.json", {"permissions": rules})
    change = moved(toolscout)
    assert switched_off(change, "git hub", "search", "delete_repo") == ["delete_repo"]
    assert switched_off(change, "mail", "send", "read") == ["send", "read"]
    notes = "\n".join(change["notes"])
    assert "no longer match" in notes
    assert "mcp__git_hub__search" in notes
    assert "Bash(ls)" not in notes
    assert read(Path(change["moved_to"][0]))["mcpServers"] == {"git hub": ENTRY, "mail": ENTRY}


def test_the_deny_rules_of_other_hosts_hold_too(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["cursor"], {"mcpServers": {"github": ENTRY}})
    write(home / ".cursor" / "cli-config.json", {"permissions": {"deny": ["Mcp(github:delete_*)"]}})
    assert switched_off(moved(toolscout, "cursor"), "github", "delete_repo", "read") == ["delete_repo"]
    write(
        home / USER_FILES["gemini"], {"mcpServers": {"github": ENTRY}, "tools": {"exclude": ["github__merge", "drop"]}}
    )
    assert switched_off(moved(toolscout, "gemini"), "github", "merge", "drop", "read") == ["merge", "drop"]
    entry = {"type": "local", "command": ["npx"]}
    opencode = {"mcp": {"github": entry}, "tools": {"github_delete*": False}, "permission": {"github_merge": "deny"}}
    write(home / ".config" / "opencode" / "opencode.json", opencode)
    assert switched_off(moved(toolscout, "opencode"), "github", "delete_x", "merge", "read") == ["delete_x", "merge"]
    permissions = {"tools": {"mcp:github:merge": {"default": "deny"}}}
    write(home / USER_FILES["zed"], {"context_servers": {"github": ENTRY}, "agent": {"tool_permissions": permissions}})
    assert switched_off(moved(toolscout, "zed"), "github", "merge", "read") == ["merge"]


def test_patterns_of_servers_in_claude_codes_deny_rules_hold(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["claude-code"], {"mcpServers": {"github": ENTRY, "mail": ENTRY}})
    write(home / ".claude" / "settings.json", {"permissions": {"deny": ["mcp__git*__delete_*"]}})
    change = moved(toolscout)
    assert switched_off(change, "github", "delete_repo", "read") == ["delete_repo"]
    assert switched_off(change, "mail", "delete_mail") == []


@pytest.mark.parametrize("host", ["gemini", "qwen"])
def test_policies_and_permissions_of_gemini_and_qwen_hold(home: Path, toolscout: Run, host: str) -> None:
    permissions = {"deny": ["mcp__github__merge"], "allow": ["mcp__github__read"]}
    write(home / USER_FILES[host], {"mcpServers": {"github": ENTRY, "mail": ENTRY}, "permissions": permissions})
    policy = (
        '[[rule]]\nmcpName = "github"\ntoolName = ["delete_*", "drop"]\ndecision = "deny"\n'
        '[[rule]]\ntoolName = "mcp_mail_send"\ndecision = "deny"\n'
        '[[rule]]\nmcpName = "*"\ndecision = "allow"\n'
        '[[rule]]\ntoolName = "run_shell_command"\ndecision = "deny"\n'
    )
    write(home / f".{host}" / "policies" / "mine.toml", policy)
    change = moved(toolscout)
    assert switched_off(change, "github", "read", "delete_x", "drop", "merge") == ["delete_x", "drop", "merge"]
    assert switched_off(change, "mail", "send", "read") == ["send"]
    (lost,) = [note for note in change["notes"] if "no longer match" in note]
    assert "mcp__github__read" in lost
    assert "mine.toml: mail *" in lost


def test_cursors_list_of_tools_that_run_without_asking_is_named(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["cursor"], {"mcpServers": {"github": ENTRY}})
    write(home / ".cursor" / "permissions.json", {"mcpAllowlist": ["github:read", "other:x"]})
    (note,) = [note for note in moved(toolscout)["notes"] if "no longer match" in note]
    assert "mcpAllowlist: github:read" in note
    assert "other:x" not in note


def test_a_server_that_one_project_or_agent_may_not_use_freely_stays(home: Path, toolscout: Run) -> None:
    """Toolscout cannot tell the projects and agents of a host apart, so the rule would hold for all or for none."""
    project = home / "work" / "shop"
    values = {"mcpServers": {"github": ENTRY, "mail": ENTRY}, "projects": {str(project): {}, "/gone": {}}}
    write(home / USER_FILES["claude-code"], values)
    write(project / ".claude" / "settings.json", {"permissions": {"deny": ["mcp__github__merge"]}})
    change = moved(toolscout, "claude-code")
    assert change["servers"] == ["mail"]
    assert change["notes"][0].startswith(f"github stays: a rule of {project} forbids tools of it")

    entry = {"type": "local", "command": ["npx"]}
    agents = {"plan": {"tools": {"github_*": False}}, "build": {"tools": {"mail_*": True}}}
    write(home / ".config" / "opencode" / "opencode.json", {"mcp": {"github": entry, "mail": entry}, "agent": agents})
    change = moved(toolscout, "opencode")
    assert change["servers"] == ["mail"]
    assert change["notes"][0].startswith("github stays: a rule of the agent plan forbids tools of it")


def test_servers_to_which_the_user_may_have_signed_in_are_named(home: Path, toolscout: Run) -> None:
    url = "https://a.b/mcp"
    servers = {"open": {"url": url}, "keyed": {"url": url, "headers": {"X": "y"}}, "here": {"url": "http://localhost/"}}
    servers["off"] = {"url": url, "disabled": True}
    write(home / USER_FILES["cursor"], {"mcpServers": servers})
    (note,) = [note for note in moved(toolscout)["notes"] if "signed in" in note]
    assert note.startswith("if you signed in to open in a browser, only the host has that token")


def test_approvals_in_an_entry_are_named(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["cline"], {"mcpServers": {"github": {**ENTRY, "autoApprove": ["search"]}}})
    assert any("autoApprove of github" in note for note in moved(toolscout)["notes"])


def test_what_only_the_host_can_start_or_sign_in_to_stays_with_a_word(home: Path, toolscout: Run) -> None:
    extension = {"source": "extension", "settings": {"key": "x"}}
    write(home / USER_FILES["zed"], {"context_servers": {"ext": extension, "a": ENTRY}})
    change = moved(toolscout, "zed")
    assert (change["servers"], change["notes"][0]) == (["a"], "ext stays: an extension of the host starts it")
    assert list(read(home / USER_FILES["zed"])["context_servers"]) == ["ext", "toolscout"]

    own = {"type": "http", "url": "https://mcp.example.com/mcp", "oauth": {"clientId": "x"}}
    write(home / USER_FILES["claude-code"], {"mcpServers": {"own": own, "b": ENTRY}})
    change = moved(toolscout, "claude-code")
    assert change["servers"] == ["b"]
    assert "own stays: the host signs in to it" in change["notes"]
    assert moved(toolscout, "claude-code")["done"] == "unchanged"
    assert toolscout("import", "--undo").code == 0
    assert list(read(home / USER_FILES["claude-code"])["mcpServers"]) == ["own", "b"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"type": "ws", "url": "wss://a.b/mcp"}, "toolscout cannot use it: type is not a transport that toolscout"),
        ({"command": 5}, "toolscout cannot use it: command must be a string"),
        ({"command": "npx", "disabledTools": "all"}, ""),
        ({"command": "npx", "includeTools": {"x": 1}}, "toolscout cannot use it"),
        ("npx", "its entry is not an object"),
        ({"url": "https://a.b/mcp", "headersHelper": "./token.sh"}, "a program of the host makes its headers"),
        ({"command": "npx", "sandboxEnabled": True}, "the host runs it in a sandbox"),
        ({"url": "${URL}", "headers": {"X": "${file:nowhere}"}}, ""),
    ],
)
def test_a_server_that_toolscout_could_not_run_as_the_host_does_stays(
    home: Path, toolscout: Run, entry: Any, reason: str
) -> None:
    write(home / USER_FILES["claude-code"], {"mcpServers": {"other": entry, "b": ENTRY}})
    change = moved(toolscout)
    assert change["servers"] == (["b"] if reason else ["other", "b"])
    assert not reason or change["notes"][0].startswith(f"other stays: {reason}")


def test_a_server_that_the_host_has_switched_off_stays_with_it(home: Path, toolscout: Run) -> None:
    settings = {"mcpServers": {"a": ENTRY, "b": ENTRY}, "mcp": {"excluded": ["b"]}}
    write(home / USER_FILES["gemini"], settings)
    change = moved(toolscout)
    assert (change["servers"], change["notes"][0]) == (["a"], "b stays: the host has it switched off")


def test_a_host_that_would_not_start_toolscout_is_left_alone(home: Path, toolscout: Run) -> None:
    file = write(home / USER_FILES["gemini"], {"mcpServers": {"a": ENTRY}, "mcp": {"allowed": ["a"]}})
    change = moved(toolscout)
    assert (change["done"], "mcp.allowed" in change["notes"][0]) == ("skipped", True)
    assert list(read(file)["mcpServers"]) == ["a"]


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost.",
        "a.localhost",
        "127.0.0.1",
        "127.1.2.3",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
    ],
)
def test_an_address_on_this_machine_stays_reachable(home: Path, toolscout: Run, host: str) -> None:
    servers = {"here": {"url": f"http://{host}:3000/mcp"}, "far": {"url": "https://a.b/mcp"}}
    write(home / USER_FILES["cursor"], {"mcpServers": servers})
    change = moved(toolscout)
    here, far = read_config(change["moved_to"], {}).servers
    assert (here.private, far.private) == (True, False)
    assert any("here is on this machine" in note for note in change["notes"])
    assert any("are not trusted (here, far)" in note for note in change["notes"])


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("192.168.1.5", True),
        ("100.64.0.7", True),
        ("[fd00::1]", True),
        ("homeassistant.local", True),
        ("nas", True),
        ("host.docker.internal", True),
        ("169.254.169.254", False),
        ("metadata.google.internal", False),
        ("8.8.8.8", False),
        ("local.example.com", False),
    ],
)
def test_an_address_on_this_network_stays_reachable(home: Path, toolscout: Run, host: str, near: bool) -> None:
    write(home / USER_FILES["cursor"], {"mcpServers": {"a": {"url": f"http://{host}:8123/mcp"}}})
    change = moved(toolscout)
    assert read_config(change["moved_to"], {}).servers[0].private is near
    assert any("a is on this network" in note for note in change["notes"]) is near


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_a_server_whose_address_toolscout_never_calls_stays(home: Path, toolscout: Run, host: str) -> None:
    write(home / USER_FILES["cursor"], {"mcpServers": {"all": {"url": f"http://{host}:3000/mcp"}, "a": ENTRY}})
    change = moved(toolscout)
    assert change["servers"] == ["a"]
    assert change["notes"][0].startswith("all stays: its address")
    assert "write 127.0.0.1" in change["notes"][0]


def test_the_variables_that_servers_lose_are_named_with_the_line_that_keeps_them(
    home: Path, toolscout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in filter(LOST.fullmatch, list(os.environ)):
        monkeypatch.delenv(name)
    for name in ("HTTPS_PROXY", "AWS_PROFILE", "NODE_EXTRA_CA_CERTS"):
        monkeypatch.setenv(name, "c4n4ry")
    entries = {"a": {**ENTRY, "env": {"AWS_PROFILE": "dev"}}, "b": ENTRY, "c": {"url": "https://a.b/mcp"}}
    write(home / USER_FILES["cursor"], {"mcpServers": entries})
    change = moved(toolscout)
    network, aws = [note for note in change["notes"] if "toolscout starts" in note]
    assert aws.startswith("toolscout starts b without AWS_PROFILE. ")
    assert network.startswith("toolscout starts a, b without HTTPS_PROXY, NODE_EXTRA_CA_CERTS. ")
    assert network.endswith(f'in {change["moved_to"][0]}: "env_vars": ["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS"]')
    assert "c4n4ry" not in str(change)
    moved_to = Path(change["moved_to"][0])
    values = read(moved_to)
    values["mcpServers"]["b"] |= json.loads("{" + network[network.index('"env_vars"') :] + "}")
    write(moved_to, values)
    b = read_config(moved_to, {"HTTPS_PROXY": "http://proxy:1"}).servers[1]
    assert b.env == {"HTTPS_PROXY": "http://proxy:1"}


def test_codex_servers_lose_no_variable_since_they_got_none(
    home: Path, toolscout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "x")
    write(home / ".codex" / "config.toml", '[mcp_servers.a]\ncommand = "npx"\n')
    assert not any("HTTPS_PROXY" in note for note in moved(toolscout)["notes"])


def test_a_file_that_cannot_be_written_does_not_hide_what_was_changed_before(
    home: Path, toolscout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / USER_FILES["cursor"], {"mcpServers": {"a": ENTRY}})
    bad = write(home / USER_FILES["windsurf"], {"mcpServers": {"b": ENTRY}})
    write(home / USER_FILES["kiro"], {"mcpServers": {"c": ENTRY}})
    renamed = Path.replace

    def full(path: Path, target: Path) -> Path:
        if target == bad:
            raise OSError(28, "No space left on device")
        return renamed(path, target)

    monkeypatch.setattr(Path, "replace", full)
    ran = toolscout("import", "--write")
    assert ran.code == 2
    assert "cannot be written: No space left on device" in ran.err
    assert [line.split()[0] for line in ran.out.splitlines() if line[0].isalpha()][:3] == ["moved", "failed", "moved"]
    assert list(read(bad)["mcpServers"]) == ["b"]
    assert not (home / ".config" / "toolscout" / "windsurf.json").exists()


@guarantee("import:links")
def test_a_backup_is_never_written_through_a_link(home: Path, toolscout: Run) -> None:
    keys = write(home / ".ssh" / "authorized_keys", "ssh-ed25519 mine")
    file = write(home / "project" / ".mcp.json", {"mcpServers": {"a": ENTRY}})
    Path(f"{file}.toolscout-backup").symlink_to(keys)
    assert moved(toolscout, ".mcp.json")["done"] == "moved"
    assert keys.read_text("utf-8") == "ssh-ed25519 mine"
    assert not Path(f"{file}.toolscout-backup").is_symlink()


@guarantee("import:links")
def test_a_link_of_a_project_is_not_followed(home: Path, toolscout: Run) -> None:
    own = write(home / USER_FILES["claude-code"], {"mcpServers": {"a": ENTRY}})
    link = home / "project" / ".mcp.json"
    link.symlink_to(own)
    change = moved(toolscout, ".mcp.json")
    assert (change["done"], change["notes"]) == ("skipped", ["it is a link, and links of a project are not followed"])
    assert list(read(own)["mcpServers"]) == ["a"]


@guarantee("import:links")
def test_undo_does_not_follow_a_file_that_has_become_a_link(home: Path, toolscout: Run) -> None:
    own = write(home / USER_FILES["claude-code"], {"mcpServers": {}})
    file = write(home / "project" / ".mcp.json", {"mcpServers": {"a": ENTRY}})
    moved(toolscout, ".mcp.json")
    file.unlink()
    file.symlink_to(own)
    (change,) = toolscout("import", "--undo", "--json").json["changes"]
    assert (change["done"], "has become a link" in change["notes"][0]) == ("skipped", True)
    assert read(own) == {"mcpServers": {}}
