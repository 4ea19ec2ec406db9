"""`toolscout search`: find tools."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toolscout.cli import options
from toolscout.models import LOCAL, Answer


def search(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="What the tool should do. Unquoted words join into one query.")
    ],
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="QUERY", help="Another query to answer at the same time. May be repeated."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="T", help="Only tools with this tag. May be repeated.")
    ] = None,
    match: Annotated[
        str, typer.Option("--match", metavar="any|all", help="Whether a tool needs any or all of the tags.")
    ] = "any",
    category: Annotated[
        str | None, typer.Option("--category", metavar="C", help="Only tools in this category.")
    ] = None,
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="S", help="Only tools of this server. May be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-k", metavar="N", help="The most hits to show.")] = 10,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="X",
            help="The lowest score, on the ranker's own scale. 0 shows the nearest tools in any case.",
        ),
    ] = None,
    detail: options.DetailLevel = "brief",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens", metavar="N", help="The most tokens of the answer. The best hits keep the most detail."
        ),
    ] = None,
    ranker: Annotated[
        str | None, typer.Option("--ranker", metavar="R", help="hybrid (default), semantic, keyword, fuzzy or boosted.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    user: options.As = None,
    tenant: options.Tenant = LOCAL,
    group: options.Groups = None,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Find tools for a task, by meaning and by words.

    Examples: `toolscout search email the team`, `toolscout search create an issue --server github --detail full`,
    `toolscout search "find a flight" --also "book a hotel" --json`
    """
    from toolscout.cli.output import console, print_json, show_answer

    parameters: dict[str, Any] = {
        "tags": tag,
        "match": match,
        "category": category,
        "servers": server,
        "top_k": limit,
        "threshold": threshold,
        "detail": detail,
        "max_tokens": max_tokens,
        "ranker": ranker,
        "explain": explain,
        "caller": options.caller_named(user, tenant, group),
    }
    queries = [" ".join(query), *(also or [])]
    answers, empty_reason = options.run(_search(queries, store, parameters))
    if json:
        print_json(answers[0].to_dict() if len(answers) == 1 else {"results": [answer.to_dict() for answer in answers]})
    elif empty_reason:
        console().print(empty_reason)
    else:
        for text, answer in zip(queries, answers, strict=True):
            show_answer(answer, text if len(answers) > 1 else "")
    if not any(answers):
        raise typer.Exit(1)


async def _search(queries: list[str], store: str | None, parameters: dict[str, Any]) -> tuple[list[Answer], str]:
    from toolscout.scout import Scout

    async with Scout.open(store=options.existing(store)) as scout:
        await options.prepare_search(scout, store)
        return await scout.search_tools(queries, **parameters), await options.empty_catalogue_reason(
            scout, parameters["caller"]
        )
