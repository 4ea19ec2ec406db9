"""`toolscout eval`: retrieval quality and latency on a labelled set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolscout.cli import options
from toolscout.retrieval_metrics import LabelledQuery, read_queries, summarize


def evaluate(
    tools: Annotated[Path, typer.Argument(metavar="TOOLS.jsonl", help="The tools to search.")],
    queries: Annotated[
        Path,
        typer.Argument(
            metavar="QUERIES.jsonl", help='Rows of {"id", "query", "gold": [tool ids], "also"?: [tool ids]}.'
        ),
    ],
    ranker: Annotated[
        str | None, typer.Option("--ranker", metavar="R", help="hybrid (default), semantic, keyword, fuzzy or boosted.")
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help='Count the tools of "also" as right: they serve as well.')
    ] = False,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many hits of each search to look at.")] = 10,
    store: Annotated[
        str,
        typer.Option(
            "--store", metavar="URL", help="Where to keep the catalogue, so that a second run embeds nothing."
        ),
    ] = "memory:",
    json: options.Json = False,
) -> None:
    """Measure retrieval quality and latency on a labelled set, with the default settings.

    The id of a tool is its `id`, or else its key. A row with an empty gold is a request that nothing fits. If answers
    are degraded, no figure is printed: it would measure something else.

    Example: `toolscout eval tools.jsonl queries.jsonl --ranker keyword --json`
    """
    from toolscout.cli.output import console, print_json

    labelled = read_queries(queries)
    figures = options.run(_evaluate(tools, labelled, ranker, k, store, lenient=lenient, quiet=json))
    if json:
        print_json(figures)
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:,}")
    console().print(table)


async def _evaluate(
    tools: Path, queries: list[LabelledQuery], ranker: str | None, k: int, store: str, *, lenient: bool, quiet: bool
) -> dict[str, float]:
    from rich.console import Console
    from rich.progress import Progress

    from toolscout.scout import Scout
    from toolscout.scout.evaluation import measure_queries

    console = Console(stderr=True)
    with Progress(console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("indexing", total=None)
        async with Scout.open(store=store) as scout:
            report = await scout.index_tools(
                tools, progress=lambda done, total: bar.update(task, completed=done, total=total)
            )
            task = bar.add_task("searching", total=len(queries))
            outcomes = await measure_queries(scout, queries, ranker=ranker, k=k, done=lambda: bar.advance(task))
    return summarize(outcomes, report.total, k, lenient=lenient)
