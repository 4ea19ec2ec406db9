"""Formats of single hosts, converted to the form that most share: OpenCode, Goose and Continue."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolscout.config.jsonc import value_at

_REFERENCE = re.compile(r"\{(env|file):([^{}]+)\}")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.A)
GOOSE_SECTION = "extensions"
_GOOSE_TYPES = {"stdio": "stdio", "sse": "sse", "streamable_http": "http"}
_GOOSE_NAMES = {"cmd": "command", "envs": "env", "uri": "url", "timeout": "timeout_s"}
_GOOSE_REMARKS = ("name", "description", "env_keys", "bundled", "display_name")


def listed_servers(values: Any, path: Sequence[str]) -> dict[str, Any] | None:
    """Return the servers in a list of a host's file, as the host wrote them, or None if there is no such list.

    Continue lists them without keys. Parts of Goose, and blocks that Continue gets from elsewhere, are not servers.
    """
    found = value_at(values, path)
    if isinstance(found, list):
        return {
            title: {name: value for name, value in item.items() if name != "name"}
            for number, item in enumerate(found)
            if (title := item_title(item, number))
        }
    if not isinstance(found, Mapping):
        return None
    if path[-1] == GOOSE_SECTION:
        return {str(name): entry for name, entry in found.items() if is_goose_server(entry)}
    return dict(found)


def item_title(item: Any, number: int) -> str:
    """Return the name of a server in a list without keys, or "" if it is no server."""
    if not isinstance(item, Mapping) or "uses" in item:
        return ""
    return str(item.get("name") or number)


def is_goose_server(entry: Any) -> bool:
    """Return whether an extension of Goose is an MCP server of its own, and not a part of Goose."""
    return isinstance(entry, Mapping) and entry.get("type") in _GOOSE_TYPES


def from_goose(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an extension of Goose. `env_keys` name secrets, which Goose passes on as variables."""
    fields = {_GOOSE_NAMES.get(name, name): value for name, value in entry.items() if value is not None}
    fields["type"] = _GOOSE_TYPES[entry["type"]]
    for name in _GOOSE_REMARKS:
        fields.pop(name, None)
    own: Mapping[str, Any] = fields["env"] if isinstance(fields.get("env"), Mapping) else {}
    if "uri" in entry and isinstance(fields.get("headers"), Mapping):
        fields["headers"] = {name: _filled_in(value, own) for name, value in fields["headers"].items()}
    keys = [str(name) for name in entry.get("env_keys") or () if isinstance(name, str)]
    if keys:
        fields["env"] = {**{name: f"${{{name}}}" for name in keys}, **own}
    return fields


def _filled_in(value: Any, variables: Mapping[str, Any]) -> Any:
    """Fill the variables of an extension into a header. Others may come from the environment."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return str(variables[name]) if name in variables else f"${{{name}}}"

    return _VARIABLE.sub(value_of, value) if isinstance(value, str) else value


def from_continue(entry: Any) -> Any:
    """Convert an entry of Continue, which keeps headers under `requestOptions` and may have an `apiKey`."""
    if not isinstance(entry, Mapping):
        return entry
    options, key = entry.get("requestOptions"), entry.get("apiKey")
    headers = options.get("headers") if isinstance(options, Mapping) else None
    own = {"Authorization": f"Bearer {key}"} if isinstance(key, str) and key else {}
    if "headers" in entry or not (isinstance(headers, Mapping) or own):
        return entry
    return {**entry, "headers": {**(headers if isinstance(headers, Mapping) else {}), **own}}


def is_opencode(servers: Any) -> bool:
    """Return whether an `mcp` object is OpenCode's list of servers, each with a type `local` or `remote`."""
    return isinstance(servers, Mapping) and any(
        isinstance(entry, Mapping) and entry.get("type") in ("local", "remote") for entry in servers.values()
    )


def from_opencode(entry: Any) -> Any:
    """Convert an entry of OpenCode: its command is a list, its references are `{env:NAME}` and `{file:PATH}`."""
    if not isinstance(entry, Mapping):
        return entry
    fields = _with_references(dict(entry))
    command = fields.get("command")
    if isinstance(command, list) and command:
        fields["command"], fields["args"] = command[0], command[1:]
    if isinstance(fields.get("environment"), Mapping):
        own = fields.get("env")
        fields["env"] = {**fields.pop("environment"), **(own if isinstance(own, Mapping) else {})}
    return fields


def _with_references(value: Any) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: f"${{{match[1]}:{match[2]}}}", value)
    if isinstance(value, Mapping):
        return {name: _with_references(item) for name, item in value.items()}
    return [_with_references(item) for item in value] if isinstance(value, list) else value
