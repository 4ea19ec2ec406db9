"""`toolscout import`: find the MCP servers of the agent hosts on this machine, and put toolscout in front of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscout.cli import options

if TYPE_CHECKING:
    from toolscout.cli.host_import import HostEdit
    from toolscout.cli.hosts import Host, ServerList
    from toolscout.errors import ConfigError


def import_(
    target: Annotated[
        str | None,
        typer.Argument(metavar="CLIENT|PATH", help="One host, such as cursor, or one config file. Default: all hosts."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Make the hosts start toolscout instead. A backup is written first.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the hosts' own servers.")] = False,
    json: options.Json = False,
) -> None:
    """Show the MCP servers of the agent hosts on this machine. With --write, put toolscout in front of them.

    The servers move, unchanged, to a file in your config folder. The host starts toolscout instead and keeps all its
    other settings. Files of a project, which others share, are rewritten only when you name them.

    Examples: `toolscout import`, `toolscout import cursor --write`, `toolscout import --undo`
    """
    from dataclasses import asdict

    from toolscout.cli.output import print_json
    from toolscout.errors import UsageError
    from toolscout.settings import config_folder

    if write and undo:
        raise UsageError("--write and --undo cannot be combined", hint="use one of them")
    folder = config_folder()
    host, file = _target(target)
    lists = [] if undo else _server_lists(host, file)
    errors: list[ConfigError] = []
    edits = (
        _undo(folder, host, file) if undo else _write(lists, folder, errors, named=file is not None) if write else []
    )
    if json:
        print_json({"found": [_list_row(item) for item in lists], "changes": [asdict(edit) for edit in edits]})
    elif not lists and not edits:
        _show_nothing(host, undo=undo)
    elif write or undo:
        _show_edits(edits)
    else:
        _show_lists(lists)
    if not lists and not edits:
        raise typer.Exit(1)
    if errors and not json:
        raise errors[0]
    if any(edit.done == "failed" for edit in edits):
        raise typer.Exit(2)


def launch_command() -> list[str]:
    """Return the command with which a host starts the toolscout that is running now."""
    import shutil
    import sys

    name = Path(sys.argv[0]).name.lower().removesuffix(".exe")
    executable = shutil.which(sys.argv[0]) if name == "toolscout" else None
    return [str(Path(executable).absolute())] if executable else [sys.executable, "-m", "toolscout"]


def host_snippet() -> str:
    """Return the entry that a host needs to start toolscout. Its paths are absolute: hosts have another PATH."""
    import json

    launch = launch_command()
    return json.dumps({"mcpServers": {"toolscout": {"command": launch[0], "args": [*launch[1:], "serve"]}}})


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
    names = list(dict.fromkeys(host.name for host in HOSTS))
    raise UsageError(
        f"{target!r} is neither a host nor a file",
        hint=f"hosts: {', '.join(names)}",
        suggestions=difflib.get_close_matches(target.lower(), names, n=3),
    )


def _server_lists(host: Host | None, file: Path | None) -> list[ServerList]:
    import os

    from toolscout.cli.hosts import find_server_lists, host_of, read_server_lists
    from toolscout.errors import ConfigError

    if file is None:
        return find_server_lists(os.environ, Path.cwd(), only=host)
    file_host, shared = host_of(file, os.environ)
    lists = list(read_server_lists(file_host, file, shared=shared))
    if lists and lists[0].problem:
        raise ConfigError(lists[0].problem, hint="correct the file")
    return lists


def _write(lists: list[ServerList], folder: Path, errors: list[ConfigError], *, named: bool) -> list[HostEdit]:
    """Rewrite each file. One that cannot be written is added to `errors`, and does not hide what was done before."""
    from itertools import groupby

    from toolscout.cli.host_import import HostEdit, failed_edit, put_in_front
    from toolscout.errors import ConfigError

    launch = launch_command()
    edits = []
    for file, lists_of_file in groupby(lists, lambda item: item.file):
        group = list(lists_of_file)
        reason = _skip_reason(group[0], launch, named=named)
        if reason:
            edits.append(HostEdit(host=group[0].host.name, file=str(file), done="skipped", notes=(reason,)))
            continue
        refusing = _refusing(file)
        try:
            edit = put_in_front(group, launch, folder, closed=[title for title, open_ in refusing.items() if not open_])
            edits.append(_with_sign_ins(edit, refusing))
        except (ConfigError, OSError) as error:
            failure = error if isinstance(error, ConfigError) else ConfigError(f"{file} cannot be written: {error}")
            errors.append(failure)
            edits.append(failed_edit(group[0].host.name, file, failure))
    return edits


def _refusing(file: Path) -> Mapping[str, bool]:
    """Ask the servers of a host's file. Return those that refuse, and whether they say where to sign in.

    Nothing that the host keeps about them is read: it may hold tokens.
    """
    from dataclasses import replace

    from toolscout.config import read_config
    from toolscout.errors import ConfigError
    from toolscout.scout.accounts import find_refusing
    from toolscout.settings import Settings

    try:
        config = read_config(file, partial=True)
    except ConfigError:  # for instance variables that only the host has
        return {}
    # The address of a server in the user's own file may be on this machine. Those that it names may not.
    config = replace(config, servers=tuple(replace(server, private=True) for server in config.servers))
    return options.run(find_refusing(config, Settings.from_env()))


def _with_sign_ins(edit: HostEdit, refusing: Mapping[str, bool]) -> HostEdit:
    """Add which of the moved servers want a sign-in."""
    from dataclasses import replace

    from toolscout.tool_keys import server_slug

    slugs = [server_slug(title) for title in edit.servers if refusing.get(title)]
    notes = (f"{slug} wants you to sign in: run `toolscout login {slug}`" for slug in slugs)
    return replace(edit, notes=(*edit.notes, *notes))


def _skip_reason(server_list: ServerList, launch: list[str], *, named: bool) -> str:
    """Return why a file is not rewritten, or ""."""
    import os
    import shlex

    from toolscout.cli.host_rules import start_refusal
    from toolscout.settings import config_folder

    file = server_list.file
    if server_list.problem:
        return server_list.problem
    if not server_list.writable:
        copy = config_folder() / f"{server_list.host.name}-{file.stem}{file.suffix}"
        command = shlex.join([*launch, "serve", "--config", str(copy)])
        why = server_list.host.kept
        return f"{why}: copy the file to {copy}, then replace its servers with one that runs `{command}`"
    if server_list.shared and not named:
        return "others share this file: name it to rewrite it anyway"
    workspace = Path(server_list.workspace)
    if server_list.shared and Path(os.path.realpath(file)) != Path(os.path.realpath(workspace)) / file.relative_to(
        workspace
    ):
        return "it is a link, and links of a project are not followed"
    return start_refusal(server_list, os.environ)


def _undo(folder: Path, host: Host | None, file: Path | None) -> list[HostEdit]:
    from toolscout.cli.host_import import undo

    return undo(folder, host.name if host else None, file)


def _list_row(server_list: ServerList) -> dict[str, Any]:
    from toolscout.cli.hosts import describe_server

    return {
        "host": server_list.host.name,
        "file": str(server_list.file),
        "project": server_list.workspace if not server_list.whole_user else None,
        "shared": server_list.shared,
        "writable": server_list.writable,
        "in_front": len(server_list.others) < len(server_list.servers),
        "servers": [{"name": title, **describe_server(entry)} for title, entry in server_list.others.items()],
        "problem": server_list.problem or None,
    }


def _show_lists(lists: list[ServerList]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from toolscout.cli.output import console, safe
    from toolscout.printable import escape_controls

    out = console()
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("host", style="cyan", no_wrap=True)
    table.add_column("its file and servers", overflow="fold")
    for item in lists:
        file = _short(item.file) + (f" ({item.workspace})" if len(item.path) > 1 else "")
        servers = [f"{row['name']} ({row['at'] or row['transport']})" for row in _list_row(item)["servers"]]
        lines = filter(None, (file, ", ".join(servers), _remark(item)))
        table.add_row(safe(item.host.title), Text("\n".join(map(escape_controls, lines))))
    out.print(table)
    if any(item.others and item.writable for item in lists):
        out.print("`toolscout import --write` puts toolscout in front of them, `toolscout import --undo` reverts that.")
    out.print("For any other host, add this to its servers:")
    out.print(safe(host_snippet()), soft_wrap=True)


def _show_nothing(host: Host | None, *, undo: bool) -> None:
    """Say that there is nothing to import or undo, and what else to do."""
    import os

    from toolscout.cli.hosts import user_file
    from toolscout.cli.output import console, safe

    out = console()
    if undo:
        out.print("Nothing was imported, so there is nothing to undo.")
        return
    if host is not None:
        out.print(safe(f"{host.title} has no MCP servers: {_short(user_file(host.name, os.environ))} lists none."))
        return
    out.print("No agent host on this machine has MCP servers in a config that toolscout knows.")
    out.print("For any other host, add this to its servers:")
    out.print(safe(host_snippet()), soft_wrap=True)


def _remark(server_list: ServerList) -> str:
    if server_list.problem:
        return server_list.problem
    remarks = ["toolscout is in front"] if len(server_list.others) < len(server_list.servers) else []
    if server_list.shared:
        remarks.append("shared with the project: rewritten only when you name it")
    if not server_list.writable:
        remarks.append("cannot be rewritten")
    elif server_list.comments and server_list.others:
        remarks.append("comments among the servers would be kept only in the backup")
    return "; ".join(remarks)


def _show_edits(edits: list[HostEdit]) -> None:
    from rich.text import Text

    from toolscout.cli.output import console, safe
    from toolscout.printable import escape_controls

    out = console()
    for edit in edits:
        out.print(Text(f"{edit.done}  ", "bold") + safe(f"{edit.host}: {_short(Path(edit.file))}"), soft_wrap=True)
        lines = [f"servers: {', '.join(edit.servers)}"] if edit.servers else []
        lines += [f"moved to {_short(Path(path))}" for path in edit.moved_to]
        lines += [f"backup: {_short(Path(edit.backup))}"] if edit.backup else []
        for line in (*lines, *edit.notes):
            out.print(Text(f"    {escape_controls(line)}"), soft_wrap=True)
    if any(edit.done == "moved" for edit in edits):
        out.print("Restart the host to see the change. `toolscout doctor` shows whether all servers answer.")
    elif any(edit.done in ("restored", "put back") for edit in edits):
        out.print("Restart the host to see the change.")


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
