"""`toolscout changes` and `approve`: changed definitions and quarantined tools, and decisions about them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import options
from toolscout.models import LOCAL, Change, Scope, Tool

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from toolscout.definition_diff import DiffLine

_NO_VISIBLE_CHANGE = (
    "a part that toolscout does not show: a field that it does not read, white space at the end, or a text that your "
    "config replaces"
)
_NO_OLD_DEFINITION = "there is no earlier definition to compare with: the tool is new, or its server was removed"


def changes(
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="T", help="Only tools of this tenant. Default: all tenants.")
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Also show tools that you have kept out and that have not changed since.")
    ] = False,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Show tools whose definition changed since it was first seen or approved, and tools in quarantine.

    Exits with 1 if something waits for a decision.

    Example: `toolscout changes --json`
    """
    from toolscout.cli.output import console, print_json
    from toolscout.definition_diff import change_row

    rows = [item for item in options.run(_changes(store, tenant)) if all_ or item.waits]
    if json:
        print_json({"changes": [change_row(item) for item in rows]})
    elif not rows:
        console().print("Nothing waits for a decision.")
    else:
        for item in rows:
            _show(console(), item)
        _show_next_step(console(), [item for item in rows if item.waits])
    if any(item.waits for item in rows):
        raise typer.Exit(1)


def approve(
    keys: Annotated[list[str], typer.Argument(metavar="KEY[@VERSION]", help="As `toolscout changes` shows them.")],
    keep_out: Annotated[
        bool, typer.Option("--keep-out", help="Withhold the tools from everyone instead, also when they change again.")
    ] = False,
    user: Annotated[
        str | None,
        typer.Option("--as", metavar="USER", help="Tools that this user added. Default: tools of the tenant."),
    ] = None,
    tenant: options.Tenant = LOCAL,
    store: options.Store = None,
) -> None:
    """Approve definitions that `changes` showed. The decision survives re-indexing.

    A tool that waits for a decision is approved with its version, so that nothing else is approved than what you saw.
    If one of the keys is unknown, or has another version by now, nothing is decided.

    Examples: `toolscout approve github__create_issue@VERSION`, `toolscout approve --keep-out notes__sync`
    """
    from toolscout.cli.output import console, safe

    tools = options.run(_decide(store, Scope(tenant=tenant, owner=user), keys, keep_out=keep_out))
    verdict = "kept out" if keep_out else "approved"
    for tool in tools:
        console().print(safe(f"{verdict} {tool.key}  v{tool.version}"))


async def _changes(store: str | None, tenant: str | None) -> list[Change]:
    from toolscout.scout import Scout

    async with Scout.open(store=options.existing(store)) as scout:
        rows = await scout.decisions.changes()
    return [item for item in rows if tenant in (None, item.scope.tenant)]


async def _decide(store: str | None, scope: Scope, keys: list[str], *, keep_out: bool) -> list[Tool]:
    from toolscout.scout import Scout

    async with Scout.open(settings=options.operating(options.existing(store))) as scout:
        return await scout.decisions.decide(scope, keys, "kept_out" if keep_out else "approved")


def _show(out: Console, change: Change) -> None:
    from rich.text import Text

    from toolscout.cli.output import safe
    from toolscout.definition_diff import compare, state_of

    state = state_of(change)
    head = Text.assemble(
        (safe(change.key).plain, "bold cyan"), "  ", (state, "yellow" if state == "changed" else "red")
    )
    head += Text(f"  {change.version}", style="dim")
    where = _where(change.scope)
    out.print(head + (Text(f"  {safe(where).plain}", style="dim") if where else Text("")), soft_wrap=True)
    for item in change.findings:
        style = "red" if item.severity == "quarantine" else "yellow"
        reason = safe(f" in {item.where}: {item.reason}").plain
        out.print(Text.assemble("  ", (item.rule, style), reason), soft_wrap=True)
        out.print(Text("    ") + safe(item.excerpt), style="dim", soft_wrap=True)
    if change.changed and change.before is None:
        out.print(f"  changed, but {_NO_OLD_DEFINITION}")
    elif change.changed and change.before is not None:
        diffs = compare(change.before, change.after)
        if not diffs:
            out.print(f"  changed in {_NO_VISIBLE_CHANGE}")
        for field in diffs:
            out.print(Text("  ") + safe(field.field), style="bold", soft_wrap=True)
            for line in field.lines:
                out.print(_format_line(line), soft_wrap=True)
    out.print()


def _format_line(line: DiffLine) -> Text:
    from rich.text import Text

    sign, style = {"removed": ("-", "red"), "added": ("+", "green"), "gap": ("", "dim"), "same": (" ", "")}[line.kind]
    begin = f"    {sign} "
    text = Text(begin + line.text, style=style)
    for start, end in line.marked:
        text.stylize("bold reverse", len(begin) + start, len(begin) + end)
    return text


def _show_next_step(out: Console, waiting: Sequence[Change]) -> None:
    from toolscout.cli.output import safe

    if not waiting:
        return
    out.print(f"{len(waiting)} waiting. To approve a definition, or to withhold the tool from everyone:")
    first = waiting[0]
    out.print(safe(f"  toolscout approve {_command_arguments(first, first.approval)}"), soft_wrap=True)
    out.print(safe(f"  toolscout approve --keep-out {_command_arguments(first, first.key)}"), soft_wrap=True)


def _command_arguments(change: Change, target: str) -> str:
    scope = change.scope
    words = [target]
    words += ["--tenant", scope.tenant] if scope.tenant != LOCAL else []
    words += ["--as", scope.owner] if scope.owner is not None else []
    return shlex.join(words)


def _where(scope: Scope) -> str:
    tenant = f"tenant {scope.tenant}" if scope.tenant != LOCAL else ""
    return ", ".join(part for part in (tenant, f"user {scope.owner}" if scope.owner is not None else "") if part)
