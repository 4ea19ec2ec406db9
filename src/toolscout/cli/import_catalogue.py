"""`toolscout import-catalogue`: a catalogue that `export` wrote, into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import archive_files, options

if TYPE_CHECKING:
    from toolscout.scout.transfer import ArchiveReport
    from toolscout.settings import Settings


def import_catalogue(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; `-` is standard input.")],
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Read a catalogue that `toolscout export` wrote into a store; what came with a vector is not embedded again.

    The whole file is checked first: a broken one is refused with its line, and nothing is imported. Its servers replace
    those of the same name, tenant and user; all others stay. Every definition is screened again; decisions come along,
    API keys do not.

    Example: `toolscout import-catalogue catalogue.jsonl.gz --store postgresql://db/tools`
    """
    from toolscout.telemetry import AuditLog, operator

    settings = options.operating(store)
    AuditLog.at(settings.audit, settings.audit_bytes).write("catalogue.import", by=operator(), source=file)
    work = _import(file, settings, quiet=json)
    moved = options.run(work, interrupted="interrupted; nothing unfinished was published")
    archive_files.show(moved, "imported", json=json)


async def _import(file: str, settings: Settings, *, quiet: bool) -> ArchiveReport:
    from toolscout.scout.parts import opened_store
    from toolscout.scout.transfer import import_catalogue as move_in

    with archive_files.readable(file) as read:
        async with opened_store(settings) as opened:
            with archive_files.progress_bar("importing", quiet=quiet) as progress:
                return await move_in(opened, read, file, progress, settings=settings)
