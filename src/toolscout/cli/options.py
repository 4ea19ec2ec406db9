"""Options and steps that several commands share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolscout.errors import StoreError
from toolscout.models import LOCAL, Caller
from toolscout.settings import Settings, data_folder, sqlite_file

if TYPE_CHECKING:
    from toolscout.ports import Progress
    from toolscout.scout import Scout

_Result = TypeVar("_Result")

_EMPTY = (
    "The catalogue is empty. `toolscout import` finds your servers, `toolscout index --config F` indexes them. "
    "To try toolscout without servers, run `toolscout index --sample`."
)
_HIDDEN = "This caller may not see any tool: `toolscout policy check KEY` shows why."

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where the catalogue is stored: `memory:`, `sqlite:///PATH` or `postgresql://...`. "
        "Default: a file in your data folder.",
    ),
]
ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", metavar="F", help="A config file, such as mcp.json. May be repeated. Default: your config folder."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
As = Annotated[str | None, typer.Option("--as", metavar="USER", help="See the catalogue as this user sees it.")]
Tenant = Annotated[
    str, typer.Option("--tenant", metavar="T", show_default=False, help="The tenant. Default: the local one.")
]
Groups = Annotated[list[str] | None, typer.Option("--group", metavar="G", help="A group of the user. May be repeated.")]
DetailLevel = Annotated[
    str, typer.Option("--detail", metavar="minimal|brief|full", help="How much detail to show for each tool.")
]


def caller_named(user: str | None = None, tenant: str = LOCAL, groups: list[str] | None = None) -> Caller:
    """Return the caller that `--as`, `--tenant` and `--group` name, by default the local one."""
    return Caller(tenant=tenant, user=user, groups=frozenset(groups or ()))


def existing(store: str | None) -> str | None:
    """Return the named store. For a command that only reads, a missing file is an error, not a new catalogue."""
    path = sqlite_file(store or Settings.from_env().store)
    if path is not None and not path.exists():
        raise StoreError(f"there is no catalogue at {path}", hint="check the path, or create it with `toolscout index`")
    return store


async def empty_catalogue_reason(scout: Scout, caller: Caller) -> str:
    """Return why the caller sees no tool and what to do about it, or "" if they see one.

    Only the command line shows this. Through the gateway it would reveal hidden tools.
    """
    if (await scout.overview(caller=caller)).total:
        return ""
    return _HIDDEN if await scout.access.has_servers(caller) else _EMPTY


async def prepare_search(scout: Scout, store: str | None) -> None:
    """Load the model. If an upgrade brought another one, embed a catalogue of the user's own anew, with progress."""
    await scout.warm()
    settings = Settings.from_env()
    if settings.embedder == "builtin" and sqlite_file(store or settings.store_url):
        with progress_bar("embedding with the new model") as progress:
            await scout.update_vectors(progress=progress)


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a progress bar on standard error once there is progress, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Bar(*columns, console=console, disable=quiet or not console.is_terminal, transient=True)
    task = bar.add_task(description, total=None)

    def progress(done: int, total: int) -> None:
        bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield progress
    finally:
        bar.stop()


def operating(store: str | None = None) -> Settings:
    """Return the settings of a command that changes something. It writes to the audit log unless that is off."""
    from toolscout.telemetry import AuditLog

    settings = Settings.from_env()
    settings = replace(settings, store=store or settings.store, audit=settings.audit or str(audit_file(settings)))
    AuditLog.at(settings.audit, settings.audit_bytes).check()
    return settings


def audit_file(settings: Settings) -> Path:
    """Return the path of the audit log."""
    return Path(settings.audit).expanduser() if settings.audit else data_folder() / "audit.jsonl"


def run(work: Coroutine[Any, Any, _Result], *, interrupted: str = "interrupted") -> _Result:
    """Run a command's coroutine. When the user presses Ctrl-C, print `interrupted` and exit with 130."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        typer.echo(interrupted, err=True)
        raise
