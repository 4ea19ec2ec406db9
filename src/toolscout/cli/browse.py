"""`toolscout list`, `categories`, `tags`, `related`, `describe`: browse the catalogue without a query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from toolscout.cli import options
from toolscout.errors import ToolNotFoundError, UnknownCategoryError, UnknownServerError
from toolscout.models import LOCAL, Answer, Caller

if TYPE_CHECKING:
    from toolscout.scout import Scout

_Result = TypeVar("_Result")

Key = Annotated[str, typer.Argument(metavar="KEY", help="A tool's key: `<server>__<tool>`.")]


def list_(
    category: Annotated[
        str | None, typer.Option("--category", metavar="C", help="Only tools in this category.")
    ] = None,
    server: Annotated[str | None, typer.Option("--server", metavar="S", help="Only tools of this server.")] = None,
    detail: options.DetailLevel = "brief",
    disabled: Annotated[bool, typer.Option("--disabled", help="Show the disabled tools instead, on one page.")] = False,
    page: Annotated[int, typer.Option("--page", metavar="N", help="The page to show.")] = 1,
    page_size: Annotated[int, typer.Option("--page-size", metavar="N", help="Tools on a page, at most 100.")] = 50,
    user: options.As = None,
    tenant: options.Tenant = LOCAL,
    group: options.Groups = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """List tools by key, page by page. Exits with 1 if there are none.

    Example: `toolscout list --category databases --page 2`
    """
    from typing import cast

    from toolscout.cli.output import console, print_json, show_answer
    from toolscout.models import Detail

    async def list_tools(scout: Scout, caller: Caller) -> Answer:
        level = cast("Detail", detail)
        if disabled:
            return await scout.decisions.switched_off(caller, detail=level, category=category, server=server)
        return await scout.list_tools(
            detail=level, category=category, server=server, page=page, page_size=page_size, caller=caller
        )

    answer, empty_reason = _browse(store, options.caller_named(user, tenant, group), list_tools)
    if json:
        print_json(answer.to_dict())
    elif empty_reason and not answer:
        console().print(empty_reason)
    else:
        show_answer(answer)
        if answer.pagination and answer.pagination.page_size < page_size:
            console().print(f"A page has at most {answer.pagination.page_size} tools.")
    _exit_with_one(unless=answer)


def categories(
    config: options.ConfigFiles = None,
    user: options.As = None,
    tenant: options.Tenant = LOCAL,
    group: options.Groups = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """List the categories, with the number of tools in each. The config may describe categories of your own.

    Example: `toolscout categories --json`
    """
    from dataclasses import replace

    from toolscout.cli.output import console, print_json, show_categories
    from toolscout.cli.serve import config_files
    from toolscout.config.read import read_categories

    rows, empty_reason = _browse(
        store, options.caller_named(user, tenant, group), lambda scout, caller: scout.list_categories(caller=caller)
    )
    described = read_categories(config_files(config or []))
    rows = [replace(row, description=described.get(row.name) or row.description) for row in rows]
    if json:
        print_json({"categories": [row.to_dict() for row in rows]})
    elif empty_reason:
        console().print(empty_reason)
    else:
        show_categories(rows)
    _exit_with_one(unless=rows)


def tags(
    user: options.As = None,
    tenant: options.Tenant = LOCAL,
    group: options.Groups = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """List the tags, with the number of tools that have each.

    Example: `toolscout tags`
    """
    from toolscout.cli.output import console, print_json, show_tags

    rows, empty_reason = _browse(
        store, options.caller_named(user, tenant, group), lambda scout, caller: scout.list_tags(caller=caller)
    )
    if json:
        print_json({"tags": [row.to_dict() for row in rows]})
    elif not rows:
        console().print(empty_reason or "No tool has a tag.")
    else:
        show_tags(rows)
    _exit_with_one(unless=rows)


def related(
    key: Key,
    limit: Annotated[int, typer.Option("--limit", "-k", metavar="N", help="How many tools to show.")] = 5,
    user: options.As = None,
    tenant: options.Tenant = LOCAL,
    group: options.Groups = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Show related tools: explicitly related, same category, shared tags, similar by meaning.

    Example: `toolscout related github__create_issue`
    """
    from toolscout.cli.output import print_json, show_answer

    answer, _ = _browse(
        store,
        options.caller_named(user, tenant, group),
        lambda scout, caller: scout.get_related_tools(key, limit=limit, caller=caller),
    )
    if json:
        print_json(answer.to_dict())
    else:
        show_answer(answer)
    _exit_with_one(unless=answer)


def describe(
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Keys: `<server>__<tool>`.")],
    user: options.As = None,
    tenant: options.Tenant = LOCAL,
    group: options.Groups = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Show the description, parameters and version of tools. Exits with 1 if one of the keys is unknown.

    Example: `toolscout describe github__create_issue gmail__send_email`
    """
    from toolscout.cli.output import console, print_json, safe, show_tool

    answer, _ = _browse(
        store,
        options.caller_named(user, tenant, group),
        lambda scout, caller: scout.get_tool_details(keys, caller=caller),
    )
    if json:
        print_json(answer.to_dict())
    else:
        for match in answer:
            show_tool(match.tool)
        for line in answer.suggestions:
            console().print(safe(line))
    _exit_with_one(unless=not answer.suggestions)


def _exit_with_one(*, unless: object) -> None:
    """Exit with 1 unless there is a result."""
    if not unless:
        raise typer.Exit(1)


def _browse(
    store: str | None, caller: Caller, read: Callable[[Scout, Caller], Awaitable[_Result]]
) -> tuple[_Result, str]:
    """Return the result of `read` for the caller, and the reason if the caller sees no tool at all."""
    from toolscout.scout import Scout

    async def work() -> tuple[_Result, str]:
        async with Scout.open(store=options.existing(store)) as scout:
            empty_reason = await options.empty_catalogue_reason(scout, caller)
            try:
                return await read(scout, caller), empty_reason
            except (ToolNotFoundError, UnknownCategoryError, UnknownServerError) as error:
                error.hint = empty_reason or error.hint
                raise

    return options.run(work())
