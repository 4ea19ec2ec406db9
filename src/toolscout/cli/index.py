"""`toolscout index`: add tools to the catalogue, and update them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import options
from toolscout.errors import InputFileError, UsageError
from toolscout.models import LOCAL, OUTPUT_HINT, Caller, Dropped, IndexReport, ServerStatus

if TYPE_CHECKING:
    from toolscout.config import Config


def index(
    tools: Annotated[
        list[Path] | None,
        typer.Option(
            "--tools",
            metavar="F.jsonl",
            help="A file of tools: one JSON object a line, or a list of them. May be repeated.",
        ),
    ] = None,
    config: options.ConfigFiles = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Index the bundled sample catalogue, to try things out.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Make a bad line or tool an error instead of skipping it.")
    ] = False,
    tenant: options.Tenant = LOCAL,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Index tools: embed new and changed ones, and remove those that a server no longer has.

    Without a file, toolscout connects to the servers of the config and indexes their tools. Tools that have no vector
    yet are embedded too, for example after a change of the model. Exits with 1 if a server cannot be reached.

    Examples: `toolscout index --sample`, `toolscout index --config mcp.json`, `toolscout index --tools tools.jsonl`
    """
    from toolscout.cli.output import console, print_json, show_report, show_servers
    from toolscout.cli.serve import config_files

    if sample and tools:
        raise UsageError("--sample and --tools cannot be combined", hint="index the sample into another --store")
    if sample:
        from toolscout.sample import path

        tools = [path()]
    if not config and not tools and tenant == LOCAL:
        config = config_files([])
    work = _index(tools or [], config or [], strict, store, Caller(tenant=tenant), quiet=json)
    reports, servers, empty_reason = options.run(work, interrupted="interrupted; nothing unfinished was published")
    if json:
        rows: list[dict[str, object]] = [_summary(report) for report in reports]
        if servers:
            rows[-1]["servers"] = [asdict(status) for status in servers]
        print_json(rows)
    elif tools or servers:
        for report in reports:
            show_report(report)
        if servers:
            show_servers(servers)
    elif empty_reason and tenant == LOCAL:
        console().print(empty_reason)
        raise typer.Exit(1)
    else:
        embedded = reports[0].embedded
        console().print(f"embedded {embedded:,} tools" if embedded else "nothing to do: every tool has its vector")
    for file, report in zip(tools or [], reports, strict=False):
        if not report.total:
            raise InputFileError(f"no tool of {file} can be used", hint="correct those that were dropped")
    if any(status.state in ("failed", "needs_login") for status in servers):
        raise typer.Exit(1)


async def _index(
    files: list[Path], configs: list[Path], strict: bool, store: str | None, caller: Caller, *, quiet: bool
) -> tuple[list[IndexReport], list[ServerStatus], str]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from toolscout.config import read_config
    from toolscout.scout import Scout

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    config = read_config(configs, partial=True) if configs else None
    async with Scout.open(store=store) as scout:
        console = Console(stderr=True)
        with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
            task = bar.add_task("embedding", total=None)

            def progress(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            reports = [await scout.index_tools(file, strict=strict, caller=caller, progress=progress) for file in files]
            refreshed = [] if files else [await scout.refresh(caller=caller, progress=progress)]
            if config is not None:
                bar.update(task, description="connecting")
                sync = await scout.connect(config if caller.tenant == LOCAL else _config_for(config, caller.tenant))
                await sync.settled()
                statuses = [_with_output_hint(status) for status in scout.servers.statuses()]
                return [*reports, merge_reports([*refreshed, *sync.reports])], statuses, ""
            return reports or refreshed, [], await options.empty_catalogue_reason(scout, caller)


def _config_for(config: Config, tenant: str) -> Config:
    """Return the config with only the servers that a tenant may use, for that tenant alone."""
    servers = (server for server in config.servers if server.tenants in (None, "all") or tenant in server.tenants)
    return replace(config, servers=tuple(replace(server, tenants=(tenant,)) for server in servers))


def merge_reports(reports: Sequence[IndexReport]) -> IndexReport:
    """Merge the reports of several publications into one. A server that was indexed twice counts once."""
    listed = frozenset[tuple[str, str]]().union(*(report.listed for report in reports))
    new, changed = sum(report.new for report in reports), sum(report.changed for report in reports)
    return IndexReport(
        new=new,
        changed=changed,
        unchanged=max(0, len(listed) - new - changed),
        removed=sum(report.removed for report in reports),
        embedded=sum(report.embedded for report in reports),
        unembedded=max((report.unembedded for report in reports), default=0),
        dropped=_once(item for report in reports for item in report.dropped),
        collisions=_once(item for report in reports for item in report.collisions),
        look_alikes=_once(item for report in reports for item in report.look_alikes),
        quarantined=_once(item for report in reports for item in report.quarantined),
        offered=tuple(sorted({key for report in reports for key in report.offered})),
        generation=max((report.generation for report in reports), default=0),
        took_ms=sum(report.took_ms for report in reports),
        listed=listed,
    )


def _once(items: Iterable[Dropped]) -> tuple[Dropped, ...]:
    return tuple(dict.fromkeys(items))


def _with_output_hint(status: ServerStatus) -> ServerStatus:
    """Add where the output of a failed server is, if it printed anything."""
    if status.state != "failed" or not status.stderr.strip():
        return status
    return replace(status, hint="; ".join(filter(None, (status.hint, OUTPUT_HINT))))


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
        "look_alikes": [{"where": item.where, "reason": item.reason} for item in report.look_alikes],
        "quarantined": [{"where": item.where, "reason": item.reason} for item in report.quarantined],
        "offered": list(report.offered),
        "generation": report.generation,
        "took_ms": round(report.took_ms, 1),
    }
