"""What else a host says about its servers: rules, sign-ins, switches. An import must lose none of it silently.

A rule that forbids a tool is translated. Other rules are named, because they no longer match once the agent calls the
tool through toolscout. A server that only its host can start or sign in to stays with the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolscout.cli.host_permissions import (
    claude_settings,
    host_values,
    partial_rules,
    permission_rules,
    project_values,
    text_items,
)
from toolscout.cli.hosts import ServerList
from toolscout.config.read import is_extension

_CREDENTIALS = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var")
_SIGN_IN = ("oauth", "auth", "authProviderType", "authorization_token")
_PRIVATE_HOSTS = re.compile(r"localhost|.*\.localhost|127\.\d+\.\d+\.\d+|::1|0\.0\.0\.0", re.I)
LOST = re.compile(
    r"(?:(?:HTTPS?|ALL|NO|FTP)_PROXY|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|DENO_CERT|"
    r"NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA|NODE_TLS_REJECT_UNAUTHORIZED|PIP_(?:\w*INDEX_URL|CERT)|UV_\w*(?:INDEX|CERTS|TLS)\w*|"
    r"NPM_CONFIG_\w+|AWS_\w+|GOOGLE_\w+|GCLOUD_\w+|CLOUDSDK_\w+|AZURE_\w+|ARM_\w+|KUBECONFIG|DOCKER_\w+|SSH_AUTH_SOCK)",
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


def host_rules(server_list: ServerList, environ: Mapping[str, str]) -> HostRules:
    """Read what the host's own files say about the servers of a list."""
    values = host_values(server_list.file)
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
    for rule in permission_rules(server_list, values, environ, moving):
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
    return HostRules(staying=staying, options=options, notes=(*notes, *_url_notes(moving)))


def start_refusal(server_list: ServerList) -> str:
    """Return why the host would not start toolscout, or ""."""
    values = host_values(server_list.file)
    nested = values.get("mcp")
    nested = nested if isinstance(nested, Mapping) else {}
    allowed = text_items(nested.get("allowed")) or text_items(values.get("allowMCPServers"))
    if server_list.host.name in ("gemini", "qwen") and allowed and "toolscout" not in allowed:
        return "it starts only the servers that mcp.allowed names: add toolscout to that list first"
    return ""


def lost_variables_note(
    server_list: ServerList, rules: HostRules, environ: Mapping[str, str], target: Path
) -> Iterator[str]:
    """Name the variables that a server got from the host and no longer gets, and the line that keeps one."""
    if server_list.host.lists_variables:
        return  # its servers never got them
    lost = {name for name in environ if LOST.fullmatch(name)}
    losing: dict[str, list[str]] = {}
    for title, entry in server_list.others.items():
        if title not in rules.staying and isinstance(entry, Mapping) and entry.get("command"):
            for name in sorted(lost - {*(entry.get("env") or ()), *(entry.get("environment") or ())}):
                losing.setdefault(name, []).append(title)
    for names, titles in _same_titles(losing):
        line = f'"env": {{"{names[0]}": "${{{names[0]}}}"}}'
        lost_by = f"{', '.join(titles)} without {', '.join(names)}"
        yield f"toolscout starts {lost_by}. To keep one, add it to the entry in {target}: {line}"


def _same_titles(losing: Mapping[str, list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Group the variables that the same servers lose."""
    for titles in dict.fromkeys(map(tuple, losing.values())):
        yield [name for name in losing if tuple(losing[name]) == titles], list(titles)


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


def _url_notes(moving: Mapping[str, Any]) -> Iterator[str]:
    remote = {
        title: entry for title, entry in moving.items() if isinstance(entry, Mapping) and not entry.get("command")
    }
    if remote:
        yield (
            f"servers behind a URL are not trusted ({', '.join(remote)}): their claim that a tool only reads does not "
            'count. `"toolscout": {"trusted": true}` in an entry changes that'
        )
    signed_in = [
        title
        for title, entry in remote.items()
        if not any(entry.get(name) for name in _CREDENTIALS) and not is_loopback_url(entry)
    ]
    if signed_in:
        yield (
            f"if you signed in to {' or '.join(signed_in)} in a browser, only the host has that token: "
            "`toolscout doctor` shows what answers, and `toolscout import --undo` puts everything back"
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
    for who, rules in partial_rules(server_list, values, title):
        if any(rule.forbidden for rule in rules):
            return f"a rule of {who} forbids tools of it, and toolscout cannot tell who calls"
    return ""


def _signed_in(server_list: ServerList, environ: Mapping[str, str]) -> set[str]:
    """Return the servers for which the host keeps a token, as far as its files tell."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    host = server_list.host.name
    if host == "claude-code":
        folder = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        tokens = host_values(folder / ".credentials.json").get("mcpOAuth")
        return {name.split("|")[0] for name in tokens} if isinstance(tokens, Mapping) else set()
    if host in ("gemini", "qwen"):
        tokens = host_values(home / f".{host}" / "mcp-oauth-tokens.json", rows="tokens").get("tokens")
        return {str(row.get("serverName")) for row in tokens or () if isinstance(row, Mapping)}
    if host == "codex":
        folder = Path(environ.get("CODEX_HOME") or home / ".codex")
        tokens = host_values(folder / ".credentials.json")
        return {str(row.get("server_name")) for row in tokens.values() if isinstance(row, Mapping)}
    return set()


def _switched_off(server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str]) -> set[str]:
    """Return the servers that the host does not start, by lists outside of their entries."""
    host = server_list.host.name
    if host in ("gemini", "qwen"):
        nested = values.get("mcp")
        nested = nested if isinstance(nested, Mapping) else {}
        allowed = nested.get("allowed") or values.get("allowMCPServers")
        excluded = {*text_items(nested.get("excluded")), *text_items(values.get("excludeMCPServers"))}
        others = set(server_list.others) - set(text_items(allowed)) if allowed else set()
        return excluded | others
    if host == "claude-code":
        project = value if isinstance(value := project_values(server_list, values), Mapping) else {}
        names = {*text_items(project.get("disabledMcpServers"))}
        if server_list.shared:
            names |= {*text_items(project.get("disabledMcpjsonServers"))}
            for settings in claude_settings(server_list, environ):
                names |= {*text_items(settings.get("disabledMcpjsonServers"))}
        return names
    return set()
