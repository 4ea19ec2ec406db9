"""`toolscout serve`: the gateway."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from toolscout.cli import options
from toolscout.config import Config
from toolscout.errors import ConfigError, UsageError

_HEAD_START_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the gateway listens: nowhere means stdio."""

    address: tuple[str, int] | None
    hosts: list[str]
    origins: list[str]
    diagnostics: tuple[str, int] | None


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
    insecure_no_auth: Annotated[
        bool,
        typer.Option("--insecure-no-auth", help="Serve beyond loopback although nothing asks who is calling."),
    ] = False,
    store: options.Store = None,
) -> None:
    """Serve all your MCP servers as one: agents see a few tools, and find and call thousands through them.

    It answers at once from the stored catalogue; servers connect in the background. Edits of the config are followed.

    Examples: `toolscout serve --config mcp.json`, `toolscout serve --http 8080 --surface browse`
    """
    from toolscout.gateway.address import check_address, parse_address

    address = parse_address(http) if http else None
    if address:
        check_address(address[0], insecure_no_auth=insecure_no_auth)
    elif diagnostics:
        raise UsageError("--diagnostics goes with --http", hint="a host that starts toolscout on stdio sees it end")
    told_at = parse_address(diagnostics, "--diagnostics") if diagnostics else None
    _log_to_stderr()
    files = [*(config or ())]
    settled = _read(files, store)
    listening = Listening(address=address, hosts=allow_host or [], origins=allow_origin or [], diagnostics=told_at)
    options.run(_serve(files, settled, listening, surface, store))


def config_files(named: list[Path]) -> list[Path]:
    """Return the files that were named, or else those in the user's config folder."""
    from toolscout.config import config_folder

    return named or sorted(config_folder().glob("*.json"))


def _read(named: list[Path], store: str | None) -> Config | None:
    from toolscout.config import config_folder, read_config

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
    store: str | None,
) -> None:
    import asyncio

    from toolscout.gateway.follow import follow_config
    from toolscout.gateway.server import Gateway
    from toolscout.scout import Scout
    from toolscout.settings import Settings

    settings = Settings.from_env()
    if store:
        settings = replace(settings, store=store)
    shown = config or Config()
    async with Scout.open(settings=settings) as scout:
        gateway = Gateway(scout, settings=settings, surface=surface or shown.surface or "compact", core=shown.core)

        async def apply(config: Config) -> None:
            gateway.listings.choose(surface=surface or config.surface or "compact", core=config.core)
            await scout.connect(config)

        async def warm() -> None:
            await gateway.first_answer(_HEAD_START_S)
            await scout.warm()

        # Twenty servers that start at once take every core: the first list is answered before they do.
        working = [asyncio.create_task(warm())]
        if config is not None:
            await scout.connect(config, after=gateway.first_answer(_HEAD_START_S))
            following = follow_config(lambda: config_files(named), apply, settings.reindex_interval_s)
            working.append(asyncio.create_task(following))
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
                )
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)


def _log_to_stderr() -> None:
    """Log to standard error alone: standard output is the wire."""
    import logging

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("toolscout").setLevel(logging.INFO)
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it quotes what servers send, and that is not ours to log
