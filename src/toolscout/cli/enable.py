"""`toolscout enable` and `disable`: turn single tools on and off."""

from __future__ import annotations

from typing import Annotated

import typer

from toolscout.cli import options
from toolscout.models import LOCAL, Caller
from toolscout.printable import escape_controls

Keys = Annotated[list[str], typer.Argument(metavar="KEY", help="Keys: `<server>__<tool>`.")]


def enable(keys: Keys, user: options.As = None, tenant: options.Tenant = LOCAL, store: options.Store = None) -> None:
    """Enable tools again. `toolscout list --disabled` shows the disabled ones.

    If one of the keys is unknown, nothing is changed.

    Example: `toolscout enable github__delete_file`
    """
    _switch(keys, options.caller_named(user, tenant), store, on=True)


def disable(keys: Keys, user: options.As = None, tenant: options.Tenant = LOCAL, store: options.Store = None) -> None:
    """Disable tools: nobody can find or call them until they are enabled again. Re-indexing does not change that.

    If one of the keys is unknown, nothing is changed.

    Example: `toolscout disable github__delete_file`
    """
    _switch(keys, options.caller_named(user, tenant), store, on=False)


def _switch(keys: list[str], caller: Caller, store: str | None, *, on: bool) -> None:
    from toolscout.scout import Scout

    async def work() -> None:
        async with Scout.open(settings=options.operating(options.existing(store))) as scout:
            await scout.decisions.switch(caller.scope, keys, on)

    options.run(work())
    for key in keys:
        typer.echo(f"{'enabled' if on else 'disabled'} {escape_controls(key)}")
