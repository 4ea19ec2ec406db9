"""Where archives of a catalogue are: files, compressed when their name says so, or the standard streams."""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from toolscout.errors import InputFileError, UsageError

if TYPE_CHECKING:
    from toolscout.ports import Progress
    from toolscout.scout.transfer import ArchiveReport

STREAM = "-"


@contextmanager
def written(name: str) -> Iterator[BinaryIO]:
    """Give what an archive is written to; a file appears only when it is whole."""
    if name == STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield raw
        part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputFileError(f"{name} cannot be written: {reason}", hint="name another file") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def readable(name: str) -> Iterator[Callable[[], Iterable[bytes]]]:
    """Give what reads an archive from its first line, as often as it is asked; a stream is kept for that."""
    if name != STREAM:
        yield lambda: _lines(Path(name))
        return
    with tempfile.TemporaryDirectory(prefix="toolscout-") as folder:
        path = Path(folder) / "catalogue.jsonl"
        with path.open("wb") as kept:
            shutil.copyfileobj(sys.stdin.buffer, kept)
        yield lambda: _lines(path)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputFileError(f"{path} cannot be read: {reason}", hint="`toolscout export` writes one") from error


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Progress]:
    """Show how far it is, on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show(moved: ArchiveReport, done: str, *, json: bool) -> None:
    """Say what was moved: on stderr, as stdout may be the archive, or as JSON."""
    if json:
        from toolscout.cli.output import print_json

        print_json(asdict(moved))
        return
    from rich.console import Console

    told = [f"{_many(moved.tools, 'tool')} of {_many(moved.servers, 'server')}", _many(moved.vectors, "vector")]
    told += [_many(moved.switches, "switch", "switches"), _many(moved.decisions, "decision")]
    told.append(_many(moved.scopes, "tenant or user", "tenants and users"))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"{done} {', '.join(told)}", markup=False)
    if moved.quarantined:
        console.print(f"{_many(moved.quarantined, 'tool')} held back: `toolscout changes --all` says why", markup=False)
    if moved.keys:
        console.print(
            f"{_many(moved.keys, 'API key')} not exported: `toolscout keys create` makes new ones", markup=False
        )
    if moved.unembedded:
        console.print(f"{moved.unembedded:,} tools have no vector: `toolscout index` embeds them", markup=False)


def refuse_json_on_a_stream(name: str, json: Any) -> None:
    """Refuse to print two things to one place."""
    if json and name == STREAM:
        raise UsageError("--json and - both write to standard output", hint="name a file")


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
