"""Rewrites an agent host's config to start toolscout instead of its servers, and undoes that.

The original file is backed up, every write is atomic, and a second run changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from toolscout.cli.host_rules import HostRules, host_rules, lost_variables_note
from toolscout.cli.hosts import ServerList
from toolscout.cli.import_record import ImportRecord, content_digest, digest, import_records, write_file
from toolscout.config.files import BARE_VARIABLES, YAML, is_toolscout, load, read_text
from toolscout.config.jsonc import replace_value, to_json
from toolscout.config.other_hosts import listed_servers
from toolscout.config.toml_edit import replace_table
from toolscout.config.variables import references
from toolscout.config.yaml_edit import replace_servers
from toolscout.errors import ConfigError
from toolscout.tool_keys import add_suffix, server_slug

BACKUP = ".toolscout-backup"
UNDONE = ".undone"

_BOM = b"\xef\xbb\xbf"
_PRIVATE = 0o600
_EXPANDED = (
    *("command", "args", "env", "envFile", "cwd", "url", "serverUrl", "httpUrl", "headers"),
    *("requestOptions", "apiKey"),
)

Done = Literal["moved", "unchanged", "skipped", "failed", "restored", "put back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEdit:
    """What was done to one config file of a host, with notes for the user."""

    host: str
    file: str
    done: Done
    servers: tuple[str, ...] = ()
    moved_to: tuple[str, ...] = ()
    backup: str = ""
    notes: tuple[str, ...] = ()


def put_in_front(
    lists: Sequence[ServerList],
    launch: Sequence[str],
    folder: Path,
    environ: Mapping[str, str] | None = None,
    *,
    closed: Collection[str] = (),
) -> HostEdit:
    """Move the servers of all lists in one file to toolscout's folder. Without servers to move, change nothing.

    `closed` are servers that refuse toolscout, and do not say where to sign in. They stay.
    """
    environ = os.environ if environ is None else environ
    host, file = lists[0].host, lists[0].file
    rules = {server_list.path: host_rules(server_list, environ, closed) for server_list in lists}
    stay_notes = [f"{title} stays: {reason}" for rule in rules.values() for title, reason in rule.staying.items()]
    todo = [server_list for server_list in lists if set(server_list.others) - rules[server_list.path].staying.keys()]
    if not todo:
        return HostEdit(host=host.name, file=str(file), done="unchanged", notes=tuple(stay_notes))
    before, text = file.read_bytes(), read_text(file)
    records = {(record.host_file, record.key_path): record for record in import_records(folder)}
    plans: list[tuple[ServerList, Path, ImportRecord | None]] = []
    for server_list in todo:
        record = records.get((str(file), server_list.path))
        target = record.path if record else _free_path(server_list, folder)
        plans.append((server_list, target, record))
        staying = {title: server_list.servers[title] for title in rules[server_list.path].staying}
        entries = _toolscout_entries(server_list, target, launch)
        text = _replace(file, text, server_list.path, {**staying, **entries})
    after = _encode(text, like=before)
    backup = Path(f"{file}{BACKUP}")
    untouched = all(len(server_list.others) == len(server_list.servers) for server_list in lists)
    if untouched or not backup.is_file() or backup.is_symlink():
        write_file(backup, before, file.stat().st_mode)
    try:
        for server_list, target, record in plans:
            write_file(target, _record_content(server_list, rules[server_list.path], record, after), _PRIVATE)
        if file.read_bytes() != before:
            raise ConfigError(f"{file} was changed in the meantime", hint=f"close {host.title} and try again")
        write_file(_own(file), after, file.stat().st_mode)
    except ConfigError:
        for _, target, record in plans:
            if record is None:
                target.unlink(missing_ok=True)
        raise
    notes = [*stay_notes, *(note for server_list in todo for note in rules[server_list.path].notes)]
    if any(item.comments for item in todo):
        notes.append("comments among its servers are only in the backup")
    for server_list, target, _ in plans:
        notes += lost_variables_note(server_list, rules[server_list.path], environ, target)
    return HostEdit(
        host=host.name,
        file=str(file),
        done="moved",
        servers=tuple(title for item in todo for title in item.others if title not in rules[item.path].staying),
        moved_to=tuple(str(target) for _, target, _ in plans),
        backup=str(backup),
        notes=tuple(dict.fromkeys(notes)),
    )


def undo(folder: Path, host: str | None = None, file: Path | None = None) -> list[HostEdit]:
    """Restore the servers of every host, of one host or of one file."""
    records = [
        record
        for record in import_records(folder)
        if host in (None, record.imported.get("host")) and (file is None or record.host_file == str(file))
    ]
    records.sort(key=lambda record: (record.host_file, record.key_path))
    edits = [_try_undo(Path(name), list(group)) for name, group in groupby(records, lambda record: record.host_file)]
    with suppress(OSError):
        folder.rmdir()
    return edits


def _try_undo(file: Path, records: list[ImportRecord]) -> HostEdit:
    """Undo one file. A file that cannot be written does not hide what was done to the others."""
    host = str(records[0].imported.get("host"))
    try:
        return _undo_file(file, records)
    except (ConfigError, OSError) as error:
        return failed_edit(host, file, error)


def failed_edit(host: str, file: Path, error: Exception) -> HostEdit:
    """Return the edit of a file that could not be written."""
    reason = error.message if isinstance(error, ConfigError) else f"{file} cannot be written: {error}"
    return HostEdit(host=host, file=str(file), done="failed", notes=(reason,))


def _undo_file(file: Path, records: list[ImportRecord]) -> HostEdit:
    """Restore the backup if the file is unchanged since the import. Otherwise only put its servers back."""
    host, backup = str(records[0].imported.get("host")), Path(f"{file}{BACKUP}")
    if not file.is_file():
        return HostEdit(
            host=host,
            file=str(file),
            done="skipped",
            notes=("the file no longer exists, so its servers stay in toolscout's folder",),
        )
    if file.is_symlink() and not records[0].imported.get("link"):
        return HostEdit(
            host=host,
            file=str(file),
            done="skipped",
            notes=("the file has become a link, which is not followed: its servers stay in toolscout's folder",),
        )
    now = file.read_bytes()
    notes: list[str] = []
    unchanged = (
        backup.is_file()
        and not backup.is_symlink()
        and all(record.imported.get("written") == digest(now) for record in records)
    )
    if unchanged:
        write_file(_own(file), backup.read_bytes(), file.stat().st_mode)
        backup.unlink()
    else:
        values = load(file)
        text = read_text(file)
        for record in list(records):
            now_listed = listed_servers(values, record.key_path)
            if now_listed is not None:
                text = _put_back(file, text, now_listed, record)
            else:
                notes.append(f"the file has no list of servers any more, so they stay in {record.path}")
                records.remove(record)
        if _encode(text, like=now) != now:
            write_file(_own(file), _encode(text, like=now), file.stat().st_mode)
        notes.append("the file was changed after the import, so only its servers were put back. The backup is kept")
    for record in records:
        if record.edited:
            record.path.replace(f"{record.path}{UNDONE}")
            notes.append(f"your edits are kept in {record.path}{UNDONE}")
        else:
            record.path.unlink()
    return HostEdit(
        host=host,
        file=str(file),
        done="restored" if unchanged else "put back",
        servers=tuple(title for record in records for title in record.entries),
        backup="" if unchanged else str(backup),
        notes=tuple(notes),
    )


def _put_back(file: Path, text: str, now: Mapping[str, Any], record: ImportRecord) -> str:
    """Replace toolscout's entry with the servers of the record. All other entries stay."""
    remaining: dict[str, Any] = {}
    for title, entry in now.items():
        args = _args(entry) if is_toolscout(entry) else []
        if str(record.path) not in args:
            remaining[title] = entry
            continue
        at = args.index(str(record.path))
        del args[at - 1 : at + 1]
        if "--config" in args:
            remaining[title] = _with_args(entry, args)
    restored = {title: entry for title, entry in record.entries.items() if title not in remaining}
    if remaining == now and not restored:
        return text
    return _replace(file, text, record.key_path, {**restored, **remaining})


def _replace(file: Path, text: str, path: Sequence[str], entries: Mapping[str, Any]) -> str:
    """Replace a list of servers in the text of a file. Everything around it is kept."""
    if file.suffix in YAML:
        return replace_servers(text, path, entries)
    return replace_table(text, path, entries) if file.suffix == ".toml" else replace_value(text, path, entries)


def _own(file: Path) -> Path:
    """Return the file to write. A user may keep their own config file elsewhere, behind a link."""
    return Path(os.path.realpath(file))


def _args(entry: Mapping[str, Any]) -> list[Any]:
    """Return the arguments of an entry, also where they are part of a list `command`."""
    command = entry.get("command")
    return list(command) if isinstance(command, list) else list(entry.get("args") or ())


def _with_args(entry: Mapping[str, Any], args: list[Any]) -> dict[str, Any]:
    return {**entry, "command" if isinstance(entry.get("command"), list) else "args": args}


def _toolscout_entries(server_list: ServerList, target: Path, launch: Sequence[str]) -> dict[str, Any]:
    """Return the host's new list: only toolscout, with the path of the moved servers and the variables they need."""
    env = dict(_variables(server_list)) if server_list.host.expands else {}
    names = _listed_variables(server_list)
    entries = {title: dict(entry) for title, entry in server_list.servers.items() if is_toolscout(entry)}
    if not entries:
        command = [*launch, "serve", "--config", str(target)]
        host = server_list.host
        start = {host.command: command} if host.command_list else {host.command: command[0], "args": command[1:]}
        variables = {**({"env": env} if env else {}), **({host.variables: names} if names else {})}
        return {_title(server_list): {**host.entry, **start, **variables}}
    with_target = (title for title, entry in entries.items() if str(target) in _args(entry))
    title = next(with_target, next(iter(entries)))
    if str(target) not in _args(entries[title]):
        entries[title] = _with_args(entries[title], [*_args(entries[title]), "--config", str(target)])
    if env:
        entries[title]["env"] = {**env, **(entries[title].get("env") or {})}
    if names:
        field = server_list.host.variables
        entries[title][field] = _distinct([*(entries[title].get(field) or ()), *names])
    return entries


def _title(server_list: ServerList) -> str:
    """Return the name of toolscout's entry. A project has its own name, so that it does not hide the user's.

    So has each file of a folder whose files the host reads together.
    """
    names = [] if server_list.whole_user else [Path(server_list.workspace).name]
    names += [server_list.file.stem] if "*" in server_list.host.user else []
    return server_slug("-".join(["toolscout", *names]))[:32]


def _variables(server_list: ServerList) -> Iterator[tuple[str, str]]:
    """Yield the variables that the entries need, each with the reference that the host fills in."""
    for entry in server_list.others.values():
        for name in _EXPANDED if isinstance(entry, Mapping) else ():
            for text in _texts(entry.get(name)):
                yield from references(text, bare=server_list.host.name in BARE_VARIABLES)


def _listed_variables(server_list: ServerList) -> list[Any]:
    """Return the variables that the entries take from the host, where it passes on only those that are listed."""
    names: list[Any] = []
    field = server_list.host.variables
    for entry in server_list.others.values() if field else ():
        if isinstance(entry, Mapping):
            headers = entry.get("env_http_headers")
            names += entry[field] if isinstance(entry.get(field), list) else []
            names += [entry["bearer_token_env_var"]] if entry.get("bearer_token_env_var") else []
            names += headers.values() if isinstance(headers, Mapping) else []
    return _distinct(names)


def _distinct(names: Sequence[Any]) -> list[Any]:
    """Return each name once. In Codex's file a name may also be a table, which no set or dict can hold."""
    return [name for number, name in enumerate(names) if name not in names[:number]]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _record_content(server_list: ServerList, rules: HostRules, record: ImportRecord | None, after: bytes) -> bytes:
    """Return the content of the record file: the servers, unchanged, and where they came from."""
    section = server_list.path[-1]
    values: dict[str, Any] = dict(record.values) if record else {}
    moved = {title: entry for title, entry in server_list.others.items() if title not in rules.staying}
    values[section] = {**(record.entries if record else {}), **moved}
    if server_list.inputs:
        values["inputs"] = list(server_list.inputs)
    imported = {
        "host": server_list.host.name,
        "file": str(server_list.file),
        "path": list(server_list.path),
        "workspace": server_list.workspace,
        "written": "" if record else digest(after),
        "link": server_list.file.is_symlink(),
    }
    own = dict(values.get("toolscout") or {})
    if rules.options:
        own["servers"] = {**rules.options, **(own.get("servers") or {})}
    values["toolscout"] = {**own, "imported": imported}
    if record is None or not record.edited:
        imported["own"] = content_digest(values)
    return (to_json(values) + "\n").encode("utf-8")


def _free_path(server_list: ServerList, folder: Path) -> Path:
    """Choose an unused file name: the host's name for the user's list, or else one with the project's name."""
    name = server_slug(server_list.host.name)
    path = folder / f"{name}.json"
    if not server_list.whole_user or path.exists():
        if not server_list.whole_user:
            name = server_slug(f"{name}-{Path(server_list.workspace).name}")
        path = folder / f"{add_suffix(name, chr(0).join((str(server_list.file), *server_list.path)))}.json"
    if path.exists():
        raise ConfigError(f"{path} exists and was not written by an import", hint="rename it, then try again")
    return path


def _encode(text: str, *, like: bytes) -> bytes:
    """Encode a file's new text, with a byte order mark if it had one."""
    return (_BOM if like.startswith(_BOM) else b"") + text.encode("utf-8")
