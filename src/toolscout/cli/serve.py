"""`toolscout serve`: the gateway."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import options
from toolscout.config import Config
from toolscout.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from toolscout.gateway.auth.authentication import Authentication
    from toolscout.scout import Scout
    from toolscout.settings import Settings

_HEAD_START_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the gateway listens: nowhere means stdio."""

    address: tuple[str, int] | None
    hosts: list[str]
    origins: list[str]
    diagnostics: tuple[str, int] | None
    asks_who: bool
    """Whether callers must identify themselves."""


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
            help="With --http, answer `/livez` and `/readyz` on a port of their own.",
        ),
    ] = None,
    surface: Annotated[
        str | None,
        typer.Option(
            "--surface",
            metavar="compact|browse|registry|all",
            help="What agents are shown. Default: what the config says, or compact.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="HOST:PORT", help="A further Host header to accept. May be repeated."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="A web origin that may call. May be repeated."),
    ] = None,
    auth: Annotated[
        bool,
        typer.Option("--auth", help="With --http, ask who is calling on loopback too; beyond it that is always asked."),
    ] = False,
    insecure_no_auth: Annotated[
        bool,
        typer.Option("--insecure-no-auth", help="Serve beyond loopback although nothing asks who is calling."),
    ] = False,
    store: options.Store = None,
) -> None:
    """Serve all your MCP servers as one: agents see a few tools, and find and call thousands through them.

    It answers at once from the stored catalogue; servers connect in the background. Edits of the config and of the
    policy are followed. Beyond loopback callers must identify themselves, with an API key or a token of your issuer.

    Examples: `toolscout serve --config mcp.json`, `toolscout serve --http 8080 --surface browse`
    """
    from toolscout.gateway.address import parse_address, requires_authentication

    settings = options.operating(store)
    address = parse_address(http) if http else None
    if address is None and (diagnostics or auth):
        raise UsageError(
            f"{'--auth' if auth else '--diagnostics'} goes with --http",
            hint="on stdio the host that starts toolscout is the only caller, and sees it end",
        )
    asks = address is not None and requires_authentication(
        address[0], auth=auth, issuer=settings.auth_issuer, insecure_no_auth=insecure_no_auth
    )
    told_at = parse_address(diagnostics, "--diagnostics") if diagnostics else None
    _log_to_stderr()
    files = [*(config or ())]
    settled = _read(files, store)
    listening = Listening(
        address=address, hosts=allow_host or [], origins=allow_origin or [], diagnostics=told_at, asks_who=asks
    )
    options.run(_serve(files, settled, listening, surface, settings))


def config_files(named: list[Path]) -> list[Path]:
    """Return the files that were named, or else those in the user's config folder."""
    from toolscout.settings import config_folder

    return named or sorted(config_folder().glob("*.json"))


def _read(named: list[Path], store: str | None) -> Config | None:
    from toolscout.config import read_config
    from toolscout.settings import config_folder

    files = config_files(named)
    if files:
        return read_config(files)
    if store:
        return None  # a catalogue alone can be searched, though not called
    raise ConfigError(
        f"no config is named, and {config_folder()} holds none",
        hint="`toolscout import --write` takes over the servers of your agent hosts; or name a file: --config mcp.json",
    )


async def _serve(
    named: list[Path],
    config: Config | None,
    listening: Listening,
    surface: str | None,
    settings: Settings,
) -> None:
    import asyncio

    from toolscout.gateway.file_watcher import watch_config, watch_policy
    from toolscout.gateway.server import Gateway
    from toolscout.scout import Scout

    shown = config or Config()
    async with Scout.open(settings=settings) as scout:
        authentication = await _authentication(scout, settings, listening)
        gateway = Gateway(
            scout,
            settings=settings,
            surface=surface or shown.surface or "compact",
            core=shown.core,
            authenticated=authentication is not None,
        )

        async def apply(config: Config) -> None:
            gateway.tool_lists.choose(surface=surface or config.surface or "compact", core=config.core)
            await scout.connect(config)

        async def warm() -> None:
            await gateway.first_answer(_HEAD_START_S)
            await scout.warm()

        # Twenty servers that start at once take every core: the first list is answered before they do.
        working = [asyncio.create_task(warm())]
        if config is not None:
            await scout.connect(config, after=gateway.first_answer(_HEAD_START_S))
            following = watch_config(lambda: config_files(named), apply, settings.reindex_interval_s)
            working.append(asyncio.create_task(following))
        if settings.policy:
            working.append(
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
            if listening.address is None:
                from toolscout.gateway.stdio import serve_stdio

                await serve_stdio(gateway, max_line_bytes=settings.max_line_bytes)
            else:
                from toolscout.gateway.http import serve_http

                host, port = listening.address
                await serve_http(
                    gateway,
                    settings,
                    host=host,
                    port=port,
                    hosts=listening.hosts,
                    origins=listening.origins,
                    diagnostics=listening.diagnostics,
                    authentication=authentication,
                )
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)


async def _authentication(scout: Scout, settings: Settings, listening: Listening) -> Authentication | None:
    """Build what asks who is calling, where it is asked; where nobody could answer, there is no start."""
    if not listening.asks_who or listening.address is None:
        return None
    import time

    from toolscout.gateway.address import no_credentials
    from toolscout.gateway.auth.authentication import authentication_for

    if not settings.auth_issuer and not any(key.usable(time.time()) for key in await scout.api_keys.list_all()):
        raise no_credentials(listening.address[0])
    return authentication_for(settings, scout.api_keys.find)


def _log_to_stderr() -> None:
    """Log to standard error alone: standard output is the wire."""
    import logging

    from toolscout.settings import unknown_variables

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("toolscout").setLevel(logging.INFO)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it tells of every attempt; the gateway tells once
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it quotes what servers send, and that is not ours to log
    for said in unknown_variables():
        logging.getLogger("toolscout").warning("%s", said)
