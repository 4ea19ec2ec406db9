"""`toolscout call`: call a tool."""

from __future__ import annotations

import json as json_
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from toolscout.cli import options
from toolscout.errors import (
    ConfigError,
    InvalidValueError,
    ServerUnavailableError,
    SignInRequiredError,
    ToolNotFoundError,
)
from toolscout.models import CallResult


def call(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key of the tool: `<server>__<tool>`.")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="The arguments, as a JSON object.")] = "{}",
    config: options.ConfigFiles = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Call a tool once. Only its server is started.

    Example: `toolscout call time__get_current_time --args '{"timezone":"Asia/Tokyo"}' --config mcp.json`
    """
    from toolscout.cli.output import print_json

    try:
        arguments = json_.loads(args)
    except ValueError as error:
        raise InvalidValueError(f"--args is not JSON: {error}", hint="""for example --args '{"path": "."}'""") from None
    interrupted = "interrupted; if the call was sent, it may still take effect"
    outcome = options.run(_call(key, arguments, config or [], store), interrupted=interrupted)
    if json:
        print_json({"result": outcome.result, "repairs": list(outcome.repairs), "took_ms": round(outcome.took_ms, 1)})
    else:
        _show(outcome)
    if outcome.is_error:
        raise typer.Exit(1)


async def _call(key: str, arguments: Any, named_files: list[Path], store: str | None) -> CallResult:
    from toolscout.cli.serve import config_files
    from toolscout.config import read_config
    from toolscout.scout import Scout
    from toolscout.tool_keys import split_key

    files = config_files(named_files)
    if not files:
        raise ConfigError("there is no config file", hint="name the file that lists the server: --config mcp.json")
    config = read_config(files, partial=True)
    server = split_key(key)[0]
    servers = tuple(item for item in config.servers if item.server.key == server)
    # Only the server of the key is started. If there is none, the whole catalogue suggests similar keys.
    only = replace(config, servers=servers) if servers else None
    async with Scout.open(only, settings=options.operating(store)) as scout:
        try:
            return await scout.call_tool(key, arguments)
        except ToolNotFoundError:
            # The tools of a server that never started are not in the catalogue.
            for status in scout.servers.statuses():
                if status.state == "needs_login":
                    raise SignInRequiredError(status.detail, hint=status.hint) from None
                if status.state == "failed":
                    raise ServerUnavailableError(f"{status.detail}; nothing was sent", hint=status.hint) from None
            raise


def _show(outcome: CallResult) -> None:
    """Print a result as it is, for pipes, and an error as a quotation: it must not look like one of toolscout."""
    from rich.text import Text

    from toolscout.cli.output import console, safe
    from toolscout.printable import escape_controls

    out = console()
    for repair in outcome.repairs:
        out.print(safe(repair), style="dim", soft_wrap=True)
    for item in outcome.result.get("content") or []:
        if isinstance(item, dict) and item.get("type") == "text":
            text = str(item.get("text", ""))
            shown = Text("    | ") + safe(text) if outcome.is_error else Text(escape_controls(text, keep="\n"))
            out.print(shown, soft_wrap=True)
        else:
            kind = item.get("type") if isinstance(item, dict) else "?"
            out.print(safe(f"[{kind}: {len(json_.dumps(item)):,} characters; use --json to see it]"), soft_wrap=True)
