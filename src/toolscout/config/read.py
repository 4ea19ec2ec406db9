"""Reads and merges config files. Later files have precedence, and a note says what was replaced or skipped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolscout.config.entries import read_entry
from toolscout.config.files import BARE_VARIABLES, ConfigFile, entries_of, is_toolscout, read_config_file
from toolscout.config.server_config import Config, ServerConfig
from toolscout.config.variables import Variables
from toolscout.errors import ConfigError
from toolscout.fields import Fields


def read_config(
    paths: str | Path | Iterable[str | Path], environ: Mapping[str, str] | None = None, *, partial: bool = False
) -> Config:
    """Read and merge config files. Variables come from `environ`, by default the environment of the process.

    With `partial`, an entry that cannot be used, such as one with a missing variable, does not stop the others: it
    becomes a server with a `problem`, which is down. So does a file that cannot be read, by its own name. If nothing
    can be used, or without `partial`, it is an error.
    """
    environ = os.environ if environ is None else environ
    files = [paths] if isinstance(paths, (str, Path)) else list(paths)
    servers: dict[str, ServerConfig] = {}
    core: list[str] = []
    notes: list[str] = []
    categories: dict[str, str] = {}
    surface = None
    for file in files:
        try:
            config_file = read_config_file(file)
            options = Fields(config_file.options, f"{config_file.file}: toolscout")
            options.get("imported")  # written by `toolscout import`, read only by its --undo
            core += options.texts("core")
            surface = options.text("surface") or surface
            server_options = options.child("servers")
            categories |= options.pairs("categories")
            options.finish()
        except ConfigError as error:
            if not partial:
                raise
            servers[str(file)] = _unusable(Path(file).name, str(file), error)
            continue
        for server in _servers(config_file, server_options, environ, notes, partial=partial):
            if server.title in servers:
                notes.append(f"server {server.title!r} of {servers[server.title].source} is replaced by {file}")
            servers[server.title] = server
    problems = [server for server in servers.values() if server.problem]
    if problems and len(problems) == len(servers):
        raise ConfigError(problems[0].problem, hint=problems[0].problem_hint)
    return Config(
        servers=tuple(servers.values()),
        core=tuple(dict.fromkeys(core)),
        surface=surface,
        categories=categories,
        files=tuple(str(file) for file in files),
        notes=tuple(notes),
    )


def unreadable_files(paths: Iterable[str | Path]) -> dict[str, ConfigError]:
    """Return the files that cannot be read at all, each with the reason. Their entries are not looked at."""
    errors: dict[str, ConfigError] = {}
    for file in paths:
        try:
            read_config_file(file)
        except ConfigError as error:
            errors[str(file)] = error
    return errors


def read_categories(paths: Iterable[str | Path]) -> dict[str, str]:
    """Return the descriptions of the operator's own categories. A file that cannot be read describes none."""
    categories: dict[str, str] = {}
    for file in paths:
        with suppress(ConfigError):
            categories |= Fields(read_config_file(file).options, str(file)).pairs("categories")
    return categories


def _servers(
    config_file: ConfigFile, server_options: Fields, environ: Mapping[str, str], notes: list[str], *, partial: bool
) -> Iterator[ServerConfig]:
    variables = Variables(
        environ=environ,
        workspace=config_file.workspace,
        inputs=config_file.inputs,
        bare=config_file.host in BARE_VARIABLES,
    )
    for title, entry in config_file.entries.items():
        where = f"{config_file.file}: server {title!r}"
        if is_toolscout(entry):
            notes.append(f"{where} is toolscout itself and is skipped")
        elif is_extension(entry):
            notes.append(f"{where} is started by an extension of its host and is skipped")
        else:
            try:
                if not title.strip():
                    raise ConfigError(f"{where} has an empty name", hint="give the server a name")
                own_options = server_options.child(title).values
                yield read_entry(title, _with_options(entry, own_options), config_file, variables, notes.append)
            except ConfigError as error:
                if not partial:
                    raise
                yield _unusable(title or "(no name)", config_file.file, error)


def _unusable(title: str, file: str, error: ConfigError) -> ServerConfig:
    """Return a server that is down because its entry or file cannot be used."""
    return ServerConfig(
        title=title,
        transport="stdio",
        source=file,
        problem=error.message,
        problem_hint=error.hint or f"did you mean {', '.join(error.suggestions)}?",
    )


def entry_problem(section: str, title: str, entry: Any) -> str:
    """Return why an entry of a host's list cannot be used, whatever its variables are, or ""."""
    off = {**entry, "disabled": True} if isinstance(entry, Mapping) else entry  # its variables are not filled in
    try:
        for converted in entries_of({section: {title: off}}, title).values():
            read_entry(
                title,
                converted,
                ConfigFile(file=title, entries={}),
                Variables(environ={}, workspace=""),
                lambda _note: None,
            )
    except ConfigError as error:
        return error.message.removeprefix(f"{title}: ").removeprefix(f"server {title!r}: ")
    return ""


def _with_options(entry: Any, options: Mapping[str, Any]) -> Any:
    """Add the options that the file keeps apart from an entry. Those in the entry take precedence."""
    if not options or not isinstance(entry, Mapping) or not isinstance(entry.get("toolscout") or {}, Mapping):
        return entry
    inner = entry.get("toolscout") or {}
    merged = {**options, **inner}
    if isinstance(options.get("tools"), Mapping) and isinstance(inner.get("tools"), Mapping):
        merged["tools"] = {**options["tools"], **inner["tools"]}
    return {**entry, "toolscout": merged}


def is_extension(entry: object) -> bool:
    """Return whether an entry only configures a server that an extension of Zed starts."""
    if not isinstance(entry, Mapping) or "command" in entry or "url" in entry:
        return False
    return entry.get("source") == "extension" or "settings" in entry
