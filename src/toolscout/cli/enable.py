"""`toolscout enable` and `disable`: switch tools one by one."""

from __future__ import annotations

from typing import Annotated

import typer

from toolscout.cli import options
from toolscout.models import LOCAL, Caller

Keys = Annotated[list[str], typer.Argument(metavar="KEY", help="Keys: `<server>__<tool>`.")]


def enable(keys: Keys, user: options.As = None, tenant: options.Tenant = LOCAL, store: options.Store = None) -> None:
    """Switch tools on again; `toolscout list --disabled` shows those that are off. A wrong key switches none.

    Example: `toolscout enable github__delete_file`
    """
    _switch(keys, options.caller_named(user, tenant), store, on=True)


def disable(keys: Keys, user: options.As = None, tenant: options.Tenant = LOCAL, store: options.Store = None) -> None:
    """Switch tools off: they are found by nobody until they are enabled again; re-indexing does not undo it.

    A wrong key among several switches none.

    Example: `toolscout disable github__delete_file`
    """
    _switch(keys, options.caller_named(user, tenant), store, on=False)


def _switch(keys: list[str], caller: Caller, store: str | None, *, on: bool) -> None:
    from toolscout.scout import Scout

    async def walk() -> None:
        async with Scout.open(settings=options.operating(options.existing(store))) as scout:
            await scout.decisions.switch(caller.scope, keys, on)

    options.run(walk())
    for key in keys:
        typer.echo(f"{'enabled' if on else 'disabled'} {key}")
