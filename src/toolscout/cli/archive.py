"""`toolscout export` and `import-catalogue`: the whole catalogue to a file, and from a file into a store."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from toolscout.cli import options
from toolscout.errors import InputFileError, UsageError

if TYPE_CHECKING:
    from toolscout.ports import Progress
    from toolscout.scout.transfer import ArchiveReport
    from toolscout.settings import Settings

_STREAM = "-"
_UNPACKED_BYTES = 67_108_864
_UNPACKED_RATIO = 100


def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file to write. `-` is standard output. A name in `.gz` is compressed."
        ),
    ],
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Write the whole catalogue, of all tenants and users, to one file: tools, switches, decisions and vectors.

    `import-catalogue` reads it into any other store. No server is contacted and nothing is embedded. API keys are not
    exported.

    Examples: `toolscout export catalogue.jsonl.gz`, `toolscout export - --store postgresql://db/tools`
    """
    if json and file == _STREAM:
        raise UsageError("--json and - both write to standard output", hint="name a file")
    _show_report(options.run(_export(file, store, quiet=json)), "exported", json=json)


def import_catalogue(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that `export` wrote. `-` is standard input.")],
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Import a file that `toolscout export` wrote into a store. Tools that have a vector are not embedded again.

    The whole file is checked first. If a line is invalid, the error names it and nothing is imported. The servers of
    the file replace those of the same name, tenant and user. All others stay. Every definition is screened again.
    Decisions are imported, API keys are not.

    Example: `toolscout import-catalogue catalogue.jsonl.gz --store postgresql://db/tools`
    """
    from toolscout.telemetry import AuditLog, operator

    settings = options.operating(store)
    AuditLog.at(settings.audit, settings.audit_bytes).write("catalogue.import", by=operator(), source=file)
    work = _import(file, settings, quiet=json)
    report = options.run(work, interrupted="interrupted; nothing unfinished was published")
    _show_report(report, "imported", json=json)


async def _export(file: str, url: str | None, *, quiet: bool) -> ArchiveReport:
    from toolscout.scout.parts import opened_store
    from toolscout.scout.transfer import export_catalogue
    from toolscout.settings import Settings

    settings = Settings.from_env()
    settings = replace(settings, store=options.existing(url) or settings.store)
    async with opened_store(settings) as store:
        with _progress_bar("exporting", quiet=quiet) as progress, _open_output(file) as out:
            return await export_catalogue(store, out, progress)


async def _import(file: str, settings: Settings, *, quiet: bool) -> ArchiveReport:
    from toolscout.scout.parts import opened_store
    from toolscout.scout.transfer import import_catalogue as import_into

    with _open_input(file) as read:
        async with opened_store(settings) as store:
            with _progress_bar("importing", quiet=quiet) as progress:
                return await import_into(store, read, file, progress, settings=settings)


@contextmanager
def _open_output(name: str) -> Iterator[BinaryIO]:
    """Yield the stream to write an archive to. A file appears only when it is complete."""
    if name == _STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    part = path.with_name(f".{path.name}.part")
    try:
        with _create_private(part) as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as compressed:
                    yield compressed  # type: ignore[misc]
            else:
                yield raw
        part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputFileError(f"{name} cannot be written: {reason}", hint="choose another file") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _create_private(path: Path) -> BinaryIO:
    """Create a file that only its owner can read, and never through a link that lies there."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def _open_input(name: str) -> Iterator[Callable[[], Iterable[bytes]]]:
    """Yield a function that reads an archive from its first line. Standard input is copied to a file for that."""
    if name != _STREAM:
        yield lambda: _lines(Path(name))
        return
    with tempfile.TemporaryDirectory(prefix="toolscout-") as folder:
        path = Path(folder) / "catalogue.jsonl"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield lambda: _lines(path)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            yield from _bounded(lines, path)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputFileError(
            f"{path} cannot be read: {reason}", hint="create an archive with `toolscout export`"
        ) from error


def _bounded(lines: BinaryIO | gzip.GzipFile, path: Path) -> Iterator[bytes]:
    """Yield lines of bounded length. A small file that unpacks without end is refused."""
    from toolscout.scout.transfer import MAX_LINE_BYTES

    limit = _UNPACKED_BYTES + _UNPACKED_RATIO * path.stat().st_size
    size = 0
    while line := lines.readline(MAX_LINE_BYTES + 1):
        size += len(line)
        if size > limit:
            raise InputFileError(
                f"{path} unpacks to more than {limit:,} bytes", hint="an archive of `toolscout export` is not so dense"
            )
        yield line


@contextmanager
def _progress_bar(what: str, *, quiet: bool) -> Iterator[Progress]:
    """Show a progress bar, if standard error is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show_report(report: ArchiveReport, verb: str, *, json: bool) -> None:
    """Print the counts to standard error, because standard output may be the archive, or print them as JSON."""
    if json:
        from toolscout.cli.output import print_json

        print_json(asdict(report))
        return
    from rich.console import Console

    counts = [f"{_many(report.tools, 'tool')} of {_many(report.servers, 'server')}", _many(report.vectors, "vector")]
    counts += [_many(report.switches, "switch", "switches"), _many(report.decisions, "decision")]
    counts.append(_many(report.scopes, "tenant or user", "tenants and users"))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"{verb} {', '.join(counts)}", markup=False)
    if report.quarantined:
        console.print(
            f"{_many(report.quarantined, 'tool')} held back: `toolscout changes --all` shows why", markup=False
        )
    if report.keys:
        console.print(
            f"{_many(report.keys, 'API key')} not exported: create new ones with `toolscout keys create`", markup=False
        )
    if report.unembedded:
        console.print(f"{report.unembedded:,} tools have no vector: `toolscout index` embeds them", markup=False)


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
