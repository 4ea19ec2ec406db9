"""`toolscout console`: open the console of a running gateway."""

from __future__ import annotations

from typing import Annotated

import typer

from toolscout.errors import ServerUnavailableError


def console(
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link, and open no browser.")] = False,
) -> None:
    """Open the console of the gateway that you started last with `toolscout serve --http`.

    The link signs you in, once and within two minutes. Where callers have API keys, you sign in with yours.

    Example: `toolscout console`
    """
    import webbrowser

    from toolscout.console.links import running_consoles

    running = running_consoles()
    if not running:
        raise ServerUnavailableError(
            "no gateway with a console runs on this machine", hint="start one: `toolscout serve --http 8080`"
        )
    link = running[0].link()
    typer.echo(link)
    if not no_browser:
        webbrowser.open(link)
