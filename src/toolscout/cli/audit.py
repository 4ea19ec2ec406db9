"""`toolscout audit`: read the audit log of calls and administrative acts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscout.cli import options
from toolscout.errors import InputFileError

if TYPE_CHECKING:
    from rich.text import Text


def audit(
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="T", help="Only lines of this tenant.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="U", help="Only lines of this user.")] = None,
    tool: Annotated[
        str | None,
        typer.Option("--tool", metavar="GLOB", help="Only lines about tools whose key matches, as in `bank__*`."),
    ] = None,
    act: Annotated[
        str | None, typer.Option("--act", metavar="GLOB", help="Only acts that match, as in `call` or `keys.*`.")
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option("--outcome", metavar="O", help="Only calls with this outcome, as in `ok` or `not_allowed`."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="1h|2027-01-01", help="Only lines since then: a duration or a date."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-k", metavar="N", help="How many lines to show, counted from the end.")
    ] = 50,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="F", help="The audit log. Default: TOOLSCOUT_AUDIT, or the one in your data folder."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show the last lines of the audit log, oldest first. Exits with 1 if no line matches.

    Example: `toolscout audit --tenant acme --outcome not_allowed --since 1h`
    """
    from toolscout.cli import dates
    from toolscout.cli.output import console, print_json, safe
    from toolscout.settings import Settings

    equal = {"tenant": tenant, "user": user, "outcome": outcome}
    equal_fields = {name: value for name, value in equal.items() if value is not None}
    globs = {name: value for name, value in {"tool": tool, "act": act}.items() if value is not None}
    begin = dates.iso_time(dates.since(since, "--since")) or "" if since else ""
    path = file or options.audit_file(Settings.from_env())
    lines: deque[dict[str, Any]] = deque(maxlen=max(limit, 1))
    empty_message = "No line matches."
    try:
        lines.extend(_matching_lines(path, equal_fields, globs, begin))
    except InputFileError as error:
        if file:
            raise
        empty_message = f"{error.message}: {error.hint}"
    if json:
        print_json({"lines": list(lines)})
    else:
        for line in lines:
            console().print(_format_line(line), soft_wrap=True)
        if not lines:
            console().print(safe(empty_message), soft_wrap=True)
    if not lines:
        raise typer.Exit(1)


def _matching_lines(
    path: Path, equal_fields: dict[str, str], globs: dict[str, str], begin: str
) -> Iterator[dict[str, Any]]:
    from toolscout.telemetry import read_audit

    for line in read_audit(path):
        # Both times are UTC in the same format, so they can be compared as text.
        if (
            str(line.get("at", "")) >= begin
            and all(line.get(name) == value for name, value in equal_fields.items())
            and all(fnmatchcase(str(line.get(name) or ""), glob) for name, glob in globs.items())
        ):
            yield line


def _format_line(line: dict[str, Any]) -> Text:
    from rich.text import Text

    from toolscout.printable import escape_controls

    def text(name: str) -> str:
        return escape_controls(str(line.get(name) or ""))

    outcome = text("outcome")
    style = "green" if outcome in ("ok", "") else "yellow" if line.get("decision") == "refused" else "red"
    who = "/".join(part for part in (text("tenant"), text("user")) if part)
    by = f" by {text('by')}" if line.get("by") else ""
    ms = f" {line['ms']:.1f} ms" if isinstance(line.get("ms"), (int, float)) else ""
    about = text("tool") or text("key_id") or text("server") or text("source")
    why = (f": {text('reason')}", "red") if line.get("reason") else ""
    return Text.assemble(
        (text("at"), "dim"),
        f"  {text('act')}  ",
        (about, "cyan"),
        f"  {who}{by}",
        why,
        "  ",
        (outcome, style),
        (ms, "dim"),
    )
