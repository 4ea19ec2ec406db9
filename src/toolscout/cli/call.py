"""`toolscout call`: call a tool."""

from __future__ import annotations

import json as json_
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from toolscout.cli import options
from toolscout.errors import ConfigError, InvalidValueError, ServerUnavailableError, ToolNotFoundError
from toolscout.models import CallResult


def call(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of the tool: `<server>__<tool>`.")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments, as a JSON object.")] = "{}",
    config: options.ConfigFiles = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Call a tool once, at its server.

    Example: `toolscout call time__get_current_time --args '{"timezone":"Asia/Tokyo"}' --config mcp.json`
    """
    from toolscout.cli.output import print_json

    try:
        arguments = json_.loads(args)
    except ValueError as error:
        raise InvalidValueError(f"--args is not JSON: {error}", hint="""for example --args '{"path": "."}'""") from None
    said = "interrupted; if it was sent, it may still have an effect"
    made = options.run(_call(key, arguments, config or [], store), interrupted=said)
    if json:
        print_json({"result": made.result, "repairs": list(made.repairs), "took_ms": round(made.took_ms, 1)})
    else:
        _show(made)
    if made.is_error:
        raise typer.Exit(1)


async def _call(key: str, arguments: Any, named: list[Path], store: str | None) -> CallResult:
    from toolscout.cli.serve import config_files
    from toolscout.config import read_config
    from toolscout.scout import Scout
    from toolscout.tool_keys import split_key

    files = config_files(named)
    if not files:
        raise ConfigError("no config is named", hint="name the file that lists the server: --config mcp.json")
    config = read_config(files)
    server = split_key(key)[0]
    wanted = tuple(item for item in config.servers if item.server.key == server)
    # Only the server of the key is started; without such a server, the catalogue says what may have been meant.
    async with Scout.open(replace(config, servers=wanted), settings=options.operating(store)) as scout:
        try:
            return await scout.call_tool(key, arguments)
        except ToolNotFoundError:
            # Nobody knows the tools of a server that never came up.
            for status in scout.servers.statuses():
                if status.state == "failed":
                    raise ServerUnavailableError(f"{status.detail}; nothing was sent", hint=status.hint) from None
            raise


def _show(made: CallResult) -> None:
    from toolscout.cli.output import console, safe

    out = console()
    for repair in made.repairs:
        out.print(safe(repair), style="dim")
    for item in made.result.get("content") or []:
        if isinstance(item, dict) and item.get("type") == "text":
            out.print(safe(str(item.get("text", ""))), soft_wrap=True)
        else:
            kind = item.get("type") if isinstance(item, dict) else "?"
            out.print(safe(f"[{kind}: {len(json_.dumps(item)):,} characters; --json shows it]"))
