"""`toolscout keys`: create, list, rotate and revoke API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscout.cli import options
from toolscout.cli.dates import ago, until

if TYPE_CHECKING:
    from toolscout.models import ApiKey

app = typer.Typer(
    help="Create, list, rotate and revoke API keys for the gateway.\n\n"
    "Example: `toolscout keys create --tenant acme --user ann --expires 90d`",
    no_args_is_help=True,
)


@app.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", metavar="T", help="The tenant that the key belongs to.")],
    user: Annotated[
        str | None, typer.Option("--user", metavar="U", help="The user of the key. Default: none, only the tenant.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="G", help="A group of the user. May be repeated.")
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", metavar="S", help="A scope of the key. May be repeated.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="90d|2027-01-01", help="When the key expires: a duration or a date."),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="A note that is shown in the list of keys.")] = "",
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Create a key and print it. It is shown only once: the store keeps a digest of the secret.

    Example: `toolscout keys create --tenant acme --user ann --group engineering --expires 90d`
    """
    from toolscout.scout import Scout

    expires_at = until(expires, "--expires") if expires else None

    async def work() -> tuple[str, ApiKey]:
        async with Scout.open(settings=options.operating(store)) as scout:
            return await scout.api_keys.create(
                tenant=tenant, user=user, groups=group or (), scopes=scope or (), note=note, expires_at=expires_at
            )

    text, key = options.run(work())
    _show_new(text, key, json=json)


@app.command("list")
def list_(
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="T", help="Only keys of this tenant. Default: all tenants.")
    ] = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """List keys, newest first, without their secrets.

    Example: `toolscout keys list --tenant acme`
    """
    from toolscout.cli.output import print_json
    from toolscout.scout import Scout

    async def work() -> list[ApiKey]:
        async with Scout.open(store=options.existing(store)) as scout:
            return await scout.api_keys.list_all(tenant)

    keys = options.run(work())
    if json:
        print_json({"keys": [_row(key) for key in keys]})
    else:
        _show(keys)


@app.command("rotate")
def rotate(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a key, with or without `tsk_`.")],
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="90d|2027-01-01",
            help="When the new key expires: a duration or a date. Default: when the old one would.",
        ),
    ] = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Create a key for the same user, groups and scopes in place of one, and print it. The old key is revoked.

    The new key has an id of its own. Rules of the policy that name `key:ID` do not apply to it until you change them.

    Example: `toolscout keys rotate ab12cd34ef --expires 90d`
    """
    from toolscout.scout import Scout

    expires_at = until(expires, "--expires") if expires else None

    async def work() -> tuple[str, ApiKey]:
        async with Scout.open(settings=options.operating(options.existing(store))) as scout:
            return await scout.api_keys.rotate(_without_secret(key_id), expires_at=expires_at)

    text, key = options.run(work())
    _show_new(text, key, json=json)


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a key, with or without `tsk_`.")],
    store: options.Store = None,
) -> None:
    """Revoke a key. Every gateway on the same store refuses it within about a second.

    Example: `toolscout keys revoke ab12cd34ef`
    """
    from toolscout.scout import Scout

    async def work() -> ApiKey:
        async with Scout.open(settings=options.operating(options.existing(store))) as scout:
            return await scout.api_keys.revoke(_without_secret(key_id))

    typer.echo(f"revoked {options.run(work()).id}")


def _without_secret(key_id: str) -> str:
    """Return the id alone. If the whole key is pasted, its secret must not appear in an error message."""
    return key_id.removeprefix("tsk_").split("_")[0]


def _show_new(text: str, key: ApiKey, *, json: bool) -> None:
    from toolscout.cli.output import console, print_json, safe

    if json:
        print_json({"key": text, **_row(key)})
        return
    out = console()
    out.print(text, style="bold green", soft_wrap=True, highlight=False)
    out.print(
        safe(f"Copy it now, it is not shown again. Send it with every request: Authorization: Bearer {text[:8]}...")
    )
    out.print(f"To revoke it: `toolscout keys revoke {key.id}`")


def _show(keys: list[ApiKey]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from toolscout.cli.output import console, safe

    if not keys:
        console().print("There are no keys. Create one with `toolscout keys create --tenant T`.")
        return
    columns = {
        "key": [Text(f"tsk_{key.id}", style="cyan") for key in keys],
        "state": [Text(_state(key), style="green" if _state(key) == "good" else "red") for key in keys],
        "whose": [safe(f"{key.user} of {key.tenant}" if key.user else key.tenant) for key in keys],
        "groups": [Text("\n").join(map(safe, key.groups)) for key in keys],
        "scopes": [Text("\n").join(map(safe, key.scopes)) for key in keys],
        "made": [Text(ago(key.created_at)) for key in keys],
        "used": [Text(ago(key.last_used_at)) for key in keys],
        "ends": [Text(ago(key.expires_at)) for key in keys],
        "note": [safe(key.note) for key in keys],
    }
    shown_columns = {title: cells for title, cells in columns.items() if any(cell.plain for cell in cells)}
    table = Table(box=box.SIMPLE, pad_edge=False, collapse_padding=True)
    for title in shown_columns:
        table.add_column(title, no_wrap=title in ("key", "state"), overflow="fold")
    for row in zip(*shown_columns.values(), strict=True):
        table.add_row(*row)
    console().print(table)


def _state(key: ApiKey) -> str:
    import time

    if key.revoked_at is not None:
        return "revoked"
    return "good" if key.usable(time.time()) else "expired"


def _row(key: ApiKey) -> dict[str, Any]:
    from toolscout.cli.dates import iso_time

    return {
        "id": key.id,
        "prefix": f"tsk_{key.id}",
        "tenant": key.tenant,
        "user": key.user,
        "groups": list(key.groups),
        "scopes": list(key.scopes),
        "note": key.note,
        "state": _state(key),
        "created_at": iso_time(key.created_at),
        "last_used_at": iso_time(key.last_used_at),
        "expires_at": iso_time(key.expires_at),
        "revoked_at": iso_time(key.revoked_at),
    }
