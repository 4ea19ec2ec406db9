"""`toolscout index`: bring tools into the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolscout.cli import options
from toolscout.errors import UsageError
from toolscout.models import IndexReport


def index(
    tools: Annotated[
        list[Path] | None,
        typer.Option("--tools", metavar="F.jsonl", help="A file of tools, one JSON object a line. May be repeated."),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Index the bundled sample catalogue, to try things out.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Make a bad line or tool an error instead of leaving it out.")
    ] = False,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Index tools: what changed is embedded, what did not costs nothing, what a server no longer has goes away.

    Without a file, it embeds what has no vector yet: after the embedder was down, or after a change of the model.

    Examples: `toolscout index --sample`, `toolscout index --tools tools.jsonl --store sqlite:///tools.db`
    """
    from toolscout.cli.show import print_json, show_report

    if sample and tools:
        raise UsageError("--sample and --tools exclude one another", hint="index the sample into a --store of its own")
    if sample:
        from toolscout.sample import path

        tools = [path()]
    reports = options.run(_index(tools or [], strict, store, quiet=json))
    if json:
        print_json([_summary(report) for report in reports])
        return
    for report in reports:
        show_report(report)


async def _index(files: list[Path], strict: bool, store: str | None, *, quiet: bool) -> list[IndexReport]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from toolscout.scout import Scout

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    async with Scout.open(store=store) as scout:
        console = Console(stderr=True)
        with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
            task = bar.add_task("embedding", total=None)

            def progress(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            if not files:
                return [await scout.refresh(progress=progress)]
            return [await scout.index_tools(file, strict=strict, progress=progress) for file in files]


def _summary(report: IndexReport) -> dict[str, object]:
    return {
        "total": report.total,
        "new": report.new,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "embedded": report.embedded,
        "unembedded": report.unembedded,
        "dropped": [{"where": item.where, "reason": item.reason} for item in report.dropped],
        "collisions": [{"where": item.where, "reason": item.reason} for item in report.collisions],
        "generation": report.generation,
        "took_ms": round(report.took_ms, 1),
    }
