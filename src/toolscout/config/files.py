"""Config files of different agent hosts, read into one form: a name and an entry for each server."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from toolscout.config.jsonc import read_jsonc
from toolscout.config.other_hosts import (
    GOOSE_SECTION,
    from_continue,
    from_goose,
    from_opencode,
    is_opencode,
    listed_servers,
)
from toolscout.config.server_json import is_server_json, read_server_json
from toolscout.config.yaml_1_2 import read_yaml
from toolscout.errors import ConfigError
from toolscout.fields import Fields

SECTIONS = ("mcpServers", "servers", "context_servers", "mcp_servers")
"""The keys under which hosts list their servers: most hosts, VS Code, Zed, Codex."""

YAML = (".yaml", ".yml")
BARE_VARIABLES = frozenset({"gemini", "qwen"})
"""The hosts in whose files `$VAR` is a variable too."""

_EDITOR_FOLDERS = frozenset(
    ".vscode .cursor .gemini .zed .codex .claude .kiro .roo .amazonq .junie .qwen .continue".split()
)
_NESTED_FOLDERS = {
    "settings": ".kiro",
    "mcp": ".junie",
    "mcpServers": ".continue",
    "cli-agents": ".amazonq",
    "agents": ".amazonq",
}
_LAUNCHERS = frozenset({"uvx", "uv", "pipx"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """One config file: its server entries before variables are filled in, and what is needed to read them."""

    file: str
    entries: Mapping[str, Any]
    inputs: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    """The file's `toolscout` object."""
    workspace: str = ""
    host: str = ""
    """The host that the entries were written for, if known."""


def read_config_file(path: str | Path) -> ConfigFile:
    """Read a config file of any known format."""
    file, values = str(path), load(path)
    options = Fields(values.get("toolscout", {}), f"{file}: toolscout").values
    imported = options.get("imported")
    imported = imported if isinstance(imported, Mapping) else {}
    origin = PurePath(str(imported.get("file") or Path(path).absolute()))
    return ConfigFile(
        file=file,
        entries=entries_of(values, file),
        inputs=_inputs(values, file),
        options=options,
        workspace=str(imported.get("workspace") or workspace_of(origin)),
        host=str(imported.get("host") or (origin.parent.name[1:] if origin.parent.name[:1] == "." else "")),
    )


def load(path: str | Path) -> dict[str, Any]:
    """Parse a file as JSON with comments, as TOML, or as YAML. An error names the line."""
    text = read_text(path)
    hint = "correct the file"
    try:
        if str(path).endswith(".toml"):
            return tomllib.loads(text)
        if str(path).endswith(YAML):
            return read_yaml(text, str(path))
        values = read_jsonc(text if text.strip() else "{}")
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}:{error.lineno}: invalid JSON: {error.msg} (column {error.colno})", hint=hint
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: invalid TOML: {error}", hint=hint) from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply", hint=hint) from None
    except ValueError:
        raise ConfigError(f"{path}: contains a number with thousands of digits", hint=hint) from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must contain an object", hint="see docs/config.md")
    return values


def read_text(path: str | Path) -> str:
    """Read a file as UTF-8, with or without a byte order mark. Line endings are kept."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}", hint="save the file as UTF-8") from None


def is_toolscout(entry: Any) -> bool:
    """Return whether an entry starts toolscout itself, directly or through a launcher."""
    if not isinstance(entry, Mapping):
        return False
    command, args = entry.get("command") or entry.get("cmd"), entry.get("args") or []
    if isinstance(command, list) and command:
        command, args = command[0], command[1:]
    if not isinstance(command, str) or not isinstance(args, list):
        return False
    words = [str(word) for word in args]
    name = command.replace("\\", "/").rsplit("/", 1)[-1].lower().removesuffix(".exe")
    if name == "toolscout" or ("-m", "toolscout") in pairwise(words):
        return True
    return name in _LAUNCHERS and any(word.split("[")[0].split("@")[0].split("=")[0] == "toolscout" for word in words)


def workspace_of(file: PurePath) -> PurePath:
    """Return the workspace of a config file: its folder, or the parent of an editor's hidden folder."""
    folder = file.parent
    if _NESTED_FOLDERS.get(folder.name) == folder.parent.name:
        folder = folder.parent
    return folder.parent if folder.name in _EDITOR_FOLDERS else folder


def entries_of(values: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the entries of all lists of servers in a file, in the form that most hosts share."""
    entries: dict[str, Any] = {}
    nested = values.get("mcp")
    parents = [values, nested] if isinstance(nested, Mapping) else [values]
    sections = [(key, parent[key]) for parent in parents for key in SECTIONS if key in parent]
    for key, servers in sections:
        named = listed_servers({key: servers}, [key]) if isinstance(servers, list) and file.endswith(YAML) else servers
        for title, entry in Fields(named, f"{file}: {key}").values.items():
            entries[title] = _from_codex(entry) if key == "mcp_servers" else from_continue(_from_zed(entry))
    extensions = {} if sections else listed_servers(values, [GOOSE_SECTION])
    if extensions or (extensions is not None and file.endswith(YAML)):
        return {title: from_goose(entry) for title, entry in extensions.items()}
    if not sections and is_opencode(nested):
        return {title: from_opencode(entry) for title, entry in Fields(nested, f"{file}: mcp").values.items()}
    if not sections and is_server_json(values):
        title, entry = read_server_json(values, file)
        return {title: entry}
    if not sections and "toolscout" not in values:
        raise ConfigError(
            f"{file}: lists no servers", hint=f"list servers under one of {', '.join(SECTIONS)}: see docs/config.md"
        )
    return entries


def _inputs(values: Mapping[str, Any], file: str) -> dict[str, str | None]:
    declarations = values.get("inputs")
    defaults: dict[str, str | None] = {}
    for number, item in enumerate(declarations if isinstance(declarations, list) else []):
        fields = Fields(item, f"{file}: inputs[{number}]")
        name = fields.text("id")
        default = fields.get("default")
        if name:
            defaults[name] = None if default is None else str(default)
    return defaults


def _from_zed(entry: Any) -> Any:
    """Flatten a command that is an object, as older versions of Zed write it."""
    if isinstance(entry, Mapping) and isinstance(entry.get("command"), Mapping):
        command = dict(entry["command"])
        path = command.pop("path", None)
        return {**entry, **command, "command": path}
    return entry


def _from_codex(entry: Any) -> Any:
    """Rename Codex's fields to those of other hosts. Values from the environment become references."""
    if not isinstance(entry, Mapping):
        return entry
    renamed = {"http_headers": "headers", "tool_timeout_sec": "timeout_s"}
    fields = {renamed.get(name, name): value for name, value in entry.items()}
    secret_headers = {}
    if isinstance(fields.get("env_http_headers"), Mapping):
        secret_headers = {name: f"${{env:{variable}}}" for name, variable in fields.pop("env_http_headers").items()}
    if token := fields.pop("bearer_token_env_var", None):
        secret_headers["Authorization"] = f"Bearer ${{env:{token}}}"
    if secret_headers and isinstance(fields.get("headers", {}), Mapping):
        fields["headers"] = {**fields.get("headers", {}), **secret_headers}
    return fields
