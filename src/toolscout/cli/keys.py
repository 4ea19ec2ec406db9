"""`toolscout keys`: make, list and revoke API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscout.cli import options
from toolscout.cli.dates import ago, until

if TYPE_CHECKING:
    from toolscout.models import ApiKey

app = typer.Typer(
    help="Make, list and revoke API keys for the gateway.\n\n"
    "Example: `toolscout keys create --tenant acme --user ann --expires 90d`",
    no_args_is_help=True,
)


@app.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", metavar="T", help="The tenant that the key belongs to.")],
    user: Annotated[
        str | None, typer.Option("--user", metavar="U", help="The user that it speaks for. Default: the tenant alone.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="G", help="A group that it is in. May be repeated.")
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", metavar="S", help="What it is good for. May be repeated.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", metavar="90d|2027-01-01", help="When it ends: after days or hours, or at the start of a day."
        ),
    ] = None,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="What it is for, for whoever reads the list.")
    ] = "",
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Make a key and show it, this once: only a digest of its secret is kept.

    Example: `toolscout keys create --tenant acme --user ann --group engineering --expires 90d`
    """
    from toolscout.cli.output import console, print_json, safe
    from toolscout.scout import Scout

    ends = until(expires, "--expires") if expires else None

    async def walk() -> tuple[str, ApiKey]:
        async with Scout.open(settings=options.operating(store)) as scout:
            return await scout.api_keys.create(
                tenant=tenant, user=user, groups=group or (), scopes=scope or (), note=note, expires_at=ends
            )

    text, key = options.run(walk())
    if json:
        print_json({"key": text, **_row(key)})
        return
    out = console()
    out.print(text, style="bold green", soft_wrap=True, highlight=False)
    out.print(
        safe(f"It is shown this once. Its holder sends it with every request: Authorization: Bearer {text[:8]}...")
    )
    out.print(f"`toolscout keys revoke {key.id}` makes it worthless.")


@app.command("list")
def list_(
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="T", help="Only keys of this tenant. Default: of all.")
    ] = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """List keys, the newest first; no secret is among what is shown.

    Example: `toolscout keys list --tenant acme`
    """
    from toolscout.cli.output import print_json
    from toolscout.scout import Scout

    async def walk() -> list[ApiKey]:
        async with Scout.open(store=options.existing(store)) as scout:
            return await scout.api_keys.list_all(tenant)

    found = options.run(walk())
    if json:
        print_json({"keys": [_row(key) for key in found]})
    else:
        _show(found)


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a key, with or without `tsk_`.")],
    store: options.Store = None,
) -> None:
    """Make a key worthless; every gateway on the same store refuses it within a second or so.

    Example: `toolscout keys revoke ab12cd34ef`
    """
    from toolscout.scout import Scout

    # Whoever pastes the whole key must not find its secret in an error message.
    wanted = key_id.removeprefix("tsk_").split("_")[0]

    async def walk() -> ApiKey:
        async with Scout.open(settings=options.operating(options.existing(store))) as scout:
            return await scout.api_keys.revoke(wanted)

    typer.echo(f"revoked {options.run(walk()).id}")


def _show(keys: list[ApiKey]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from toolscout.cli.output import console, safe

    if not keys:
        console().print("There is no key: `toolscout keys create --tenant T` makes one.")
        return
    columns = {
        "key": [Text(f"tsk_{key.id}", style="cyan") for key in keys],
        "state": [Text(_state(key), style="green" if _state(key) == "good" else "red") for key in keys],
        "whose": [safe(f"{key.user} of {key.tenant}" if key.user else key.tenant) for key in keys],
        "groups": [safe("\n".join(key.groups)) for key in keys],
        "scopes": [safe("\n".join(key.scopes)) for key in keys],
        "made": [Text(ago(key.created_at)) for key in keys],
        "used": [Text(ago(key.last_used_at)) for key in keys],
        "ends": [Text(ago(key.expires_at)) for key in keys],
        "note": [safe(key.note) for key in keys],
    }
    told = {title: cells for title, cells in columns.items() if any(cell.plain for cell in cells)}
    table = Table(box=box.SIMPLE, pad_edge=False, collapse_padding=True)
    for title in told:
        table.add_column(title, no_wrap=title in ("key", "state"), overflow="fold")
    for row in zip(*told.values(), strict=True):
        table.add_row(*row)
    console().print(table)


def _state(key: ApiKey) -> str:
    import time

    if key.revoked_at is not None:
        return "revoked"
    return "good" if key.usable(time.time()) else "expired"


def _row(key: ApiKey) -> dict[str, Any]:
    from toolscout.cli.dates import stamp

    return {
        "id": key.id,
        "prefix": f"tsk_{key.id}",
        "tenant": key.tenant,
        "user": key.user,
        "groups": list(key.groups),
        "scopes": list(key.scopes),
        "note": key.note,
        "state": _state(key),
        "created_at": stamp(key.created_at),
        "last_used_at": stamp(key.last_used_at),
        "expires_at": stamp(key.expires_at),
        "revoked_at": stamp(key.revoked_at),
    }
