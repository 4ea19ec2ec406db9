"""`toolscout token-key`: the key that encrypts the tokens of signed-in accounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from toolscout.cli import options

if TYPE_CHECKING:
    from toolscout.models import UnreadableAccount

app = typer.Typer(
    help="Create and rotate the key that encrypts the tokens of signed-in accounts.\n\n"
    "Example: `toolscout token-key create`",
    no_args_is_help=True,
)


@app.command("create")
def create() -> None:
    """Print a new random key, for `TOOLSCOUT_TOKEN_KEY` or a key file. Nothing is stored.

    Example: `toolscout token-key create`
    """
    from toolscout.token_cipher import new_key

    typer.echo(new_key())


@app.command("rotate")
def rotate(store: options.Store = None) -> None:
    """Encrypt all stored tokens with the newest key.

    A key in your keyring or your data folder is replaced: a new one is made first, and the old one is deleted
    afterwards. Otherwise put the new key in front of the old one yourself, run this, then remove the old one.

    Example: `toolscout token-key rotate`
    """
    from toolscout.printable import escape_controls
    from toolscout.scout import Scout

    async def work() -> tuple[int, Sequence[UnreadableAccount]]:
        async with Scout.open(settings=options.operating(options.existing(store))) as scout:
            accounts = scout.servers.accounts
            assert accounts is not None  # noqa: S101 - a scout has a store
            resealed = await accounts.rotate_key()
            return resealed.count, resealed.unreadable

    count, unreadable = options.run(work())
    typer.echo(f"encrypted {count} accounts with the new key")
    for account in unreadable:
        typer.echo(escape_controls(f"left out the account at {account.server}: {account.reason}"), err=True)
