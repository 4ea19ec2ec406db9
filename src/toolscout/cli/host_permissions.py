"""The permission rules of a host: which tools of which server it allows without asking, or forbids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toolscout.cli.hosts import ServerList
from toolscout.config.files import load
from toolscout.errors import ConfigError

_CURSOR_RULE = re.compile(r"Mcp\(([^:()]*):?([^()]*)\)")
_CLAUDE_SETTINGS = ("settings.json", "settings.local.json")
_APPROVALS = ("autoApprove", "alwaysAllow", "trust")


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRule:
    """One rule of a host: a pattern of tools of one server, and whether they are forbidden."""

    server: str
    tools: str
    forbidden: bool
    text: str


def permission_rules(
    server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str], moving: Mapping[str, Any]
) -> Iterator[PermissionRule]:
    """Read the rules about servers that are to be moved, from the host's own files."""
    host = server_list.host.name
    for title, entry in moving.items():
        for name in _APPROVALS if isinstance(entry, Mapping) else ():
            if entry.get(name):
                yield PermissionRule(server=title, tools="*", forbidden=False, text=f"{name} of {title}")
    if host == "claude-code":
        for settings in claude_settings(server_list, environ):
            yield from _claude_rules(settings.get("permissions"), moving)
        project = project_values(server_list, values)
        if isinstance(project, Mapping):
            yield from _claude_rules({"allow": project.get("allowedTools")}, moving)
    elif host == "cursor":
        home = Path(environ.get("HOME") or Path.home())
        for file in (home / ".cursor" / "cli-config.json", Path(server_list.workspace) / ".cursor" / "cli.json"):
            yield from _cursor_rules(host_values(file).get("permissions"), moving)
        for folder in (home, Path(server_list.workspace)):
            for text in text_items(host_values(folder / ".cursor" / "permissions.json").get("mcpAllowlist")):
                for title in moving:
                    if fnmatchcase(title, text.partition(":")[0]):
                        yield PermissionRule(server=title, tools="*", forbidden=False, text=f"mcpAllowlist: {text}")
    elif host in ("gemini", "qwen"):
        tools = values.get("tools")
        tools = tools if isinstance(tools, Mapping) else {}
        for name in (*text_items(tools.get("exclude")), *text_items(values.get("excludeTools"))):
            server, _, tool = name.split("(")[0].partition("__")
            for title in moving:
                if not tool or server == title:
                    yield PermissionRule(
                        server=title, tools=tool or server, forbidden=True, text=f"excludeTools: {name}"
                    )
        yield from _claude_rules(values.get("permissions"), moving)
        yield from _policy_rules(server_list, environ, moving)
    elif host == "opencode":
        yield from _opencode_rules(values, moving)
    elif host == "zed":
        yield from _zed_rules(values, moving)


def partial_rules(
    server_list: ServerList, values: Mapping[str, Any], title: str
) -> Iterator[tuple[str, Iterator[PermissionRule]]]:
    """Yield rules that hold for one agent or one project alone, of a server that all of them have."""
    one = {title: None}
    if server_list.host.name == "opencode":
        for section in ("agent", "mode"):
            agents = values.get(section)
            for name, agent in agents.items() if isinstance(agents, Mapping) else ():
                if isinstance(agent, Mapping):
                    yield f"the agent {name}", _opencode_rules(agent, one)
    if server_list.host.name == "claude-code" and server_list.whole_user:
        projects = values.get("projects")
        for folder in projects if isinstance(projects, Mapping) else ():
            for name in _CLAUDE_SETTINGS:
                yield folder, _claude_rules(host_values(Path(folder) / ".claude" / name).get("permissions"), one)


def claude_settings(server_list: ServerList, environ: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of Claude Code that hold for a list: the user's, and those of its project."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    folders = [Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")]
    if not server_list.whole_user:
        folders.append(Path(server_list.workspace) / ".claude")
    for folder in folders:
        for name in _CLAUDE_SETTINGS:
            yield host_values(folder / name)


def project_values(server_list: ServerList, values: Mapping[str, Any]) -> Any:
    """Return what Claude Code's own file says about the project of a list."""
    projects = values.get("projects")
    return projects.get(server_list.workspace) if isinstance(projects, Mapping) else None


def host_values(file: Path, rows: str = "") -> Mapping[str, Any]:
    """Return the content of a file of the host, empty if it is not there or cannot be read."""
    try:
        return load(file) if file.is_file() else {}
    except ConfigError:
        import json

        try:
            content = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return {rows: content} if rows and isinstance(content, list) else {}


def text_items(value: Any) -> tuple[str, ...]:
    """Return the texts of a list. Anything else is an empty list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _claude_rules(permissions: Any, moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    for effect in ("allow", "ask", "deny"):
        for text in text_items(permissions.get(effect)) if isinstance(permissions, Mapping) else ():
            for title in moving:
                if tools := _claude_tools(text, title):
                    yield PermissionRule(server=title, tools=tools, forbidden=effect == "deny", text=text)


def _claude_tools(text: str, title: str) -> str:
    """Return the part of a rule that names tools of a server, or "" if it names none of them."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", title)
    rest = text.removeprefix(f"mcp__{name}")
    if rest != text and (not rest or rest.startswith("__")):
        return rest[2:].split("(")[0] or "*"
    server, _, tools = text.removeprefix("mcp__").partition("__")
    if text.startswith("mcp__") and "*" in server and fnmatchcase(name, server):
        return tools.split("(")[0] or "*"
    return ""


def _policy_rules(
    server_list: ServerList, environ: Mapping[str, str], moving: Mapping[str, Any]
) -> Iterator[PermissionRule]:
    """Read the policies of Gemini: TOML files of rules by `mcpName` and `toolName`."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    for folder in dict.fromkeys((home, Path(server_list.workspace))):
        for file in sorted((folder / f".{server_list.host.name}" / "policies").glob("*.toml")):
            rules = host_values(file).get("rule")
            for rule in rules if isinstance(rules, list) else ():
                if isinstance(rule, Mapping):
                    yield from _policy_rule(rule, file.name, moving)


def _policy_rule(rule: Mapping[str, Any], file: str, moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    server, names = rule.get("mcpName"), rule.get("toolName")
    for name in [names or "*"] if isinstance(names, str | None) else text_items(names):
        for title in moving:
            tools = name if isinstance(server, str) and fnmatchcase(title, server) else ""
            for prefix in (f"{title}__", f"mcp_{title}_"):
                tools = name.removeprefix(prefix) if name.startswith(prefix) else tools
            if tools:
                text = f"{file}: {title} {name}" if server else f"{file}: {name}"
                yield PermissionRule(server=title, tools=tools, forbidden=rule.get("decision") == "deny", text=text)


def _cursor_rules(permissions: Any, moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    for effect in ("allow", "deny"):
        for text in text_items(permissions.get(effect)) if isinstance(permissions, Mapping) else ():
            match = _CURSOR_RULE.fullmatch(text)
            for title in moving if match else ():
                if match and fnmatchcase(title, match[1] or "*"):
                    yield PermissionRule(server=title, tools=match[2] or "*", forbidden=effect == "deny", text=text)


def _opencode_rules(values: Mapping[str, Any], moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    """Read `tools` and `permission`: patterns of `<server>_<tool>`."""
    for section in ("tools", "permission"):
        rules = values.get(section)
        for pattern, effect in rules.items() if isinstance(rules, Mapping) else ():
            for title in moving:
                tools = _opencode_tools(str(pattern), title)
                if tools and effect is not True and effect != "allow":
                    yield PermissionRule(
                        server=title, tools=tools, forbidden=effect in (False, "deny"), text=f"{section}: {pattern}"
                    )


def _opencode_tools(pattern: str, title: str) -> str:
    """Return the part of a pattern that names tools of a server, or "" if it names none of them."""
    if pattern.startswith(f"{title}_"):
        return pattern.removeprefix(f"{title}_")
    head, star, _ = pattern.partition("*")
    if star and f"{title}_".startswith(head):
        return "*" if pattern.endswith("*") and pattern.count("*") == 1 else f"*{pattern.rpartition('*')[2]}"
    return ""


def _zed_rules(values: Mapping[str, Any], moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    agent = values.get("agent")
    permissions = agent.get("tool_permissions") if isinstance(agent, Mapping) else None
    tools = permissions.get("tools") if isinstance(permissions, Mapping) else None
    for name, rule in tools.items() if isinstance(tools, Mapping) else ():
        kind, _, rest = str(name).partition(":")
        title, _, tool = rest.partition(":")
        if kind == "mcp" and title in moving:
            denied = isinstance(rule, Mapping) and rule.get("default") == "deny"
            yield PermissionRule(server=title, tools=tool or "*", forbidden=denied, text=str(name))
