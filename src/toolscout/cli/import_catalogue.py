"""`toolscout import-catalogue`: a catalogue that `export` wrote, into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import archives, options

if TYPE_CHECKING:
    from toolscout.indexing.move import Moved


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
    moved = options.run(_import(file, store, quiet=json), interrupted="interrupted; nothing unfinished was published")
    archives.show(moved, "imported", json=json)


async def _import(file: str, store: str | None, *, quiet: bool) -> Moved:
    from toolscout.indexing.move import import_catalogue as move_in
    from toolscout.settings import Settings

    with archives.readable(file) as read:
        async with archives.opened_store(store) as opened:
            with archives.progress_bar("importing", quiet=quiet) as progress:
                return await move_in(opened, read, file, progress, settings=Settings.from_env())
