"""`toolscout token-key`: the key that encrypts the tokens of signed-in accounts."""

from __future__ import annotations

import typer

from toolscout.cli import options

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

    With a key file in your data folder, a new key is made first, and the old one is deleted afterwards. Otherwise put
    the new key in front of the old one yourself, run this, then remove the old one.

    Example: `toolscout token-key rotate`
    """
    from toolscout.scout import Scout
    from toolscout.token_cipher import key_file, new_key, open_cipher, read_key_file, write_key_file

    settings = options.operating(options.existing(store))
    file = None if settings.token_key_file else key_file(settings)
    if file is not None:
        open_cipher(settings)  # checks the file, or creates it
        write_key_file(file, [new_key(), *read_key_file(file)], replace=True)

    async def work() -> int:
        async with Scout.open(settings=settings) as scout:
            accounts = scout.servers.accounts
            assert accounts is not None  # noqa: S101 - a scout has a store
            return await accounts.rotate_key()

    count = options.run(work())
    if file is not None:
        write_key_file(file, read_key_file(file)[:1], replace=True)
    typer.echo(f"encrypted {count} accounts with the new key")
