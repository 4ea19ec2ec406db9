"""`toolscout export`: the whole catalogue into one file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import archive_files, options

if TYPE_CHECKING:
    from toolscout.scout.transfer import ArchiveReport


def export(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to write it; `-` is standard output, `.gz` compresses.")
    ],
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Write the whole catalogue, of all tenants and users, into one file: tools, switches, decisions and vectors.

    `import-catalogue` reads it into any other store. Nothing is embedded on the way, and no server is asked. API keys
    are not in it.

    Examples: `toolscout export catalogue.jsonl.gz`, `toolscout export - --store postgresql://db/tools`
    """
    archive_files.refuse_json_on_a_stream(file, json)
    archive_files.show(options.run(_export(file, store, quiet=json)), "exported", json=json)


async def _export(file: str, store: str | None, *, quiet: bool) -> ArchiveReport:
    from toolscout.scout.parts import opened_store
    from toolscout.scout.transfer import export_catalogue
    from toolscout.settings import Settings

    settings = Settings.from_env()
    settings = replace(settings, store=options.existing(store) or settings.store)
    async with opened_store(settings) as opened:
        with archive_files.progress_bar("exporting", quiet=quiet) as progress, archive_files.written(file) as out:
            return await export_catalogue(opened, out, progress)
