"""Putting toolscout in front of a host's servers, and taking it away again: backed up, atomic, repeatable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from toolscout.cli.hosts import Place
from toolscout.cli.import_record import ImportRecord, digest, import_records, own_digest, write_file
from toolscout.config.files import is_toolscout, load, read_text
from toolscout.config.jsonc import replace_value, to_json, value_at
from toolscout.config.variables import references
from toolscout.errors import ConfigError
from toolscout.tool_keys import apart, server_slug

BACKUP = ".toolscout-backup"
UNDONE = ".undone"

_BOM = b"\xef\xbb\xbf"
_PRIVATE = 0o600
_EXPANDED = ("command", "args", "env", "envFile", "cwd", "url", "serverUrl", "httpUrl", "headers")

Done = Literal["moved", "unchanged", "skipped", "restored", "put back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEdit:
    """What was done to one file, and what the user should know about it."""

    host: str
    file: str
    done: Done
    servers: tuple[str, ...] = ()
    moved_to: tuple[str, ...] = ()
    backup: str = ""
    notes: tuple[str, ...] = ()


def put_in_front(places: Sequence[Place], launch: Sequence[str], folder: Path) -> HostEdit:
    """Move the servers of all places of one file behind toolscout; where there are none left, change nothing."""
    host, file = places[0].host, places[0].file
    todo = [place for place in places if place.others]
    if not todo:
        return HostEdit(host=host.name, file=str(file), done="unchanged")
    before, text = file.read_bytes(), read_text(file)
    records = {record.place: record for record in import_records(folder)}
    plans: list[tuple[Place, Path, ImportRecord | None]] = []
    for place in todo:
        record = records.get((str(file), place.path))
        moved = record.path if record else _free_path(place, folder)
        plans.append((place, moved, record))
        text = replace_value(text, place.path, _fronted(place, moved, launch))
    after = _encoded(text, like=before)
    backup = Path(f"{file}{BACKUP}")
    untouched = all(len(place.others) == len(place.servers) for place in places)
    if untouched or not backup.exists():
        write_file(backup, before, file.stat().st_mode)
    for place, moved, record in plans:
        write_file(moved, _moved_document(place, record, after), _PRIVATE)
    if file.read_bytes() != before:
        raise ConfigError(f"{file} has changed meanwhile", hint=f"close {host.title} and run it again")
    write_file(file, after, file.stat().st_mode)
    return HostEdit(
        host=host.name,
        file=str(file),
        done="moved",
        servers=tuple(title for place in todo for title in place.others),
        moved_to=tuple(str(moved) for _, moved, _ in plans),
        backup=str(backup),
        notes=("comments among its servers are in the backup only",) if any(place.comments for place in todo) else (),
    )


def undo(folder: Path, host: str | None = None, file: Path | None = None) -> list[HostEdit]:
    """Give every host, one host or one file its servers back."""
    wanted = [
        moved
        for moved in import_records(folder)
        if host in (None, moved.imported.get("host")) and (file is None or moved.place[0] == str(file))
    ]
    wanted.sort(key=lambda moved: moved.place)
    changes = [_undo_file(Path(name), list(records)) for name, records in groupby(wanted, lambda moved: moved.place[0])]
    with suppress(OSError):
        folder.rmdir()
    return changes


def _undo_file(file: Path, records: list[ImportRecord]) -> HostEdit:
    """Restore the backup where the file is as we left it; else put the servers back into what it is now."""
    host, backup = str(records[0].imported.get("host")), Path(f"{file}{BACKUP}")
    if not file.is_file():
        return HostEdit(
            host=host, file=str(file), done="skipped", notes=("the file is gone; its servers stay where they are",)
        )
    now = file.read_bytes()
    notes: list[str] = []
    exact = backup.is_file() and all(record.imported.get("written") == digest(now) for record in records)
    if exact:
        write_file(file, backup.read_bytes(), file.stat().st_mode)
        backup.unlink()
    else:
        values = load(file)
        text = read_text(file)
        for record in list(records):
            if isinstance(value_at(values, record.place[1]), dict):
                text = _put_back(text, value_at(values, record.place[1]), record)
            else:
                notes.append(f"its list of servers is gone; they stay in {record.path}")
                records.remove(record)
        if _encoded(text, like=now) != now:
            write_file(file, _encoded(text, like=now), file.stat().st_mode)
        notes.append("the file had changed since, so only its servers were put back; the backup is kept")
    for record in records:
        if record.edited:
            record.path.replace(f"{record.path}{UNDONE}")
            notes.append(f"your own edits are kept in {record.path}{UNDONE}")
        else:
            record.path.unlink()
    return HostEdit(
        host=host,
        file=str(file),
        done="restored" if exact else "put back",
        servers=tuple(title for record in records for title in record.entries),
        backup="" if exact else str(backup),
        notes=tuple(notes),
    )


def _put_back(text: str, now: Mapping[str, Any], record: ImportRecord) -> str:
    """Replace toolscout's entry by the servers that it stood for; whatever else is there now stays."""
    kept: dict[str, Any] = {}
    for title, entry in now.items():
        args = list(entry.get("args") or ()) if is_toolscout(entry) else []
        if str(record.path) not in args:
            kept[title] = entry
            continue
        at = args.index(str(record.path))
        del args[at - 1 : at + 1]
        if "--config" in args:
            kept[title] = {**entry, "args": args}
    back = {title: entry for title, entry in record.entries.items() if title not in kept}
    return text if kept == now and not back else replace_value(text, record.place[1], {**back, **kept})


def _fronted(place: Place, moved: Path, launch: Sequence[str]) -> dict[str, Any]:
    """Return the host's new list: toolscout alone, told where the others are and handed what they need."""
    env = dict(_needed(place)) if place.host.expands else {}
    ours = {title: dict(entry) for title, entry in place.servers.items() if is_toolscout(entry)}
    if not ours:
        entry = {**place.host.entry, "command": launch[0], "args": [*launch[1:], "serve", "--config", str(moved)]}
        return {_title(place): {**entry, "env": env} if env else entry}
    entry = next((entry for entry in ours.values() if str(moved) in entry.get("args", [])), next(iter(ours.values())))
    if str(moved) not in entry.get("args", []):
        entry["args"] = [*entry.get("args", []), "--config", str(moved)]
    if env:
        entry["env"] = {**env, **(entry.get("env") or {})}
    return ours


def _title(place: Place) -> str:
    """Name toolscout's entry; a project's has its own name, since hosts let it hide the user's of the same name."""
    return "toolscout" if place.whole_user else server_slug(f"toolscout-{Path(place.workspace).name}")[:32]


def _needed(place: Place) -> Iterator[tuple[str, str]]:
    """Return what the entries take from the environment, as the references that this host fills in itself."""
    for entry in place.others.values():
        for name in _EXPANDED if isinstance(entry, Mapping) else ():
            for text in _texts(entry.get(name)):
                yield from references(text, bare=place.host.name == "gemini")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _moved_document(place: Place, record: ImportRecord | None, after: bytes) -> bytes:
    """Write the place's servers, untouched, with the record of where they came from."""
    section = place.path[-1]
    values: dict[str, Any] = dict(record.values) if record else {}
    values[section] = {**(record.entries if record else {}), **place.others}
    if place.inputs:
        values["inputs"] = list(place.inputs)
    imported = {
        "host": place.host.name,
        "file": str(place.file),
        "path": list(place.path),
        "workspace": place.workspace,
        "written": "" if record else digest(after),
    }
    values["toolscout"] = {**(values.get("toolscout") or {}), "imported": imported}
    if record is None or not record.edited:
        imported["own"] = own_digest(values)
    return (to_json(values) + "\n").encode("utf-8")


def _free_path(place: Place, folder: Path) -> Path:
    """Choose a name that nobody has taken: the host's for its user's own list, else one with the project's name."""
    own = server_slug(place.host.name)
    path = folder / f"{own}.json"
    if not place.whole_user or path.exists():
        named = own if place.whole_user else server_slug(f"{own}-{Path(place.workspace).name}")
        path = folder / f"{apart(named, chr(0).join((str(place.file), *place.path)))}.json"
    if path.exists():
        raise ConfigError(f"{path} is in the way: no import has written it", hint="rename it, then run it again")
    return path


def _encoded(text: str, *, like: bytes) -> bytes:
    """Encode a file's new text, with a byte order mark where it had one."""
    return (_BOM if like.startswith(_BOM) else b"") + text.encode("utf-8")
