"""`toolscout audit`: who called what, and what operators did."""

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
        typer.Option("--tool", metavar="GLOB", help="Only lines about tools whose key fits, as in `bank__*`."),
    ] = None,
    act: Annotated[
        str | None, typer.Option("--act", metavar="GLOB", help="Only lines of acts that fit, as in `call` or `keys.*`.")
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option("--outcome", metavar="O", help="Only calls that ended so, as in `ok` or `not_allowed`."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="1h|2027-01-01", help="Only lines since then.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-k", metavar="N", help="How many lines, the last ones.")] = 50,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="F", help="The audit log. Default: TOOLSCOUT_AUDIT, or your own.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show the last lines of the audit log, oldest first; exits with 1 when none fits.

    Example: `toolscout audit --tenant acme --outcome not_allowed --since 1h`
    """
    from toolscout.cli.dates import since as moment
    from toolscout.cli.dates import stamp
    from toolscout.cli.output import console, print_json, safe
    from toolscout.settings import Settings

    wanted = {"tenant": tenant, "user": user, "outcome": outcome}
    exactly = {name: value for name, value in wanted.items() if value is not None}
    globs = {name: value for name, value in {"tool": tool, "act": act}.items() if value is not None}
    begin = stamp(moment(since, "--since")) or "" if since else ""
    path = file or options.audit_file(Settings.from_env())
    found: deque[dict[str, Any]] = deque(maxlen=max(limit, 1))
    none = "No line fits."
    try:
        found.extend(_lines(path, exactly, globs, begin))
    except InputFileError as error:
        if file:
            raise
        none = f"{error.message}: {error.hint}"
    if json:
        print_json({"lines": list(found)})
    else:
        for line in found:
            console().print(_shown(line), soft_wrap=True)
        if not found:
            console().print(safe(none), soft_wrap=True)
    if not found:
        raise typer.Exit(1)


def _lines(path: Path, exactly: dict[str, str], globs: dict[str, str], begin: str) -> Iterator[dict[str, Any]]:
    from toolscout.telemetry import read_audit

    for line in read_audit(path):
        # Both times are UTC in the same notation, so that the order of texts is that of moments.
        if (
            str(line.get("at", "")) >= begin
            and all(line.get(name) == value for name, value in exactly.items())
            and all(fnmatchcase(str(line.get(name) or ""), glob) for name, glob in globs.items())
        ):
            yield line


def _shown(line: dict[str, Any]) -> Text:
    from rich.text import Text

    from toolscout.cli.output import safe

    def said(name: str) -> str:
        return safe(str(line.get(name) or "")).plain.replace("\n", "\\n")

    outcome = said("outcome")
    style = "green" if outcome in ("ok", "") else "yellow" if line.get("decision") == "refused" else "red"
    who = "/".join(part for part in (said("tenant"), said("user")) if part)
    by = f" by {said('by')}" if line.get("by") else ""
    ms = f" {line['ms']:.1f} ms" if isinstance(line.get("ms"), (int, float)) else ""
    about = said("tool") or said("key_id") or said("server") or said("source")
    why = (f": {said('reason')}", "red") if line.get("reason") else ""
    return Text.assemble(
        (said("at"), "dim"),
        f"  {said('act')}  ",
        (about, "cyan"),
        f"  {who}{by}",
        why,
        "  ",
        (outcome, style),
        (ms, "dim"),
    )
