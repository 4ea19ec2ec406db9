"""Formats of single hosts, converted to the form that most share: OpenCode, and the YAML of Goose and Continue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolscout.errors import ConfigError

_REFERENCE = re.compile(r"\{(env|file):([^{}]+)\}")
_GOOSE_TYPES = {"stdio": "stdio", "sse": "sse", "streamable_http": "http"}


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


def read_yaml(text: str, file: str) -> dict[str, Any]:
    """Read a YAML file of Goose (`extensions`) or Continue (a list `mcpServers`) as an object of `mcpServers`."""
    import yaml

    try:
        values = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{file}{at}: invalid YAML", hint="correct the file") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply", hint="correct the file") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: must contain an object", hint="see docs/config.md")
    if isinstance(values.get("extensions"), Mapping):
        entries = {str(name): entry for name, entry in values.pop("extensions").items() if _goose_starts(entry)}
        return {**values, "mcpServers": {name: _from_goose(entry) for name, entry in entries.items()}}
    servers = values.get("mcpServers")
    if isinstance(servers, list):
        values["mcpServers"] = {
            str(entry.get("name") or number): {name: value for name, value in entry.items() if name != "name"}
            for number, entry in enumerate(servers)
            if isinstance(entry, Mapping)
        }
    return values


def _goose_starts(entry: Any) -> bool:
    """Return whether an extension of Goose is an MCP server of its own, and not a part of Goose."""
    return isinstance(entry, Mapping) and entry.get("type") in _GOOSE_TYPES


def _from_goose(entry: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"cmd": "command", "envs": "env", "uri": "url", "timeout": "timeout_s"}
    fields = {renamed.get(name, name): value for name, value in entry.items() if value is not None}
    fields["type"] = _GOOSE_TYPES[entry["type"]]
    for name in ("name", "description", "env_keys", "bundled", "display_name"):
        fields.pop(name, None)
    keys = [str(name) for name in entry.get("env_keys") or () if isinstance(name, str)]
    if keys:
        fields["env"] = {**{name: f"${{{name}}}" for name in keys}, **(fields.get("env") or {})}
    return fields


def _with_references(value: Any) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: f"${{{match[1]}:{match[2]}}}", value)
    if isinstance(value, Mapping):
        return {name: _with_references(item) for name, item in value.items()}
    return [_with_references(item) for item in value] if isinstance(value, list) else value
