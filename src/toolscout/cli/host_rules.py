"""What else a host says about its servers: rules, sign-ins, switches. An import must lose none of it silently.

A rule that forbids a tool is translated. Other rules are named, because they no longer match once the agent calls the
tool through toolscout. A server that only its host can start or sign in to stays with the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolscout.cli.hosts import ServerList
from toolscout.config.files import load
from toolscout.config.read import is_extension
from toolscout.errors import ConfigError

_CURSOR_RULE = re.compile(r"Mcp\(([^:()]*):?([^()]*)\)")
_APPROVALS = ("autoApprove", "alwaysAllow", "trust")
_SIGN_IN = ("oauth", "auth", "authProviderType", "authorization_token")
_PRIVATE_HOSTS = re.compile(r"localhost|.*\.localhost|127\.\d+\.\d+\.\d+|::1|0\.0\.0\.0", re.I)
LOST = re.compile(
    r"(?:(?:HTTPS?|ALL|NO|FTP)_PROXY|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|"
    r"NODE_TLS_REJECT_UNAUTHORIZED|PIP_INDEX_URL|UV_INDEX_URL|NPM_CONFIG_\w+|AWS_\w+|GOOGLE_\w+|GCLOUD_\w+|CLOUDSDK_\w+|AZURE_\w+|"
    r"KUBECONFIG|DOCKER_HOST|SSH_AUTH_SOCK)",
    re.I,
)
"""Variables that a process needs to reach the network or a cloud. Hosts pass them on, toolscout does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """The rules of a host about the servers of one list."""

    staying: Mapping[str, str] = field(default_factory=dict)
    """The servers that must stay with the host, each with the reason."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Toolscout's own fields for the servers that move: forbidden tools, private addresses."""
    notes: tuple[str, ...] = ()
    """What the user has to know, because it changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """One rule of a host: a pattern of tools of one server, and whether they are forbidden."""

    server: str
    tools: str
    forbidden: bool
    text: str


def host_rules(server_list: ServerList, environ: Mapping[str, str]) -> HostRules:
    """Read what the host's own files say about the servers of a list."""
    values = _values(server_list.file)
    staying = {
        title: reason
        for title, entry in server_list.others.items()
        if (reason := _stays(title, entry, server_list, values, environ))
    }
    moving = {title: entry for title, entry in server_list.others.items() if title not in staying}
    options: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for title, entry in moving.items():
        if is_loopback_url(entry):
            options.setdefault(title, {})["private"] = True
            notes.append(f"{title} is on this machine, so its address is allowed: `private` is set for it")
    lost: list[str] = []
    for rule in _rules(server_list, values, environ, moving):
        if rule.forbidden:
            options.setdefault(rule.server, {}).setdefault("tools", {})[rule.tools] = {"enabled": False}
            notes.append(f"{rule.text} forbids {rule.tools} of {rule.server}: it is switched off in toolscout too")
        else:
            lost.append(rule.text)
    if lost:
        notes.append(
            f"these rules of {server_list.host.title} no longer match, since the agent now calls toolscout's tools: "
            f"{', '.join(dict.fromkeys(lost))}"
        )
    return HostRules(staying=staying, options=options, notes=(*notes, *_untrusted_note(moving)))


def start_refusal(server_list: ServerList) -> str:
    """Return why the host would not start toolscout, or ""."""
    values = _values(server_list.file)
    nested = values.get("mcp")
    nested = nested if isinstance(nested, Mapping) else {}
    allowed = _names(nested.get("allowed")) or _names(values.get("allowMCPServers"))
    if server_list.host.name in ("gemini", "qwen") and allowed and "toolscout" not in allowed:
        return "it starts only the servers that mcp.allowed names: add toolscout to that list first"
    return ""


def lost_variables_note(server_list: ServerList, environ: Mapping[str, str], target: Path) -> str:
    """Name the variables that the servers got from the host and no longer get, and the line that keeps one."""
    commands = [entry for entry in server_list.others.values() if isinstance(entry, Mapping) and entry.get("command")]
    passed = {name for entry in commands for name in (*(entry.get("env") or ()), *(entry.get("environment") or ()))}
    names = sorted(name for name in environ if LOST.fullmatch(name) and name not in passed)
    if not commands or not names:
        return ""
    line = f'"env": {{"{names[0]}": "${{{names[0]}}}"}}'
    return f"its commands no longer get {', '.join(names)}. To keep one, add it to a server in {target}: {line}"


def is_loopback_url(entry: Any) -> bool:
    """Return whether an entry names a server on this machine."""
    if not isinstance(entry, Mapping):
        return False
    url = next((entry[name] for name in ("httpUrl", "url", "serverUrl") if isinstance(entry.get(name), str)), "")
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return _PRIVATE_HOSTS.fullmatch(host) is not None


def _untrusted_note(moving: Mapping[str, Any]) -> Iterator[str]:
    remote = [title for title, entry in moving.items() if isinstance(entry, Mapping) and not entry.get("command")]
    if remote:
        yield (
            f"servers behind a URL are not trusted ({', '.join(remote)}): their claim that a tool only reads does not "
            'count. `"toolscout": {"trusted": true}` in an entry changes that'
        )


def _stays(
    title: str, entry: Any, server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str]
) -> str:
    """Return why only the host can use this server, or ""."""
    if not isinstance(entry, Mapping):
        return ""
    if is_extension(entry):
        return "an extension of the host starts it"
    if any(entry.get(name) for name in _SIGN_IN):
        return "the host signs in to it"
    if not entry.get("command") and title in _signed_in(server_list, environ):
        return "the host has signed in to it"
    if title in _switched_off(server_list, values, environ):
        return "the host has it switched off"
    return ""


def _signed_in(server_list: ServerList, environ: Mapping[str, str]) -> set[str]:
    """Return the servers for which the host keeps a token, as far as its files tell."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    host = server_list.host.name
    if host == "claude-code":
        folder = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        tokens = _values(folder / ".credentials.json").get("mcpOAuth")
        return {name.split("|")[0] for name in tokens} if isinstance(tokens, Mapping) else set()
    if host in ("gemini", "qwen"):
        tokens = _values(home / f".{host}" / "mcp-oauth-tokens.json", rows="tokens").get("tokens")
        return {str(row.get("serverName")) for row in tokens or () if isinstance(row, Mapping)}
    if host == "codex":
        folder = Path(environ.get("CODEX_HOME") or home / ".codex")
        tokens = _values(folder / ".credentials.json")
        return {str(row.get("server_name")) for row in tokens.values() if isinstance(row, Mapping)}
    return set()


def _switched_off(server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str]) -> set[str]:
    """Return the servers that the host does not start, by lists outside of their entries."""
    host = server_list.host.name
    if host in ("gemini", "qwen"):
        nested = values.get("mcp")
        nested = nested if isinstance(nested, Mapping) else {}
        allowed = nested.get("allowed") or values.get("allowMCPServers")
        excluded = {*_names(nested.get("excluded")), *_names(values.get("excludeMCPServers"))}
        others = set(server_list.others) - set(_names(allowed)) if allowed else set()
        return excluded | others
    if host == "claude-code":
        project = value if isinstance(value := _project(server_list, values), Mapping) else {}
        names = {*_names(project.get("disabledMcpServers"))}
        if server_list.shared:
            names |= {*_names(project.get("disabledMcpjsonServers"))}
            for settings in _claude_settings(server_list, environ):
                names |= {*_names(settings.get("disabledMcpjsonServers"))}
        return names
    return set()


def _rules(
    server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str], moving: Mapping[str, Any]
) -> Iterator[_Rule]:
    host = server_list.host.name
    for title, entry in moving.items():
        for name in _APPROVALS if isinstance(entry, Mapping) else ():
            if entry.get(name):
                yield _Rule(server=title, tools="*", forbidden=False, text=f"{name} of {title}")
    if host == "claude-code":
        for settings in _claude_settings(server_list, environ):
            yield from _claude_rules(settings.get("permissions"), moving)
        project = _project(server_list, values)
        if isinstance(project, Mapping):
            yield from _claude_rules({"allow": project.get("allowedTools")}, moving)
    elif host == "cursor":
        home = Path(environ.get("HOME") or Path.home())
        for file in (home / ".cursor" / "cli-config.json", Path(server_list.workspace) / ".cursor" / "cli.json"):
            yield from _cursor_rules(_values(file).get("permissions"), moving)
    elif host in ("gemini", "qwen"):
        tools = values.get("tools")
        tools = tools if isinstance(tools, Mapping) else {}
        for name in (*_names(tools.get("exclude")), *_names(values.get("excludeTools"))):
            server, _, tool = name.split("(")[0].partition("__")
            for title in moving:
                if not tool or server == title:
                    yield _Rule(server=title, tools=tool or server, forbidden=True, text=f"excludeTools: {name}")
    elif host == "opencode":
        yield from _opencode_rules(values, moving)
    elif host == "zed":
        yield from _zed_rules(values, moving)


def _claude_rules(permissions: Any, moving: Mapping[str, Any]) -> Iterator[_Rule]:
    for effect in ("allow", "ask", "deny"):
        for text in _names(permissions.get(effect)) if isinstance(permissions, Mapping) else ():
            for title in moving:
                prefix = "mcp__" + re.sub(r"[^A-Za-z0-9_-]", "_", title)
                rest = text.removeprefix(prefix)
                if rest != text and (not rest or rest.startswith("__")):
                    tools = rest[2:].split("(")[0] or "*"
                    yield _Rule(server=title, tools=tools, forbidden=effect == "deny", text=text)


def _cursor_rules(permissions: Any, moving: Mapping[str, Any]) -> Iterator[_Rule]:
    for effect in ("allow", "deny"):
        for text in _names(permissions.get(effect)) if isinstance(permissions, Mapping) else ():
            match = _CURSOR_RULE.fullmatch(text)
            for title in moving if match else ():
                if match and fnmatchcase(title, match[1] or "*"):
                    yield _Rule(server=title, tools=match[2] or "*", forbidden=effect == "deny", text=text)


def _opencode_rules(values: Mapping[str, Any], moving: Mapping[str, Any]) -> Iterator[_Rule]:
    """Read `tools` and `permission`: patterns of `<server>_<tool>`."""
    for section in ("tools", "permission"):
        rules = values.get(section)
        for pattern, effect in rules.items() if isinstance(rules, Mapping) else ():
            for title in moving:
                tools = _opencode_tools(str(pattern), title)
                if tools and effect is not True and effect != "allow":
                    yield _Rule(
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


def _zed_rules(values: Mapping[str, Any], moving: Mapping[str, Any]) -> Iterator[_Rule]:
    agent = values.get("agent")
    permissions = agent.get("tool_permissions") if isinstance(agent, Mapping) else None
    tools = permissions.get("tools") if isinstance(permissions, Mapping) else None
    for name, rule in tools.items() if isinstance(tools, Mapping) else ():
        kind, _, rest = str(name).partition(":")
        title, _, tool = rest.partition(":")
        if kind == "mcp" and title in moving:
            denied = isinstance(rule, Mapping) and rule.get("default") == "deny"
            yield _Rule(server=title, tools=tool or "*", forbidden=denied, text=str(name))


def _claude_settings(server_list: ServerList, environ: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    folders = [Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")]
    if not server_list.whole_user:
        folders.append(Path(server_list.workspace) / ".claude")
    for folder in folders:
        for name in ("settings.json", "settings.local.json"):
            yield _values(folder / name)


def _project(server_list: ServerList, values: Mapping[str, Any]) -> Any:
    projects = values.get("projects")
    return projects.get(server_list.workspace) if isinstance(projects, Mapping) else None


def _values(file: Path, rows: str = "") -> Mapping[str, Any]:
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


def _names(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
