"""Config files in, one Config out: later files win, and what was replaced or skipped is noted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolscout.config.entries import read_entry
from toolscout.config.files import ConfigFile, is_toolscout, read_config_file
from toolscout.config.server_config import Config, ServerConfig
from toolscout.config.variables import Variables
from toolscout.errors import ConfigError
from toolscout.fields import Fields


def read_config(paths: str | Path | Iterable[str | Path], environ: Mapping[str, str] | None = None) -> Config:
    """Read and merge config files; variables come from `environ`, the process's own environment unless given."""
    environ = os.environ if environ is None else environ
    files = [paths] if isinstance(paths, (str, Path)) else list(paths)
    servers: dict[str, ServerConfig] = {}
    core: list[str] = []
    notes: list[str] = []
    surface = None
    for file in files:
        document = read_config_file(file)
        own = Fields(document.own, f"{document.file}: toolscout")
        own.get("imported")
        core += own.texts("core")
        surface = own.text("surface") or surface
        own.finish()
        for server in _servers(document, environ, notes):
            if server.title in servers:
                notes.append(f"server {server.title!r} of {servers[server.title].source} is replaced by {file}")
            servers[server.title] = server
    return Config(
        servers=tuple(servers.values()),
        core=tuple(dict.fromkeys(core)),
        surface=surface,
        files=tuple(str(file) for file in files),
        notes=tuple(notes),
    )


def _servers(document: ConfigFile, environ: Mapping[str, str], notes: list[str]) -> Iterable[ServerConfig]:
    variables = Variables(
        environ=environ, workspace=document.workspace, inputs=document.inputs, bare=document.host == "gemini"
    )
    for title, entry in document.entries.items():
        where = f"{document.file}: server {title!r}"
        if not title.strip():
            raise ConfigError(f"{where} needs a name", hint="give it one")
        if is_toolscout(entry):
            notes.append(f"{where} is toolscout itself; it is skipped")
        elif _of_extension(entry):
            notes.append(f"{where} is started by an extension of its host; it is skipped")
        else:
            yield read_entry(title, entry, document, variables, notes.append)


def _of_extension(entry: object) -> bool:
    """Say whether an entry only configures what an extension of Zed starts."""
    if not isinstance(entry, Mapping) or "command" in entry or "url" in entry:
        return False
    return entry.get("source") == "extension" or "settings" in entry
