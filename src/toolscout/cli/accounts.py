"""`toolscout login`, `logout` and `accounts`: sign in to servers, sign out, and see where you are signed in."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscout.cli import options
from toolscout.cli.dates import ago, iso_time
from toolscout.models import LOCAL, Scope

if TYPE_CHECKING:
    from toolscout.config import Config, ServerConfig
    from toolscout.models import Account, UnreadableAccount
    from toolscout.scout import Scout
    from toolscout.scout.accounts import Accounts

ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="The server, as the config or `doctor` names it.")]


def login(
    server: ServerName,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link, and open no browser.")] = False,
    device_code: Annotated[
        bool,
        typer.Option("--device-code", help="Enter a code on another device, if the server's issuer offers it."),
    ] = False,
    config: options.ConfigFiles = None,
    store: options.Store = None,
) -> None:
    """Sign in to a server that asks for it. A running gateway uses the account at once.

    Your browser opens at the server's issuer, and comes back to a page on this machine. If the browser is on another
    machine, for example over SSH, copy the address that it ends at and paste it here.

    Example: `toolscout login github`
    """
    account = options.run(_login(server, config or [], store, browser=not no_browser, device_code=device_code))
    _say(f"You are signed in to {account.server} at {account.issuer}.")


def logout(
    server: ServerName,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="U", help="The user of a gateway who signed in. Default: the shared account."),
    ] = None,
    tenant: options.Tenant = LOCAL,
    config: options.ConfigFiles = None,
    store: options.Store = None,
) -> None:
    """Sign out: delete the tokens of a server here, and revoke them at its issuer.

    The server may have left the config. `toolscout accounts` shows its name.

    Example: `toolscout logout github`
    """
    revoked = options.run(_logout(server, Scope(tenant=tenant, owner=user), config or [], store))
    who = f"{user} is" if user else "You are"
    _say(
        f"{who} signed out of {server}."
        if revoked
        else f"{who} signed out of {server} here. Its issuer did not revoke the tokens: they end by themselves."
    )


def accounts(
    remove_user: Annotated[
        str | None,
        typer.Option("--remove-user", metavar="U", help="Delete and revoke all accounts of a user, and their tools."),
    ] = None,
    tenant: options.Tenant = LOCAL,
    config: options.ConfigFiles = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Show where people are signed in, without any token, and the pages at which users of a gateway sign in.

    Example: `toolscout accounts`
    """
    from toolscout.cli.output import print_json

    if remove_user is not None:
        removed = options.run(_remove_user(Scope(tenant=tenant, owner=remove_user), config or [], store))
        if json:
            print_json(removed)
        else:
            _say(f"{remove_user} is removed: {removed['accounts']} accounts and {removed['tools']} tools.")
        return

    async def work() -> tuple[list[Account], list[UnreadableAccount], dict[str, str], dict[str, ServerConfig]]:
        from toolscout.scout import Scout

        async with Scout.open(store=options.existing(store)) as scout:
            stored, known = _accounts(scout).stored, _known_config(config or [])
            pages, servers = await _accounts(scout).pages(known), await _accounts(scout).slugs(known)
            return await stored.find_all(), await stored.find_unreadable(), pages, servers

    found, unreadable, pages, servers = options.run(work())
    if json:
        rows = [_row(account) for account in found] + [_unreadable_row(account) for account in unreadable]
        print_json({"accounts": rows, "pages": pages})
    else:
        _show(found, unreadable)
        for account in found if servers else ():
            if account.server not in servers:
                _say(f"{account.server} is not in this config. `{_logout_of(account)}` deletes its account.")
        for server, page in pages.items():
            _say(f"Users sign in to {server} at {page or 'the gateway, once TOOLSCOUT_PUBLIC_URL is set'}")


async def _login(name: str, files: list[Path], store: str | None, *, browser: bool, device_code: bool) -> Account:
    from toolscout.errors import SignInError
    from toolscout.scout import Scout

    async with Scout.open(settings=options.operating(store)) as scout:
        accounts = _accounts(scout)
        slug, server = await accounts.find_server(_config(files), name)
        if server.per_user:
            hint = accounts.how_to_sign_in(slug, server)
            raise SignInError(f"each user signs in to {server.title} for themselves", hint=hint)
        if device_code:
            return await accounts.sign_in_with_device(
                slug, server, Scope(), lambda code: _say(f"Open {code.whole_link or code.link} and enter {code.code}")
            )
        return await _sign_in(accounts, slug, server, browser=browser)


async def _sign_in(accounts: Accounts, slug: str, server: ServerConfig, *, browser: bool) -> Account:
    from toolscout.errors import SignInError, ToolscoutError
    from toolscout.gateway.loopback_callback import listening

    async with listening(await accounts.clients.loopback_port(slug)) as callback:
        pending = await accounts.begin(slug, server, Scope(), callback.redirect_uri)
        callback.state = pending.state
        _say("Open this link to sign in:")
        _say(pending.link)
        if browser and _has_browser():
            import webbrowser

            webbrowser.open(pending.link)
        else:
            _say("If the browser is on another machine, paste the address that it ends at:")
        callback.read_terminal()
        try:
            answer = await callback.answer(pending.lasts_s)
        except TimeoutError:
            raise SignInError("nobody signed in in time", hint="begin again") from None
        try:
            account = await accounts.finish(server, pending, answer)
        except ToolscoutError as error:
            callback.fail(error)
            raise
        callback.tell(f"You are signed in to {server.title}")
        return account


async def _logout(name: str, scope: Scope, files: list[Path], store: str | None) -> bool:
    from toolscout.errors import SignInError
    from toolscout.scout import Scout

    async with Scout.open(settings=options.operating(options.existing(store))) as scout:
        accounts, config = _accounts(scout), _known_config(files)
        servers = await accounts.slugs(config)
        slug = next((slug for slug, server in servers.items() if name in (slug, server.title)), name)
        account = await accounts.stored.look_up(scope, slug)
        if account is None and slug not in servers:
            await accounts.find_server(config, name)
        if account is None:
            who, hint = scope.owner or "nobody", "`toolscout accounts` shows who is signed in where"
            raise SignInError(f"{who} is {'not ' if scope.owner else ''}signed in to {name}", hint=hint)
        return await accounts.sign_out(account, servers.get(slug))


async def _remove_user(scope: Scope, files: list[Path], store: str | None) -> dict[str, int]:
    """Remove a user. The config says how to reach issuers at private addresses."""
    from toolscout.models import Caller
    from toolscout.scout import Scout

    async with Scout.open(settings=options.operating(options.existing(store))) as scout:
        accounts = _accounts(scout)
        servers, places = await accounts.slugs(_known_config(files)), await accounts.find_places(scope=scope)
        for _, slug in places:
            await accounts.forget(scope, slug, servers.get(slug))
        tools = await scout.remove_user(str(scope.owner), caller=Caller(tenant=scope.tenant))
        return {"accounts": len(places), "tools": tools}


def _accounts(scout: Scout) -> Accounts:
    accounts = scout.servers.accounts
    assert accounts is not None  # noqa: S101 - a scout has a store
    return accounts


def _config(files: list[Path]) -> Config:
    from toolscout.cli.serve import config_files
    from toolscout.config import read_config
    from toolscout.errors import ConfigError

    found = config_files(files)
    if not found:
        raise ConfigError("there is no config file", hint="name the file that lists the server: --config mcp.json")
    return read_config(found, partial=True)


def _known_config(files: list[Path]) -> Config:
    """Return the config, or an empty one if none was named and there is none that can be read."""
    from toolscout.config import Config
    from toolscout.errors import ConfigError

    try:
        return _config(files)
    except ConfigError:
        if files:
            raise
        return Config()


def _has_browser() -> bool:
    """Tell whether a browser that opens here would be seen: not over SSH, and not without a screen."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _say(text: str) -> None:
    from toolscout.cli.output import console, safe

    console().print(safe(text), soft_wrap=True, highlight=False)


def _show(accounts: list[Account], unreadable: list[UnreadableAccount]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from toolscout.cli.output import console, safe

    if not accounts and not unreadable:
        console().print("Nobody is signed in. Sign in to a server with `toolscout login SERVER`.")
        return
    table = Table(box=box.SIMPLE, pad_edge=False)
    for title in ("server", "state", "whose", "issuer", "scopes", "since"):
        table.add_column(title, overflow="fold")
    for account in accounts:
        style = "green" if _state(account) == "signed in" else "red"
        table.add_row(
            safe(account.server),
            Text(_state(account), style=style),
            safe(_whose(account.scope)),
            safe(account.issuer),
            safe(account.granted),
            Text(ago(account.signed_in_at)),
        )
    for lost in unreadable:
        table.add_row(safe(lost.server), Text("unreadable", style="red"), safe(_whose(lost.scope)), safe(lost.issuer))
    console().print(table)
    for lost in unreadable:
        _say(f"{lost.server}: {lost.reason}. Sign in again, or delete it with `{_logout_of(lost)}`.")


def _logout_of(account: Account | UnreadableAccount) -> str:
    """Return the command that deletes an account."""
    options = {"--tenant": account.scope.tenant, "--user": account.scope.owner}
    named = [f"{name} {shlex.quote(value)}" for name, value in options.items() if value and value != LOCAL]
    return " ".join(["toolscout logout", account.server, *named])


def _whose(scope: Scope) -> str:
    return f"{scope.owner} of {scope.tenant}" if scope.owner else scope.tenant


def _state(account: Account) -> str:
    import time

    ended = account.expires_at is not None and account.expires_at < time.time() and not account.refresh_token
    return "needs login" if account.refused or ended else "wants more scopes" if account.wanted else "signed in"


def _row(account: Account) -> dict[str, Any]:
    return {
        "server": account.server,
        "state": _state(account).replace(" ", "_"),
        "tenant": account.scope.tenant,
        "user": account.scope.owner,
        "issuer": account.issuer,
        "scopes": account.granted.split(),
        "wanted_scopes": account.wanted.split(),
        "signed_in_at": iso_time(account.signed_in_at),
        "expires_at": iso_time(account.expires_at),
    }


def _unreadable_row(account: UnreadableAccount) -> dict[str, Any]:
    return {
        "server": account.server,
        "state": "unreadable",
        "tenant": account.scope.tenant,
        "user": account.scope.owner,
        "issuer": account.issuer,
        "reason": account.reason,
    }
