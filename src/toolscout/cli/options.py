"""Options that several verbs share, spelt once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from toolscout.models import Caller

_Result = TypeVar("_Result")

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where the catalogue lives: `memory:`, `sqlite:///PATH` or `postgresql://...`. "
        "Default: a file in your data folder.",
    ),
]
ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", metavar="F", help="A config file, such as mcp.json. May be repeated. Default: your config folder."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
As = Annotated[str | None, typer.Option("--as", metavar="USER", help="See the catalogue as this user sees it.")]
DetailLevel = Annotated[
    str, typer.Option("--detail", metavar="minimal|brief|full", help="How much to show of each tool.")
]


def caller_named(user: str | None) -> Caller:
    """Return the local caller, or a user of the local tenant."""
    return Caller(user=user)


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a verb's coroutine."""
    return asyncio.run(work)
