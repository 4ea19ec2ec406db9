"""Edits of the operator's own config file: servers are added, changed and removed. The rest of the file is kept."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolscout.config.files import SECTIONS, read_text
from toolscout.config.jsonc import add_member, read_jsonc, replace_value, to_json
from toolscout.config.read import read_config
from toolscout.errors import ConfigError, ConflictError, UnknownServerError

_NEW_SECTION = "mcpServers"
_PRIVATE = 0o600


def is_editable(file: Path) -> bool:
    """Tell whether a file can be edited here: it is JSON, perhaps with comments."""
    return file.suffix not in (".toml", ".yaml", ".yml")


def add_servers(file: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Add servers to a file, which is created if it is missing. Raise ConflictError if one of the names is taken."""
    text = read_text(file) if file.exists() else ""
    section, servers = _section(file, text)
    for title in entries:
        if title in servers:
            raise ConflictError(
                f"{file} has a server {title!r} already; nothing was changed", hint="change it, or choose another name"
            )
    for title, entry in entries.items():
        text = _with_server(text, section, title, entry, known=title in servers)
        section, servers = _section(file, text)
    _write(file, text, entries)


def change_server(file: Path, title: str, entry: Mapping[str, Any]) -> None:
    """Replace the entry of a server."""
    text = read_text(file)
    section, servers = _section(file, text)
    if title not in servers:
        raise UnknownServerError(f"{file} has no server {title!r}", hint="it may be in another file")
    _write(file, _with_server(text, section, title, entry, known=True), (title,))


def remove_server(file: Path, title: str) -> None:
    """Remove a server. Comments between the other servers of the file are lost."""
    text = read_text(file)
    section, servers = _section(file, text)
    if title not in servers:
        raise UnknownServerError(f"{file} has no server {title!r}", hint="it may be in another file")
    _write(file, replace_value(text, [section], {name: item for name, item in servers.items() if name != title}), ())


def entry_of(file: Path, title: str) -> dict[str, Any]:
    """Return the entry of a server as the file has it, variables not filled in."""
    _, servers = _section(file, read_text(file))
    entry = servers.get(title)
    return dict(entry) if isinstance(entry, Mapping) else {}


def _section(file: Path, text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of the part that lists servers."""
    if not is_editable(file):
        raise ConfigError(f"{file} is not JSON, and can be changed by hand only", hint="edit the file")
    try:
        values = read_jsonc(text if text.strip() else "{}")
    except ValueError:
        raise ConfigError(f"{file} cannot be read as JSON; nothing was changed", hint="correct the file") from None
    section = next((name for name in SECTIONS if isinstance(values.get(name), dict)), _NEW_SECTION)
    return section, values.get(section) or {}


def _with_server(text: str, section: str, title: str, entry: Mapping[str, Any], *, known: bool) -> str:
    if known:
        return replace_value(text, [section, title], entry)
    values = read_jsonc(text) if text.strip() else {}
    if not values:
        return to_json({section: {title: entry}}) + "\n"
    if section not in values:
        return add_member(text, [], section, {title: entry})
    return add_member(text, [section], title, entry)


def _write(file: Path, text: str, changed: Iterable[str]) -> None:
    """Replace a file at once, after the changed servers were read as a config. A link is not followed."""
    if file.is_symlink():
        raise ConfigError(f"{file} is a link, and is not written through", hint="name the file itself")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else _PRIVATE
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=file.suffix)
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        _check(draft, changed)
        draft.chmod(mode)
        draft.replace(file)
    except ConfigError as error:
        raise ConfigError(error.message.replace(str(draft), str(file)), hint=error.hint) from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", hint="check who may write it") from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _check(draft: Path, changed: Iterable[str]) -> None:
    """Raise ConfigError if one of the changed servers cannot be used. Others may have problems of their own."""
    problems = {server.title: server for server in read_config(draft, partial=True).servers if server.problem}
    for title in changed:
        if title in problems:
            raise ConfigError(problems[title].problem, hint=problems[title].problem_hint)
