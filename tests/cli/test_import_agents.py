"""Rules of one agent, profile or administrator of a host: `toolscout import --write` loosens none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from homes import ENTRY, USER_FILES, read, write
from toolscout.config import read_config

Run = Callable[..., Any]
pytestmark = guarantee("import:rights")

ZED = USER_FILES["zed"]
AGENTS = {"amazon-q": ".aws/amazonq/cli-agents", "kiro": ".kiro/agents"}


def moved(toolscout: Run, *arguments: str) -> Any:
    (change,) = toolscout("import", "--write", "--json", *arguments).json["changes"]
    return change


def switched_off(change: Any, title: str, *names: str) -> list[str]:
    servers = {server.title: server.server for server in read_config(change["moved_to"], {}).servers}
    return [name for name in names if servers[title].tool_overlay(name).enabled is False]


def lost_rules(change: Any) -> str:
    (note,) = [note for note in change["notes"] if "no longer match" in note]
    return str(note)


def zed(profiles: dict[str, Any]) -> dict[str, Any]:
    return {"context_servers": {"github": ENTRY, "mail": ENTRY}, "agent": {"profiles": profiles}}


def profile(every: bool | None = None, **tools: bool) -> dict[str, Any]:
    servers = {"context_servers": {"github": {"tools": tools}}}
    return servers if every is None else {**servers, "enable_all_context_servers": every}


def test_a_tool_that_no_profile_of_zed_offers_is_switched_off(home: Path, toolscout: Run) -> None:
    profiles = {"write": profile(merge=False, drop=False), "mine": profile(True, merge=False, drop=False)}
    write(home / ZED, zed(profiles))
    change = moved(toolscout)
    assert switched_off(change, "github", "merge", "drop", "read") == ["merge", "drop"]
    assert switched_off(change, "mail", "merge") == []
    assert any("every profile: github:merge forbids merge" in note for note in change["notes"])


@pytest.mark.parametrize(
    "profiles",
    [
        {"careful": profile(True, merge=False)},
        {"write": profile(merge=False), "mine": {"enable_all_context_servers": True}},
        {"write": profile(merge=False), "mine": profile(True, merge=False, drop=False)},
        {"mine": profile(False, read=True)},
        {"mine": profile(read=True, merge=False)},
    ],
)
def test_a_server_that_one_profile_of_zed_limits_stays(home: Path, toolscout: Run, profiles: dict[str, Any]) -> None:
    write(home / ZED, zed(profiles))
    change = moved(toolscout)
    assert change["servers"] == ["mail"]
    assert change["notes"][0].startswith("github stays: a rule of the profile")
    assert list(read(home / ZED)["context_servers"]) == ["github", "toolscout"]


def test_a_profile_of_zed_without_the_server_changes_nothing(home: Path, toolscout: Run) -> None:
    """Nor does it have toolscout then, unless its user adds it."""
    write(home / ZED, zed({"ask": {"enable_all_context_servers": False, "context_servers": {}}}))
    change = moved(toolscout)
    assert change["servers"] == ["github", "mail"]
    assert switched_off(change, "github", "merge") == []


def test_the_profiles_of_zed_hold_for_the_servers_of_a_project_too(home: Path, toolscout: Run) -> None:
    write(home / ZED, {"agent": {"profiles": {"careful": profile(True, merge=False)}}})
    file = write(home / "project" / ".zed" / "settings.json", {"context_servers": {"github": ENTRY}})
    change = moved(toolscout, str(file))
    assert (change["done"], change["servers"]) == ("unchanged", [])
    assert change["notes"][0].startswith("github stays: a rule of the profile careful")


def test_approvals_of_codex_are_named(home: Path, toolscout: Run) -> None:
    entry = (
        '[mcp_servers.github]\ncommand = "npx"\ndefault_tools_approval_mode = "prompt"\n'
        '[mcp_servers.github.tools.merge]\napproval_mode = "approve"\n'
    )
    write(home / USER_FILES["codex"], entry)
    change = moved(toolscout)
    assert "default_tools_approval_mode of github" in lost_rules(change)
    assert "approval_mode of merge of github" in lost_rules(change)
    assert switched_off(change, "github", "merge", "read") == []


@pytest.mark.parametrize("host", AGENTS)
def test_a_server_of_which_an_agent_has_only_some_tools_stays(home: Path, toolscout: Run, host: str) -> None:
    write(home / USER_FILES[host], {"mcpServers": {"github": ENTRY, "mail": ENTRY}})
    agent = {"useLegacyMcpJson": True, "tools": ["fs_read", "@github/read", "@mail"], "allowedTools": ["@mail/read"]}
    write(home / AGENTS[host] / "reviewer.json", agent)
    change = moved(toolscout, host)
    assert change["servers"] == ["mail"]
    assert change["notes"][0].startswith("github stays: a rule of the agent reviewer forbids tools of it")
    assert "tools of the agent reviewer: @mail" in lost_rules(change)
    assert "allowedTools of the agent reviewer: @mail/read" in lost_rules(change)


def test_an_agent_that_has_every_tool_or_not_these_servers_keeps_none_back(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["amazon-q"], {"mcpServers": {"github": ENTRY}})
    write(home / AGENTS["amazon-q"] / "free.json", {"useLegacyMcpJson": True, "tools": ["*", "@github/read"]})
    write(home / AGENTS["amazon-q"] / "other.json", {"tools": ["@github/read"]})
    assert moved(toolscout)["servers"] == ["github"]


def test_the_servers_of_an_agent_of_amazon_q_are_found_and_left_alone(home: Path, toolscout: Run) -> None:
    agent = {"mcpServers": {"github": ENTRY}, "tools": ["@github/read"]}
    file = write(home / AGENTS["amazon-q"] / "reviewer.json", agent)
    change = moved(toolscout)
    assert (change["done"], change["file"]) == ("skipped", str(file))
    assert "whose `tools` name its servers, is not rewritten" in change["notes"][0]
    assert read(file) == agent


@pytest.fixture
def managed(home: Path) -> Path:
    """Return the folder in which an administrator keeps the settings of Claude Code."""
    write(home / USER_FILES["claude-code"], {"mcpServers": {"github": ENTRY, "mail": {"command": "uvx"}}})
    return home / "managed"


def test_deny_rules_of_an_administrator_hold(toolscout: Run, managed: Path) -> None:
    write(managed / "managed-settings.json", {"permissions": {"deny": ["mcp__github__merge"]}})
    write(managed / "managed-settings.d" / "10-mail.json", {"permissions": {"deny": ["mcp__mail__send"]}})
    change = moved(toolscout)
    assert switched_off(change, "github", "merge", "read") == ["merge"]
    assert switched_off(change, "mail", "send", "read") == ["send"]


@pytest.mark.parametrize("rule", [{"serverName": "github"}, {"serverCommand": ["npx", "-y", "pkg"]}])
def test_a_server_that_an_administrator_denies_stays(toolscout: Run, managed: Path, rule: dict[str, Any]) -> None:
    write(managed / "managed-settings.json", {"deniedMcpServers": [rule]})
    change = moved(toolscout)
    assert (change["servers"], change["notes"][0]) == (["mail"], "github stays: the host has it switched off")


@pytest.mark.parametrize(
    ("file", "values", "reason"),
    [
        ("managed-settings.json", {"allowedMcpServers": [{"serverName": "github"}]}, "allowedMcpServers"),
        ("managed-mcp.json", {"mcpServers": {}}, "an administrator has chosen its servers"),
    ],
)
def test_claude_code_is_left_alone_where_an_administrator_would_not_let_toolscout_start(
    home: Path, toolscout: Run, managed: Path, file: str, values: dict[str, Any], reason: str
) -> None:
    write(managed / file, values)
    change = moved(toolscout)
    assert change["done"] == "skipped"
    assert reason in change["notes"][0]
    assert list(read(home / USER_FILES["claude-code"])["mcpServers"]) == ["github", "mail"]


@pytest.mark.parametrize("folder", ["", "project"])
def test_the_servers_in_continues_folder_are_found(home: Path, toolscout: Run, folder: str) -> None:
    blocks = home / folder / ".continue" / "mcpServers"
    write(blocks / "a.yaml", "name: A\nmcpServers:\n  - name: github\n    command: npx\n")
    write(blocks / "b.json", {"mcpServers": {"mail": ENTRY}})
    found = toolscout("import", "continue", "--json").json["found"]
    assert [[server["name"] for server in row["servers"]] for row in found] == [["github"], ["mail"]]
    assert {row["shared"] for row in found} == {bool(folder)}


def test_hooks_that_check_calls_keep_their_server_and_other_hooks_are_named(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["claude-code"], {"mcpServers": {"git": ENTRY, "git hub": ENTRY, "mail": ENTRY}})
    guard, logger = {"matcher": "mcp__git_hub__merge|Bash"}, {"matcher": "mcp__mail__.*"}
    write(home / ".claude" / "settings.json", {"hooks": {"PreToolUse": [guard], "PostToolUse": [logger]}})
    change = moved(toolscout, "claude-code")
    assert change["servers"] == ["git", "mail"]
    assert change["notes"][0].startswith(
        "git hub stays: the host checks its calls (hook PreToolUse mcp__git_hub__merge"
    )
    assert "hook PostToolUse mcp__mail__.*" in lost_rules(change)

    write(
        home / USER_FILES["gemini"],
        {"mcpServers": {"git": ENTRY}, "hooks": {"BeforeTool": [{"matcher": "mcp_git_.*"}]}},
    )
    assert moved(toolscout, "gemini")["done"] == "unchanged"

    write(home / USER_FILES["cursor"], {"mcpServers": {"git": ENTRY}})
    write(home / ".cursor" / "hooks.json", {"hooks": {"beforeMCPExecution": [{"command": "./check.sh"}]}})
    assert "hook beforeMCPExecution" in lost_rules(moved(toolscout, "cursor"))


def test_rules_of_a_project_that_allow_tools_are_named_with_it(home: Path, toolscout: Run) -> None:
    project = home / "work" / "shop"
    values = {
        "mcpServers": {"github": ENTRY},
        "projects": {str(project): {"allowedTools": ["mcp__github__read", "Bash"]}},
    }
    write(home / USER_FILES["claude-code"], values)
    write(project / ".claude" / "settings.local.json", {"permissions": {"allow": ["mcp__github__search"]}})
    change = moved(toolscout)
    assert change["servers"] == ["github"]
    assert f"mcp__github__read in {project}" in lost_rules(change)
    assert f"mcp__github__search in {project}" in lost_rules(change)
    assert "Bash" not in lost_rules(change)


def test_agents_in_files_of_their_own_count_like_those_in_a_config(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["claude-code"], {"mcpServers": {"github": ENTRY, "mail": ENTRY}})
    agent = (
        "---\nname: reviewer\ntools: Read, mcp__mail__search\ndisallowedTools: mcp__github__merge, Bash\n---\nReview."
    )
    write(home / ".claude" / "agents" / "reviewer.md", agent)
    write(home / ".claude" / "agents" / "broken.md", "---\ntools: [\n---\n")
    change = moved(toolscout, "claude-code")
    assert change["servers"] == ["mail"]
    assert change["notes"][0].startswith("github stays: a rule of the agent reviewer forbids tools of it")
    assert "tools of the agent reviewer: mcp__mail__search" in lost_rules(change)

    entry = {"type": "local", "command": ["npx"]}
    write(home / ".config" / "opencode" / "opencode.json", {"mcp": {"github": entry, "mail": entry}})
    write(home / ".config" / "opencode" / "agent" / "plan.md", "---\ntools:\n  github_*: false\n---\nPlan.\n")
    change = moved(toolscout, "opencode")
    assert change["servers"] == ["mail"]
    assert change["notes"][0].startswith("github stays: a rule of the agent plan forbids tools of it")


def test_the_file_of_an_agent_is_left_alone_also_when_it_is_named(home: Path, toolscout: Run) -> None:
    agent = {"mcpServers": {"github": ENTRY}, "tools": ["@github/read"]}
    for file in (home / AGENTS["amazon-q"] / "a.json", home / "project" / ".amazonq" / "cli-agents" / "b.json"):
        write(file, agent)
        assert moved(toolscout, str(file))["done"] == "skipped"
        assert read(file) == agent
