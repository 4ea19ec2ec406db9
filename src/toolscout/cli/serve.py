"""`toolscout serve`: start the gateway."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import options
from toolscout.config import Config
from toolscout.errors import ConfigError, ToolscoutError, UsageError
from toolscout.loopback import is_loopback

if TYPE_CHECKING:
    from toolscout.gateway.auth.authentication import Authentication
    from toolscout.scout import Scout
    from toolscout.settings import Settings

_HEAD_START_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOptions:
    """The addresses of the gateway, and whom it accepts. Without an address it uses stdio."""

    address: tuple[str, int] | None
    hosts: list[str]
    origins: list[str]
    diagnostics: tuple[str, int] | None
    authenticate: bool
    """Whether callers must authenticate."""


def serve(
    config: options.ConfigFiles = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="[HOST:]PORT", help="Serve streamable HTTP at `/mcp` instead of stdio."),
    ] = None,
    diagnostics: Annotated[
        str | None,
        typer.Option(
            "--diagnostics",
            metavar="[HOST:]PORT",
            help="With --http, answer `/livez`, `/readyz` and `/metrics` on a separate port.",
        ),
    ] = None,
    surface: Annotated[
        str | None,
        typer.Option(
            "--surface",
            metavar="compact|browse|registry|all",
            help="Which tools agents see. Default: the `surface` of the config, or compact.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="HOST:PORT", help="An additional Host header to accept. May be repeated."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="A web origin that may send requests. May be repeated."),
    ] = None,
    auth: Annotated[
        bool,
        typer.Option(
            "--auth", help="With --http, require authentication on loopback too. Elsewhere it is always required."
        ),
    ] = False,
    insecure_no_auth: Annotated[
        bool,
        typer.Option(
            "--insecure-no-auth",
            help="Serve other machines without authentication, for example behind a proxy that does it.",
        ),
    ] = False,
    store: options.Store = None,
) -> None:
    """Serve all your MCP servers as one: agents see a few tools, and use them to find and call thousands.

    The gateway answers at once from the stored catalogue while servers connect in the background. It follows edits of
    the config and the policy. Callers on other machines must send an API key or an access token of your issuer.

    Examples: `toolscout serve --config mcp.json`, `toolscout serve --http 8080 --surface browse`
    """
    from toolscout.gateway.address import parse_address, requires_authentication

    settings = options.operating(store)
    _log_to_stderr(settings)
    with _errors_as_lines(settings):
        address = parse_address(http) if http else None
        if address is None and (diagnostics or auth):
            raise UsageError(
                f"{'--auth' if auth else '--diagnostics'} requires --http",
                hint="on stdio the host that starts toolscout is the only caller",
            )
        authenticate = address is not None and requires_authentication(
            address[0], auth=auth, issuer=settings.auth_issuer, insecure_no_auth=insecure_no_auth
        )
        listen = ListenOptions(
            address=address,
            hosts=allow_host or [],
            origins=allow_origin or [],
            diagnostics=parse_address(diagnostics, "--diagnostics") if diagnostics else None,
            authenticate=authenticate,
        )
        files = [*(config or ())]
        may_be_empty = address is not None and is_loopback(address[0])
        merged_config = _read(files, store, may_be_empty=may_be_empty)
        with _tracing(settings):
            options.run(_serve(files, merged_config, listen, surface, settings))


def config_files(named: list[Path]) -> list[Path]:
    """Return the named files, or else those in the user's config folder."""
    from toolscout.settings import config_folder

    return named or sorted(config_folder().glob("*.json"))


@contextmanager
def _errors_as_lines(settings: Settings) -> Iterator[None]:
    """Write what ends the command as a line of the log, if the log is read by programs."""
    import logging

    try:
        yield
    except ToolscoutError as error:
        if settings.log_format != "json":
            raise
        logging.getLogger("toolscout").error("%s", "; ".join(filter(None, (error.message, error.hint))))
        raise typer.Exit(error.exit_code) from None


def _read(named: list[Path], store: str | None, *, may_be_empty: bool) -> Config | None:
    """Read the config. With `may_be_empty`, servers can be added in the console of a gateway that has none yet."""
    import logging

    from toolscout.config import read_config
    from toolscout.settings import Settings, config_folder, sqlite_file

    files = config_files(named)
    if files:
        return read_config(files, partial=True)
    file = sqlite_file(Settings.from_env().store_url)
    if store or (file is not None and file.exists()):
        logging.getLogger("toolscout").warning(
            "no config file is named, and %s contains none: tools can be found but not called", config_folder()
        )
        return None
    if may_be_empty:
        logging.getLogger("toolscout").warning("there are no servers yet: add them in the console")
        return Config()
    raise ConfigError(
        f"no config file is named, and {config_folder()} contains none",
        hint="run `toolscout import --write` to import your agent hosts' servers, or name a file: --config mcp.json",
    )


async def _serve(
    named: list[Path],
    config: Config | None,
    listen: ListenOptions,
    surface: str | None,
    settings: Settings,
) -> None:
    import asyncio
    import gc

    from toolscout.config import read_config
    from toolscout.gateway.file_watcher import watch_config, watch_policy
    from toolscout.gateway.server import Gateway
    from toolscout.scout import Scout

    first_config = config or Config()
    async with Scout.open(settings=settings) as scout:
        scout.servers.adopt_orphans = True
        if config is None and not listen.authenticate:
            await _warn_if_empty(scout)
        authentication = await _authentication(scout, settings, listen)
        gateway = Gateway(
            scout,
            settings=settings,
            surface=surface or first_config.surface or "compact",
            core=first_config.core,
            authenticated=authentication is not None,
        )

        async def apply(config: Config) -> None:
            gateway.tool_lists.choose(surface=surface or config.surface or "compact", core=config.core)
            await scout.connect(config)

        async def warm() -> None:
            await gateway.first_answer(_HEAD_START_S)
            await scout.warm()
            if settings.embedder == "builtin":
                await _update_vectors(scout)
            # What is loaded now stays. To look through it for garbage again and again stops everything for .2 s each.
            gc.freeze()
            await _warn_if_damaged(settings)

        # Many servers that start at once use every core, so the first list of tools is answered first.
        tasks = [asyncio.create_task(warm())]
        if config is not None:
            await scout.connect(config, after=gateway.first_answer(_HEAD_START_S))
            watch = watch_config(lambda: config_files(named), apply, settings.reindex_interval_s)
            tasks.append(asyncio.create_task(watch))
        if settings.policy:
            tasks.append(
                asyncio.create_task(
                    watch_policy(
                        Path(settings.policy),
                        scout.access.apply_policy,
                        scout.access.refuse_policy,
                        settings.reindex_interval_s,
                    )
                )
            )
        try:
            if listen.address is None:
                from toolscout.gateway.stdio import serve_stdio

                await serve_stdio(gateway, max_line_bytes=settings.max_line_bytes)
            else:
                from toolscout.api import RestApi, ServerEditor
                from toolscout.console.app import Console
                from toolscout.gateway.http import serve_http
                from toolscout.settings import config_folder

                async def reload() -> None:
                    files = config_files(named)
                    await apply(await asyncio.to_thread(read_config, files, partial=True) if files else Config())

                editor = ServerEditor(scout, lambda: config_files(named), config_folder() / "servers.json", reload)
                rest = RestApi(scout, settings, authenticated=authentication is not None, editor=editor)
                console = Console(scout, settings, authentication)
                host, port = listen.address
                try:
                    await serve_http(
                        gateway,
                        settings,
                        host=host,
                        port=port,
                        hosts=listen.hosts,
                        origins=listen.origins,
                        diagnostics=listen.diagnostics,
                        authentication=authentication,
                        api=lambda protect: console.admit(rest.behind(protect)),
                        pages=console.routes,
                        started=lambda url: _show_console(console.announce(url), settings),
                        end_streams=rest.end_streams,
                    )
                finally:
                    console.close()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _show_console(link: str, settings: Settings) -> None:
    """Print the link to the console, whatever the level of the log. A log for programs holds nothing but its lines."""
    import logging

    if settings.log_format == "json":
        logging.getLogger("toolscout").info("the console is at %s", link)
    else:
        typer.echo(f"the console is at {link}", err=True)


async def _warn_if_empty(scout: Scout) -> None:
    import logging

    if not (await scout.overview()).total:
        logging.getLogger("toolscout").warning(
            "the catalogue is empty, so agents find nothing: run `toolscout import --write`, or `toolscout index`"
        )


async def _warn_if_damaged(settings: Settings) -> None:
    """Look through the file of the catalogue, which is served as far as it can be read."""
    import asyncio
    import logging

    from toolscout.scout.parts import REPAIR, find_damage
    from toolscout.settings import sqlite_file

    file = sqlite_file(settings.store_url)
    damage = await asyncio.to_thread(find_damage, file) if file else ""
    if damage:
        logging.getLogger("toolscout").error("the catalogue %s is damaged: %s; %s", file, damage, REPAIR)


async def _update_vectors(scout: Scout) -> None:
    """Embed the catalogue anew after an upgrade brought another model. Until then, answers use words alone."""
    import logging

    from toolscout.errors import ToolscoutError

    try:
        count = await scout.update_vectors()
    except ToolscoutError as error:
        logging.getLogger("toolscout").warning("the vectors were not rebuilt: %s", error.message)
    else:
        if count:
            logging.getLogger("toolscout").info("%d tools were embedded with the new model", count)


async def _authentication(scout: Scout, settings: Settings, listen: ListenOptions) -> Authentication | None:
    """Return the authentication, if callers need it. Refuse to start if nobody could authenticate."""
    if not listen.authenticate or listen.address is None:
        return None
    import time

    from toolscout.gateway.address import no_credentials
    from toolscout.gateway.auth.authentication import authentication_for

    if not settings.auth_issuer and not any(key.usable(time.time()) for key in await scout.api_keys.list_all()):
        raise no_credentials(listen.address[0])
    return authentication_for(settings, scout.api_keys.find)


def _tracing(settings: Settings) -> AbstractContextManager[None]:
    if not settings.traces:
        return nullcontext()
    from toolscout.telemetry.otlp import sent_spans

    return sent_spans()


def _log_to_stderr(settings: Settings) -> None:
    """Log only to standard error, because standard output carries the protocol.

    What stands in the file of the audit log is not logged as well.
    """
    import logging

    from toolscout.printable import SafeFormatter
    from toolscout.settings import unknown_variables
    from toolscout.telemetry import NOWHERE
    from toolscout.telemetry.log_lines import JsonFormatter

    handler = logging.StreamHandler(sys.stderr)
    is_json = settings.log_format == "json"
    handler.setFormatter(JsonFormatter() if is_json else SafeFormatter("%(asctime)s %(levelname)s %(message)s"))
    if settings.audit != NOWHERE:
        handler.addFilter(lambda record: getattr(record, "event", "") != "audit")
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("toolscout").setLevel(settings.log_level.upper())
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it logs every attempt, the gateway logs once
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what servers send, which may be private
    for warning in unknown_variables():
        logging.getLogger("toolscout").warning("%s", warning)
