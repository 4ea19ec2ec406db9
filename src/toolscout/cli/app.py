"""The `toolscout` command: its commands, and how an error is printed without a traceback."""

from __future__ import annotations

import io
import sys
from collections.abc import Container, Sequence
from typing import Annotated, Any

import typer

import toolscout
from toolscout.cli import (
    accounts,
    archive,
    audit,
    bench,
    browse,
    call,
    changes,
    console,
    doctor,
    enable,
    evaluate,
    import_,
    index,
    keys,
    policy,
    search,
    serve,
    token_key,
)
from toolscout.errors import ToolscoutError, UsageError, to_wire
from toolscout.tool_keys import SEPARATOR

_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0]
"""The base class of errors in a command line. Typer has no public name for it."""

EPILOG = (
    "Exit codes: 0 success, 1 nothing found or a problem found, 2 wrong usage, 3 toolscout failed, 130 interrupted."
)

app = typer.Typer(
    name="toolscout",
    help="Find the right tool among thousands, by meaning and by words.\n\n"
    "Start with `toolscout index --sample`, then `toolscout search email the team`. `toolscout import` finds the MCP "
    "servers of your agent hosts.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("serve", rich_help_panel="Use")(serve.serve)
app.command("console", rich_help_panel="Use")(console.console)
app.command("call", rich_help_panel="Use")(call.call)
app.command("login", rich_help_panel="Use")(accounts.login)
app.command("logout", rich_help_panel="Use")(accounts.logout)
app.command("accounts", rich_help_panel="Use")(accounts.accounts)
app.command("index", rich_help_panel="Catalogue")(index.index)
app.command("import", rich_help_panel="Catalogue")(import_.import_)
app.command("search", rich_help_panel="Find")(search.search)
app.command("list", rich_help_panel="Browse")(browse.list_)
app.command("categories", rich_help_panel="Browse")(browse.categories)
app.command("tags", rich_help_panel="Browse")(browse.tags)
app.command("related", rich_help_panel="Browse")(browse.related)
app.command("describe", rich_help_panel="Browse")(browse.describe)
app.command("enable", rich_help_panel="Catalogue")(enable.enable)
app.command("disable", rich_help_panel="Catalogue")(enable.disable)
app.command("export", rich_help_panel="Catalogue")(archive.export)
app.command("import-catalogue", rich_help_panel="Catalogue")(archive.import_catalogue)
app.command("changes", rich_help_panel="Operate")(changes.changes)
app.command("approve", rich_help_panel="Operate")(changes.approve)
app.add_typer(keys.app, name="keys", rich_help_panel="Operate")
app.add_typer(token_key.app, name="token-key", rich_help_panel="Operate")
app.add_typer(policy.app, name="policy", rich_help_panel="Operate")
app.command("audit", rich_help_panel="Operate")(audit.audit)
app.command("eval", rich_help_panel="Measure")(evaluate.evaluate)
app.command("bench", rich_help_panel="Measure")(bench.bench)
app.command("doctor", rich_help_panel="Catalogue")(doctor.doctor)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"toolscout {toolscout.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the right tool among thousands, by meaning and by words."""


def main() -> None:
    """Run the command. A ToolscoutError is printed to stderr, or as JSON with --json, and sets the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that the terminal cannot show must not fail the command
    as_json = "--json" in sys.argv
    try:
        command = _without_types(typer.main.get_command(app))
        _refuse_key(sys.argv[1:2], command.commands)
        raise SystemExit(command(standalone_mode=not as_json))
    except (ToolscoutError, _CommandLineError) as error:
        failure = error if isinstance(error, ToolscoutError) else _usage_error(error)
        if as_json:
            from toolscout.cli.output import print_json

            print_json(to_wire(failure, to_operator=True))
        else:
            _print_error(failure)
        raise SystemExit(failure.exit_code) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None


def _refuse_key(words: Sequence[str], commands: Container[str]) -> None:
    """Refuse a key where a command belongs, and say which command takes it."""
    for key in words:
        if SEPARATOR in key and key not in commands:
            raise UsageError(
                f"{key} is a tool, not a command",
                hint=f"`toolscout call {key}` calls it, `toolscout describe {key}` shows its parameters",
            )


def _without_types(command: Any, parent: typer.Context | None = None) -> Any:
    """Remove the type that typer's help prints after every flag: a flag takes no value."""
    context = typer.Context(command, parent=parent, **command.context_settings)
    for option in command.get_params(context):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for subcommand in getattr(command, "commands", {}).values():
        _without_types(subcommand, context)
    return command


def _usage_error(error: Any) -> UsageError:
    """Convert an error in the command line to a UsageError."""
    command = error.ctx.command_path if error.ctx else "toolscout"
    return UsageError(error.format_message(), hint=f"see `{command} --help`")


def _print_error(error: ToolscoutError) -> None:
    from rich.console import Console
    from rich.text import Text

    from toolscout.cli.output import safe

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text("error: ", "bold red") + safe(error.message))
    if error.suggestions:
        console.print(Text("did you mean: ", "bold") + safe(", ".join(error.suggestions)))
    if error.categories:
        console.print(Text("categories: ", "bold") + safe(", ".join(error.categories)))
    if error.hint:
        console.print(Text("hint: ", "bold") + safe(error.hint))
