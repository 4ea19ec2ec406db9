"""Rules that hold for one agent, profile or project of a host, and hooks. Toolscout cannot tell these callers apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolscout.cli.host_permissions import (
    CLAUDE_SETTINGS,
    PermissionRule,
    claude_rules,
    claude_settings,
    front_matter,
    host_values,
    opencode_rules,
    text_items,
)
from toolscout.cli.hosts import ServerList, home_folder, user_file

_AGENT_FOLDERS = {
    "amazon-q": (".aws/amazonq/cli-agents", ".aws/amazonq/agents", ".amazonq/cli-agents", ".amazonq/agents"),
    "kiro": (".kiro/agents",),
}
"""Where a host keeps its agents, in the home and in a project."""
_OPENCODE_FOLDERS = ("agent", "agents", "mode", "modes")
_EVERY_TOOL = "*"
_BEFORE_CALL = frozenset({"PreToolUse", "PermissionRequest", "BeforeTool"})
"""Hooks that can refuse a call."""
_EVERY_CALL = "beforeMCPExecution"
"""Cursor's hook for the calls of all servers. It sees toolscout's tools then."""


def partial_rules(
    server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str], title: str
) -> Iterator[str]:
    """Yield who may not use all tools of a server that others may use."""
    host, one = server_list.host.name, {title: None}
    if host == "opencode":
        for name, agent in _opencode_agents(server_list, values, environ):
            if any(rule.forbidden for rule in opencode_rules(agent, one)):
                yield f"the agent {name}"
    elif host == "claude-code":
        for folder, permissions in _claude_projects(server_list, values):
            if any(rule.forbidden for rule in claude_rules(permissions, one)):
                yield folder
        for name, _, refused in _claude_agents(server_list, environ):
            if any(claude_rules({"deny": refused}, one)):
                yield f"the agent {name}"
    elif host == "zed":
        profiles = _zed_profiles(environ)
        for name, profile in profiles.items():
            if profile.forbidden(title) - _forbidden_by_all(profiles, title):
                yield f"the profile {name}"
    for name, agent in _agents(server_list, environ):
        tools = text_items(agent.get("tools"))
        if _EVERY_TOOL not in tools and f"@{title}" not in tools and any(_is_of(title, tool) for tool in tools):
            yield f"the agent {name}"


def agent_rules(
    server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str], moving: Mapping[str, Any]
) -> Iterator[PermissionRule]:
    """Read the rules of agents, profiles and projects: what all forbid, and what some allow by a server's name."""
    if server_list.host.name == "claude-code":
        for folder, permissions in _claude_projects(server_list, values):
            for rule in claude_rules({**permissions, "deny": []}, moving):
                yield replace(rule, text=f"{rule.text} in {folder}")
        for name, allowed, _ in _claude_agents(server_list, environ):
            for rule in claude_rules({"allow": allowed}, moving):
                yield replace(rule, text=f"tools of the agent {name}: {rule.text}")
    if server_list.host.name == "zed":
        profiles = _zed_profiles(environ)
        for title in moving:
            for tool in sorted(_forbidden_by_all(profiles, title)):
                yield PermissionRule(server=title, tools=tool, forbidden=True, text=f"every profile: {title}:{tool}")
    for name, agent in _agents(server_list, environ):
        for field in ("tools", "allowedTools"):
            for text in text_items(agent.get(field)):
                for title in moving:
                    if _is_of(title, text):
                        where = f"{field} of the agent {name}: {text}"
                        yield PermissionRule(server=title, tools=_EVERY_TOOL, forbidden=False, text=where)


def hook_rules(
    server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str], moving: Mapping[str, Any]
) -> Iterator[PermissionRule]:
    """Read the hooks that a host runs at calls of a server's tools. It is `forbidden` where one can refuse a call."""
    for hooks in _hooks(server_list, values, environ):
        for event, rows in hooks.items():
            for row in rows if isinstance(rows, list) else ():
                matcher = str(_tables(row).get("matcher") or "")
                text, refuses = f"hook {event} {matcher}".strip(), event in _BEFORE_CALL
                for title in moving:
                    if event == _EVERY_CALL or _is_named(title, matcher):
                        yield PermissionRule(server=title, tools=_EVERY_TOOL, forbidden=refuses, text=text)


def _hooks(
    server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[Mapping[str, Any]]:
    host, home = server_list.host.name, home_folder(environ)
    if host == "claude-code":
        for settings in claude_settings(server_list, environ):
            yield _tables(settings.get("hooks"))
        for folder in _claude_folders(server_list, values):
            for name in CLAUDE_SETTINGS:
                yield _tables(host_values(Path(folder) / ".claude" / name).get("hooks"))
    elif host in ("gemini", "qwen"):
        yield _tables(values.get("hooks"))
    elif host == "cursor":
        for root in dict.fromkeys((home, Path(server_list.workspace))):
            yield _tables(host_values(root / ".cursor" / "hooks.json").get("hooks"))


def _is_named(title: str, matcher: str) -> bool:
    """Return whether the pattern of a hook names a server: `mcp__server__tool`, or Gemini's `mcp_server_tool`."""
    name = re.escape(re.sub(r"[^A-Za-z0-9_-]", "_", title))
    return bool(re.search(rf"mcp__{name}(?=__|[^\w-]|$)|mcp_{name}_|(?<![\w-]){name}__", matcher))


def _claude_folders(server_list: ServerList, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the projects that a list for all projects applies to, as far as Claude Code knows them."""
    yield from _tables(values.get("projects")) if server_list.whole_user else ()


def _claude_projects(server_list: ServerList, values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield those projects, each with permissions that hold in it."""
    for folder in _claude_folders(server_list, values):
        project = _tables(_tables(values.get("projects")).get(folder))
        yield folder, {"allow": project.get("allowedTools")}
        for name in CLAUDE_SETTINGS:
            yield folder, _tables(host_values(Path(folder) / ".claude" / name).get("permissions"))


def _claude_agents(server_list: ServerList, environ: Mapping[str, str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the agents of Claude Code, each with the tools that it may and may not use."""
    home = Path(environ.get("CLAUDE_CONFIG_DIR") or home_folder(environ) / ".claude")
    for folder in dict.fromkeys((home, Path(server_list.workspace) / ".claude")):
        for file in sorted((folder / "agents").rglob("*.md")):
            fields = front_matter(file)
            name = str(fields.get("name") or file.stem)
            yield name, _names(fields.get("tools")), _names(fields.get("disallowedTools"))


def _opencode_agents(
    server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the agents of OpenCode: those in its config, and those with a file of their own."""
    for section in ("agent", "mode"):
        yield from ((name, _tables(agent)) for name, agent in _tables(values.get(section)).items())
    folders = (user_file("opencode", environ).parent, Path(server_list.workspace) / ".opencode")
    for folder in (folder / name for folder in dict.fromkeys(folders) for name in _OPENCODE_FOLDERS):
        yield from ((file.stem, front_matter(file)) for file in sorted(folder.glob("*.md")))


def _names(value: Any) -> list[str]:
    """Return a list of names, which may be written as one text with commas."""
    items = value.split(",") if isinstance(value, str) else text_items(value)
    return [item.strip() for item in items]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZedProfile:
    """Which tools one profile of Zed offers. What it says of a single tool counts more than `every_server`."""

    every_server: bool
    servers: Mapping[str, Any]

    def forbidden(self, title: str) -> set[str]:
        """Return the forbidden tools of a server, `*` for all others. A profile without the server forbids nothing.

        Nor does it have toolscout after the move, unless its user adds it.
        """
        server = self.servers.get(title)
        tools = _tables(server).get("tools") if isinstance(server, Mapping) else None
        switches = {str(tool): on for tool, on in _tables(tools).items() if isinstance(on, bool)}
        if not self.every_server and not any(switches.values()):
            return set()
        forbidden = {tool for tool, on in switches.items() if not on}
        return forbidden if self.every_server else forbidden | {_EVERY_TOOL}

    def offers(self, title: str) -> bool:
        """Return whether it has the server at all."""
        return self.every_server or _EVERY_TOOL in self.forbidden(title)


def _zed_profiles(environ: Mapping[str, str]) -> dict[str, ZedProfile]:
    """Return the profiles of the user. The one that Zed starts with is there also if the file does not name it."""
    agent = host_values(user_file("zed", environ)).get("agent")
    profiles = {"write": {}, **_tables(_tables(agent).get("profiles"))}
    return {
        name: ZedProfile(
            every_server=bool(_tables(profile).get("enable_all_context_servers", name == "write")),
            servers=_tables(_tables(profile).get("context_servers")),
        )
        for name, profile in profiles.items()
    }


def _forbidden_by_all(profiles: Mapping[str, ZedProfile], title: str) -> set[str]:
    """Return the tools that no profile offers, of those that are named one by one."""
    named = [profile.forbidden(title) for profile in profiles.values() if profile.offers(title)]
    return set.intersection(*named) - {_EVERY_TOOL} if named else set()


def _agents(server_list: ServerList, environ: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the agents that get the servers of the host's own list, each with its name."""
    roots = dict.fromkeys((home_folder(environ), Path(server_list.workspace)))
    for folder in (root / path for root in roots for path in _AGENT_FOLDERS.get(server_list.host.name, ())):
        for file in sorted(folder.glob("*.json")):
            agent = host_values(file)
            if agent.get("useLegacyMcpJson") or agent.get("includeMcpJson"):
                yield str(agent.get("name") or file.stem), agent


def _is_of(title: str, text: str) -> bool:
    """Return whether a rule of an agent names a server, `@server`, or one of its tools, `@server/tool`."""
    return text.partition("/")[0] == f"@{title}"


def _tables(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
