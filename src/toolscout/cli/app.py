"""The command itself: what is common to all verbs, and how a user's mistake is told without a traceback."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer

import toolscout
from toolscout.cli import (
    audit,
    bench,
    browse,
    call,
    changes,
    doctor,
    enable,
    evaluate,
    export,
    import_,
    import_catalogue,
    index,
    keys,
    policy,
    search,
    serve,
)
from toolscout.errors import ToolscoutError, UsageError, to_wire

_Unreadable: type[Exception] = typer.BadParameter.__bases__[0]
"""Whatever is wrong with a command line: typer has no public name for it."""

EPILOG = (
    "Exit codes: 0 done, 1 nothing found or something is wrong, 2 wrong usage, 3 toolscout could not do it, "
    "130 interrupted."
)

app = typer.Typer(
    name="toolscout",
    help="Find the right tool among thousands, by meaning and by words.\n\n"
    "Start with `toolscout index --sample`, then `toolscout search email the team`.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("serve", rich_help_panel="Use")(serve.serve)
app.command("call", rich_help_panel="Use")(call.call)
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
app.command("export", rich_help_panel="Catalogue")(export.export)
app.command("import-catalogue", rich_help_panel="Catalogue")(import_catalogue.import_catalogue)
app.command("changes", rich_help_panel="Operate")(changes.changes)
app.command("approve", rich_help_panel="Operate")(changes.approve)
app.add_typer(keys.app, name="keys", rich_help_panel="Operate")
app.add_typer(policy.app, name="policy", rich_help_panel="Operate")
app.command("audit", rich_help_panel="Operate")(audit.audit)
app.command("eval", rich_help_panel="Measure")(evaluate.evaluate)
app.command("bench", rich_help_panel="Measure")(bench.bench)
app.command("doctor", rich_help_panel="Catalogue")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolscout {toolscout.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the right tool among thousands, by meaning and by words."""


def main() -> None:
    """Run the command; an error of ours becomes two lines on stderr, or JSON with --json, and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot write a character is no reason to fail
    machine = "--json" in sys.argv
    try:
        raise SystemExit(_without_types(typer.main.get_command(app))(standalone_mode=not machine))
    except (ToolscoutError, _Unreadable) as error:
        told = error if isinstance(error, ToolscoutError) else _usage(error)
        if machine:
            from toolscout.cli.output import print_json

            print_json(to_wire(told))
        else:
            _tell(told)
        raise SystemExit(told.exit_code) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None


def _without_types(command: Any, above: typer.Context | None = None) -> Any:
    """Take away the type that typer's help writes behind every flag: there is nothing to give to one."""
    context = typer.Context(command, parent=above, **command.context_settings)
    for option in command.get_params(context):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _without_types(inner, context)
    return command


def _usage(error: Any) -> UsageError:
    """Say as an error of ours what is wrong with the command line."""
    verb = error.ctx.command_path if error.ctx else "toolscout"
    return UsageError(error.format_message(), hint=f"`{verb} --help` shows how it is written")


def _tell(error: ToolscoutError) -> None:
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
