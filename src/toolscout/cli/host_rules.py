"""What else a host says about its servers: rules, sign-ins, switches. An import must lose none of it silently.

A rule that forbids a tool is translated. Other rules are named, because they no longer match once the agent calls the
tool through toolscout. A server that only its host can start or sign in to stays with the host.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toolscout.cli.host_agents import agent_rules, hook_rules, partial_rules
from toolscout.cli.host_permissions import (
    claude_settings,
    host_values,
    managed_folders,
    permission_rules,
    project_values,
    text_items,
)
from toolscout.cli.hosts import ServerList, command_of, host_name
from toolscout.config.read import entry_problem, is_extension
from toolscout.loopback import is_loopback

_CREDENTIALS = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var", "requestOptions", "apiKey")
_SIGN_IN = ("oauth", "auth", "authProviderType", "authorization_token")
_HOST_ONLY = {
    "headersHelper": "a program of the host makes its headers",
    "sandboxEnabled": "the host runs it in a sandbox",
}
_REQUEST_OPTIONS = frozenset({"headers", "timeout"})
"""What toolscout takes over of Continue's `requestOptions`. The rest, such as a proxy, it cannot do for one server."""
_NEAR = (".local", ".lan", ".home", ".home.arpa", ".localdomain", ".docker.internal")
"""Names that hosts of a home or office network have."""
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - addresses that nobody can call
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


def host_rules(server_list: ServerList, environ: Mapping[str, str], closed: Collection[str] = ()) -> HostRules:
    """Read what the host's own files say about the servers of a list. `closed` servers have refused toolscout."""
    values = host_values(server_list.file)
    refused = dict.fromkeys(closed, "it refuses toolscout, and does not say where to sign in")
    staying = {
        title: reason
        for title, entry in server_list.others.items()
        if (reason := _stays(title, entry, server_list, values, environ) or refused.get(title, ""))
    }
    moving = {title: entry for title, entry in server_list.others.items() if title not in staying}
    options: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for title, entry in moving.items():
        if _is_near(host_name(entry)):
            options.setdefault(title, {})["private"] = True
            where = "machine" if is_loopback(host_name(entry)) else "network"
            notes.append(f"{title} is on this {where}, so its address is allowed: `private` is set for it")
    lost: list[str] = []
    for rule in (
        *permission_rules(server_list, values, environ, moving),
        *agent_rules(server_list, values, environ, moving),
        *hook_rules(server_list, values, environ, moving),
    ):
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


def start_refusal(server_list: ServerList, environ: Mapping[str, str]) -> str:
    """Return why the host would not start toolscout, or ""."""
    if server_list.host.name == "claude-code":
        return _claude_refusal(server_list, environ)
    values = host_values(server_list.file)
    nested = values.get("mcp")
    nested = nested if isinstance(nested, Mapping) else {}
    allowed = text_items(nested.get("allowed")) or text_items(values.get("allowMCPServers"))
    if server_list.host.name in ("gemini", "qwen") and allowed and "toolscout" not in allowed:
        return "it starts only the servers that mcp.allowed names: add toolscout to that list first"
    return ""


def _claude_refusal(server_list: ServerList, environ: Mapping[str, str]) -> str:
    for folder in managed_folders():
        if (folder / "managed-mcp.json").is_file():
            return f"an administrator has chosen its servers, in {folder / 'managed-mcp.json'}"
    lists = [settings.get("allowedMcpServers") for settings in claude_settings(server_list, environ)]
    allowed = [row.get("serverName") for rows in lists for row in _rows(rows)]
    if any(isinstance(rows, list) for rows in lists) and "toolscout" not in allowed:
        return "it starts only the servers that allowedMcpServers names: add toolscout to that list first"
    return ""


def lost_variables_note(
    server_list: ServerList, rules: HostRules, environ: Mapping[str, str], target: Path
) -> Iterator[str]:
    """Name the variables that a server got from the host and no longer gets, and the line that keeps them."""
    if server_list.host.bare_environment:
        return  # its servers never got them
    lost = {name for name in environ if LOST.fullmatch(name)}
    losing: dict[str, list[str]] = {}
    for title, entry in server_list.others.items():
        if title not in rules.staying and command_of(entry):
            own = (name for field in ("env", "environment", "envs") for name in entry.get(field) or ())
            for name in sorted(lost.difference(own)):
                losing.setdefault(name, []).append(title)
    for names, titles in _same_titles(losing):
        listed = ", ".join(f'"{name}"' for name in names)
        yield (
            f"toolscout starts {', '.join(titles)} without {', '.join(names)}. If that is needed, add this line to the "
            f'entry in {target}: "env_vars": [{listed}]'
        )


def _same_titles(losing: Mapping[str, list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Group the variables that the same servers lose."""
    for titles in dict.fromkeys(map(tuple, losing.values())):
        yield [name for name in losing if tuple(losing[name]) == titles], list(titles)


def _is_near(host: str) -> bool:
    """Return whether a host is this machine or, by its address or name, on its network."""
    if is_loopback(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.lower().endswith(_NEAR))
    return not address.is_global and not address.is_link_local


def _url_notes(moving: Mapping[str, Any]) -> Iterator[str]:
    remote = {
        title: entry
        for title, entry in moving.items()
        if isinstance(entry, Mapping) and not command_of(entry) and not _is_off(entry)
    }
    if remote:
        yield (
            f"servers behind a URL are not trusted ({', '.join(remote)}): their claim that a tool only reads does not "
            'count. `"toolscout": {"trusted": true}` in an entry changes that'
        )
    signed_in = [
        title
        for title, entry in remote.items()
        if not any(entry.get(name) for name in _CREDENTIALS) and not is_loopback(host_name(entry))
    ]
    if signed_in:
        yield (
            f"if you signed in to {' or '.join(signed_in)} in a browser, only the host has that token: sign in again "
            "with `toolscout login SERVER`, or put everything back with `toolscout import --undo`"
        )


def _is_off(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry is switched off by a field of its own."""
    return entry.get("enabled") is False or entry.get("disabled") is True


def _stays(
    title: str, entry: Any, server_list: ServerList, values: Mapping[str, Any], environ: Mapping[str, str]
) -> str:
    """Return why only the host can use this server, or ""."""
    if not isinstance(entry, Mapping):
        return "its entry is not an object"
    if is_extension(entry):
        return "an extension of the host starts it"
    for name, reason in _HOST_ONLY.items():
        if entry.get(name):
            return reason
    request = entry.get("requestOptions")
    if isinstance(request, Mapping) and request.keys() - _REQUEST_OPTIONS:
        return f"the host reaches it with {', '.join(sorted(request.keys() - _REQUEST_OPTIONS))} of its own"
    if any(entry.get(name) for name in _SIGN_IN):
        return "the host signs in to it"
    if host_name(entry) in _EVERY_ADDRESS:
        return "its address stands for all of a machine, and toolscout does not call it: write 127.0.0.1"
    if title in _switched_off(server_list, values, environ):
        return "the host has it switched off"
    for who in partial_rules(server_list, values, environ, title):
        return f"a rule of {who} forbids tools of it, and toolscout cannot tell who calls"
    for hook in hook_rules(server_list, values, environ, {title: entry}):
        if hook.forbidden:
            return f"the host checks its calls ({hook.text}), and would not see them"
    problem = entry_problem(server_list.path[-1], title, entry)
    return f"toolscout cannot use it: {problem}" if problem else ""


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
            names |= {*text_items(settings.get("disabledMcpjsonServers"))} if server_list.shared else set()
            for rule in _rows(settings.get("deniedMcpServers")):
                names |= {title for title, entry in server_list.others.items() if _is_denied(title, entry, rule)}
        return names
    return set()


def _is_denied(title: str, entry: Any, rule: Mapping[str, Any]) -> bool:
    """Return whether a rule of Claude Code denies a server, by its name, its command or its URL."""
    entry = entry if isinstance(entry, Mapping) else {}
    command, url = [entry.get("command"), *(entry.get("args") or ())], str(entry.get("url") or "")
    return (
        rule.get("serverName") == title
        or rule.get("serverCommand") == command
        or bool(url and fnmatchcase(url, str(rule.get("serverUrl") or "")))
    )


def _rows(value: Any) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
