"""The permission rules of a host: which tools of which server it allows without asking, or forbids."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toolscout.cli.hosts import ServerList, home_folder
from toolscout.config.files import load, read_text
from toolscout.config.yaml_1_2 import read_yaml
from toolscout.errors import ConfigError

_CURSOR_RULE = re.compile(r"Mcp\(([^:()]*):?([^()]*)\)")
CLAUDE_SETTINGS = ("settings.json", "settings.local.json")
_APPROVALS = ("autoApprove", "alwaysAllow", "trust", "default_tools_approval_mode")
_GOOSE_EFFECTS = ("never_allow", "ask_before", "always_allow")
_CONTINUE_TOOLS = frozenset(
    "* Bash Checklist Diff Edit Exit Fetch List MultiEdit Read Search Skills Status Subagent Write".split()
)
"""Tools of Continue's own."""
MANAGED_FOLDERS = {
    "darwin": (Path("/Library/Application Support/ClaudeCode"),),
    "win32": (Path("C:/Program Files/ClaudeCode"), Path("C:/ProgramData/ClaudeCode")),
    "linux": (Path("/etc/claude-code"),),
}
"""Where administrators put settings of Claude Code, by platform."""


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
        tools = entry.get("tools") if isinstance(entry, Mapping) else None
        for tool, rule in tools.items() if isinstance(tools, Mapping) else ():
            if isinstance(rule, Mapping) and rule.get("approval_mode"):
                text = f"approval_mode of {tool} of {title}"
                yield PermissionRule(server=title, tools=str(tool), forbidden=False, text=text)
    if host == "claude-code":
        for settings in claude_settings(server_list, environ):
            yield from claude_rules(settings.get("permissions"), moving)
        project = project_values(server_list, values)
        if isinstance(project, Mapping):
            yield from claude_rules({"allow": project.get("allowedTools")}, moving)
    elif host == "cursor":
        home = home_folder(environ)
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
        for name in (*text_items(tools.get("allowed")), *text_items(values.get("allowedTools"))):
            for title in moving:
                if name.startswith((f"{title}__", f"mcp_{title}_", f"mcp__{title}__")):
                    yield PermissionRule(server=title, tools="*", forbidden=False, text=f"tools.allowed: {name}")
        yield from claude_rules(values.get("permissions"), moving)
        yield from _policy_rules(server_list, environ, moving)
    elif host == "opencode":
        yield from opencode_rules(values, moving)
    elif host == "zed":
        yield from _zed_rules(values, moving)
    elif host == "goose":
        yield from _goose_rules(host_values(server_list.file.parent / "permission.yaml"), moving)
    elif host == "continue":
        yield from _continue_rules(host_values(home_folder(environ) / ".continue" / "permissions.yaml"), moving)


def claude_settings(server_list: ServerList, environ: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of Claude Code that hold for a list: the administrator's, the user's, and its project's."""
    for folder in managed_folders():
        for file in (folder / "managed-settings.json", *sorted((folder / "managed-settings.d").glob("*.json"))):
            yield host_values(file)
    folders = [Path(environ.get("CLAUDE_CONFIG_DIR") or home_folder(environ) / ".claude")]
    if not server_list.whole_user:
        folders.append(Path(server_list.workspace) / ".claude")
    for folder in folders:
        for name in CLAUDE_SETTINGS:
            yield host_values(folder / name)


def managed_folders() -> tuple[Path, ...]:
    """Return the folders of an administrator's settings of Claude Code on this platform."""
    return MANAGED_FOLDERS.get(sys.platform, MANAGED_FOLDERS["linux"])


def project_values(server_list: ServerList, values: Mapping[str, Any]) -> Any:
    """Return what Claude Code's own file says about the project of a list."""
    projects = values.get("projects")
    return projects.get(server_list.workspace) if isinstance(projects, Mapping) else None


def host_values(file: Path) -> Mapping[str, Any]:
    """Return the content of a file of the host, empty if it is not there or cannot be read."""
    try:
        return load(file) if file.is_file() else {}
    except ConfigError:
        return {}


def front_matter(file: Path) -> Mapping[str, Any]:
    """Return the fields at the top of a Markdown file, empty if there are none that can be read."""
    try:
        _, _, rest = read_text(file).partition("---")
        fields, end, _ = rest.partition("\n---")
        return read_yaml(fields, str(file)) if end else {}
    except (ConfigError, ValueError, RecursionError):
        return {}


def text_items(value: Any) -> tuple[str, ...]:
    """Return the texts of a list. Anything else is an empty list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def claude_rules(permissions: Any, moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    """Read `allow`, `ask` and `deny`: names such as `mcp__server__tool`."""
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
    for folder in dict.fromkeys((home_folder(environ), Path(server_list.workspace))):
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


def opencode_rules(values: Mapping[str, Any], moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
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


def _goose_rules(permissions: Mapping[str, Any], moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    """Read the permissions that a user gave in Goose: names such as `server__tool`. What Goose guessed is no rule."""
    user = permissions.get("user")
    given = user if isinstance(user, Mapping) else {}
    for effect in _GOOSE_EFFECTS:
        for name in text_items(given.get(effect)):
            server, _, tool = name.partition("__")
            if server in moving and tool:
                forbidden = effect == "never_allow"
                yield PermissionRule(server=server, tools=tool, forbidden=forbidden, text=f"{effect}: {name}")


def _continue_rules(permissions: Mapping[str, Any], moving: Mapping[str, Any]) -> Iterator[PermissionRule]:
    """Read the permissions of Continue's command line, which name a tool without its server."""
    for effect in ("exclude", "ask", "allow"):
        for text in text_items(permissions.get(effect)):
            name = text.split("(")[0].strip()
            for title in moving if name not in _CONTINUE_TOOLS else ():
                yield PermissionRule(server=title, tools=name, forbidden=effect == "exclude", text=f"{effect}: {text}")
