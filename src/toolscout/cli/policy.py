"""`toolscout policy check`: validate a policy file, and explain its decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscout.cli import options
from toolscout.models import LOCAL, Caller

if TYPE_CHECKING:
    from toolscout.policy.policy_file import Policy
    from toolscout.policy.rules import Decision
    from toolscout.settings import Settings

app = typer.Typer(
    help="Check a policy before you use it.\n\n"
    "Example: `toolscout policy check --policy policy.toml --as ann github__create_issue`",
    no_args_is_help=True,
)


@app.callback()
def _root() -> None:
    """Make `check` a subcommand. Without a callback, typer merges a single subcommand into its parent."""


@app.command("check")
def check(
    key: Annotated[str | None, typer.Argument(metavar="KEY", help="The key of a tool: `<server>__<tool>`.")] = None,
    user: Annotated[str | None, typer.Option("--as", metavar="USER", help="Decide for this user.")] = None,
    tenant: options.Tenant = LOCAL,
    group: options.Groups = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="The policy. Default: TOOLSCOUT_POLICY.")
    ] = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Show whether a user may see and call a tool, and which rule decides. Exits with 1 if they may not call it.

    Without a key, check that the file can be read, and show how many rules it has.

    Examples: `toolscout policy check --policy policy.toml`, `toolscout policy check --as ann github__create_issue`
    """
    from toolscout.policy.policy_file import Policy, read_policy
    from toolscout.settings import Settings

    settings = Settings.from_env()
    source = str(policy) if policy else settings.policy
    loaded = read_policy(source) if source else None
    if key is None:
        _show_policy(loaded or Policy(), source, json=json)
        return
    settings = replace(settings, store=options.existing(store) or settings.store, policy=source)
    caller = options.caller_named(user, tenant, group)
    see, call = options.run(_decide(settings, caller, key))
    _show_decisions(key, caller, see, call, json=json)
    if not call.allowed:
        raise typer.Exit(1)


async def _decide(settings: Settings, caller: Caller, key: str) -> tuple[Decision, Decision]:
    from toolscout.scout import Scout

    async with Scout.open(settings=settings) as scout:
        return await scout.access.explain(caller, key, "see"), await scout.access.explain(caller, key, "call")


def _show_policy(policy: Policy, source: str, *, json: bool) -> None:
    from toolscout.cli.output import console, print_json, safe

    if json:
        counts = {"allow": len(policy.allow), "deny": len(policy.deny), "limits": len(policy.tools)}
        print_json({"policy": source or None, "ok": True, **counts})
    elif not source:
        console().print(
            "There is no policy: everyone in a tenant may use all its tools. Set TOOLSCOUT_POLICY to use one."
        )
    else:
        rules = f"{len(policy.allow)} allow, {len(policy.deny)} deny, limits for {len(policy.tools)} patterns of tools"
        console().print(safe(f"{source} is valid: {rules}"))
        if not policy.allow:
            console().print("It allows nothing: users see only the tools that they added themselves.")


def _show_decisions(key: str, caller: Caller, see: Decision, call: Decision, *, json: bool) -> None:
    from rich.text import Text

    from toolscout.cli.output import console, print_json, safe

    if json:
        who = {"tenant": caller.tenant, "user": caller.user, "groups": sorted(caller.groups)}
        decisions = {
            act: {"allowed": item.allowed, "because": item.because} for act, item in (("see", see), ("call", call))
        }
        print_json({"tool": key, "caller": who, **decisions, "suggestions": list(see.suggestions)})
        return
    out = console()
    subject = f"{caller.user or 'anyone'} of {caller.tenant}"
    out.print(safe(f"{subject}, {key}"))
    for act, item in (("see", see), ("call", call)):
        verdict = (f"may {act}", "green") if item.allowed else (f"may not {act}", "bold red")
        out.print(Text.assemble("  ", verdict, ": ") + safe(item.because))
    if see.suggestions:
        out.print(Text("did you mean: ", "bold") + safe(", ".join(see.suggestions)))
