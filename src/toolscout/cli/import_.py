"""`toolscout import`: find the servers that this machine's agent hosts have, and put toolscout in front of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscout.cli import options

if TYPE_CHECKING:
    from toolscout.cli.host_import import HostEdit
    from toolscout.cli.hosts import Host, Place


def import_(
    target: Annotated[
        str | None,
        typer.Argument(metavar="CLIENT|PATH", help="One host, such as cursor, or one config file. Default: all hosts."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Put toolscout in front; a backup is written first.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Give the hosts their servers back.")] = False,
    json: options.Json = False,
) -> None:
    """Show the MCP servers of the agent hosts on this machine; with --write, put toolscout in front of them.

    The servers move, untouched, into a file in your config folder; the host keeps everything else and starts
    toolscout instead. Files of a project, which others share, are rewritten only when they are named.

    Examples: `toolscout import`, `toolscout import cursor --write`, `toolscout import --undo`
    """
    from toolscout.cli.output import print_json
    from toolscout.errors import UsageError
    from toolscout.settings import config_folder

    if write and undo:
        raise UsageError("--write and --undo exclude one another", hint="use one of them")
    folder = config_folder()
    host, file = _target(target)
    places = [] if undo else _places(host, file)
    changes = _undo(folder, host, file) if undo else _write(places, folder, named=file is not None) if write else []
    if json:
        print_json({"found": [_found(place) for place in places], "changes": [_changed(change) for change in changes]})
    elif write or undo:
        _show_changes(changes)
    else:
        _show_places(places)
    if not places and not changes:
        raise typer.Exit(1)


def launch_command() -> list[str]:
    """Return how a host starts the toolscout that is running now."""
    import shutil
    import sys

    name = Path(sys.argv[0]).name.lower().removesuffix(".exe")
    found = shutil.which(sys.argv[0]) if name == "toolscout" else None
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "toolscout"]


def _target(target: str | None) -> tuple[Host | None, Path | None]:
    import difflib

    from toolscout.cli.hosts import HOSTS
    from toolscout.errors import UsageError

    if target is None:
        return None, None
    host = next((host for host in HOSTS if host.name == target.lower()), None)
    if host is not None:
        return host, None
    path = Path(target)
    if path.exists() or path.suffix or path.name != target:
        return None, path.absolute()
    names = [host.name for host in HOSTS]
    raise UsageError(
        f"{target!r} is neither a host nor a file",
        hint=f"hosts: {', '.join(names)}",
        suggestions=difflib.get_close_matches(target.lower(), names, n=3),
    )


def _places(host: Host | None, file: Path | None) -> list[Place]:
    import os

    from toolscout.cli.hosts import find_places, host_of, read_places
    from toolscout.errors import ConfigError

    if file is None:
        return find_places(os.environ, Path.cwd(), only=host)
    item, shared = host_of(file, os.environ)
    places = list(read_places(item, file, shared=shared))
    if places and places[0].problem:
        raise ConfigError(places[0].problem, hint="correct the file")
    return places


def _write(places: list[Place], folder: Path, *, named: bool) -> list[HostEdit]:
    from itertools import groupby

    from toolscout.cli.host_import import HostEdit, put_in_front

    launch = launch_command()
    changes = []
    for file, listed in groupby(places, lambda place: place.file):
        group = list(listed)
        reason = _unwritten(group[0], launch, folder, named=named)
        if reason:
            changes.append(HostEdit(host=group[0].host.name, file=str(file), done="skipped", notes=(reason,)))
        else:
            changes.append(put_in_front(group, launch, folder))
    return changes


def _unwritten(place: Place, launch: list[str], folder: Path, *, named: bool) -> str:
    """Say why a file is not rewritten, "" when it is."""
    import shlex

    if place.problem:
        return place.problem
    if not place.writable:
        own = str(folder / f"{place.host.name}.toml")
        command = shlex.join(["codex", "mcp", "add", "toolscout", "--", *launch, "serve", "--config", own])
        return f"TOML is read, not rewritten: move its [mcp_servers] tables to {own} and run `{command}`"
    if place.shared and not named:
        return "others share this file: to rewrite it all the same, name it"
    return ""


def _undo(folder: Path, host: Host | None, file: Path | None) -> list[HostEdit]:
    from toolscout.cli.host_import import undo

    return undo(folder, host.name if host else None, file)


def _found(place: Place) -> dict[str, Any]:
    from toolscout.cli.hosts import describe_server

    return {
        "host": place.host.name,
        "file": str(place.file),
        "project": place.workspace if not place.whole_user else None,
        "shared": place.shared,
        "writable": place.writable,
        "in_front": len(place.others) < len(place.servers),
        "servers": [{"name": title, **describe_server(entry)} for title, entry in place.others.items()],
        "problem": place.problem or None,
    }


def _changed(change: HostEdit) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(change)


def _show_places(places: list[Place]) -> None:
    from rich import box
    from rich.table import Table

    from toolscout.cli.output import console, safe

    out = console()
    if not places:
        out.print("No configuration of a known host lists servers here.")
        return
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("host", style="cyan", no_wrap=True)
    table.add_column("file", overflow="fold")
    table.add_column("servers", style="green")
    table.add_column("")
    for place in places:
        file = _short(place.file) + (f" ({place.workspace})" if len(place.path) > 1 else "")
        said = [f"{item['name']} ({item['at'] or item['transport']})" for item in _found(place)["servers"]]
        table.add_row(safe(place.host.title), safe(file), safe(", ".join(said)), safe(_remark(place)))
    out.print(table)
    if any(place.others and place.writable for place in places):
        out.print(
            "`toolscout import --write` puts toolscout in front of them; `toolscout import --undo` takes it away."
        )


def _remark(place: Place) -> str:
    if place.problem:
        return place.problem
    said = ["toolscout is in front"] if len(place.others) < len(place.servers) else []
    if place.shared:
        said.append("shared with the project: written only when it is named")
    if not place.writable:
        said.append("read, not rewritten")
    elif place.comments and place.others:
        said.append("comments among the servers would be kept in the backup only")
    return "; ".join(said)


def _show_changes(changes: list[HostEdit]) -> None:
    from rich.text import Text

    from toolscout.cli.output import console, safe

    out = console()
    if not changes:
        out.print("There is nothing to do.")
    for change in changes:
        out.print(Text(f"{change.done}  ", "bold") + safe(f"{change.host}: {_short(Path(change.file))}"))
        lines = [f"servers: {', '.join(change.servers)}"] if change.servers else []
        lines += [f"moved to {_short(Path(path))}" for path in change.moved_to]
        lines += [f"backup: {_short(Path(change.backup))}"] if change.backup else []
        for line in (*lines, *change.notes):
            out.print(safe(f"    {line}"), soft_wrap=True)
    if any(change.done in ("moved", "restored", "put back") for change in changes):
        out.print("Restart the host to see the change.")


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
