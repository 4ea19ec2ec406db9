"""The output of the commands: tables and colour on a terminal, plain text in a pipe.

Texts of servers are untrusted. They are printed as plain text, never interpreted as markup.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolscout.models import KEPT_OUT, Answer, Category, Dropped, IndexReport, ServerStatus, Tag, Tool, ToolMatch
from toolscout.printable import escape_controls, escape_json
from toolscout.text import shorten

_SHOWN_REASONS = 10
_REST_CHARS = 36
_FIT_STYLE = {"strong": "bold green", "likely": "green", "weak": "yellow"}


def console() -> Console:
    """Return the console for results."""
    return Console(highlight=False)


def print_json(value: Any) -> None:
    """Print a value as JSON, for programs."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    print(escape_json(json.dumps(value, ensure_ascii=not unicode, indent=2)))  # noqa: T201 - this is the output


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def safe(text: str) -> Text:
    """Make an untrusted text safe to print: control characters are escaped, markup is not interpreted.

    Every line after the first is indented behind a bar, so that it does not look like a line of toolscout.
    """
    return Text(escape_controls(text, keep="\n").replace("\n", "\n    | "))


def show_answer(answer: Answer, title: str = "") -> None:
    """Print tools as a table, with a footer of counts, time and tokens."""
    out = console()
    if title:
        out.print(safe(title), style="bold")
    if not answer:
        for line in answer.suggestions or ("There are no tools to show.",):
            out.print(safe(line))
        return
    out.print(_table(answer.matches, out.width))
    for match in answer:
        if match.detail == "full":
            show_tool(match.tool)
        if match.explain is not None:
            out.print(safe(f"{match.tool.key} {json.dumps(match.explain, ensure_ascii=False)}"), soft_wrap=True)
    out.print(Text(_footer(answer), style="dim"))
    if answer.metadata.degraded:
        out.print(safe(f"degraded: {answer.metadata.degraded}"), style="yellow")
    for line in answer.suggestions:
        out.print(safe(line))


def show_tool(tool: Tool) -> None:
    """Print one tool with its parameters."""
    out = console()
    key, category = safe(tool.key).plain, safe(tool.category).plain
    out.print(Text.assemble((key, "bold cyan"), f"  v{tool.version}  ", (category, "magenta")))
    for line in safe(tool.description).wrap(out, out.width - 2) if tool.description else ():
        out.print(Text("  ") + line)
    if tool.tags:
        out.print(safe("tags: " + ", ".join(tool.tags)), style="dim", soft_wrap=True)
    properties = tool.input_schema.get("properties")
    if isinstance(properties, dict) and properties:
        required = tool.input_schema.get("required") or []
        table = Table(box=box.SIMPLE, pad_edge=False)
        table.add_column("parameter", style="green", no_wrap=True)
        table.add_column("type")
        table.add_column("")
        for name, value in properties.items():
            value = value if isinstance(value, dict) else {}
            mark = " *" if name in required else ""
            table.add_row(safe(name + mark), safe(_type_name(value)), safe(str(value.get("description") or "")))
        out.print(table)
    out.print()


def show_categories(categories: Sequence[Category]) -> None:
    """Print categories as a table."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("category", style="magenta", no_wrap=True)
    table.add_column("tools", justify="right")
    table.add_column("description")
    for item in categories:
        table.add_row(safe(item.name), str(item.count), safe(item.description))
    console().print(table)


def show_tags(tags: Sequence[Tag]) -> None:
    """Print tags as a table."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("tag", style="magenta", no_wrap=True)
    table.add_column("tools", justify="right")
    for item in tags:
        table.add_row(safe(item.name), str(item.count))
    console().print(table)


def show_report(report: IndexReport) -> None:
    """Print the result of indexing, with the reason for each dropped tool."""
    out = console()
    withheld = len(report.quarantined)
    counts = [
        (report.new, "new", "green"),
        (report.changed, "changed", "yellow"),
        (report.unchanged, "unchanged", "dim"),
        (report.removed, "removed", "red"),
        (len(report.dropped), "dropped", "red"),
    ]
    summary = Text(", ").join(Text(f"{count:,} {word}", style=style) for count, word, style in counts if count)
    total = count_of(report.total, "tool") + (
        f", {report.total - withheld:,} searchable and {withheld:,} held back" if withheld else ""
    )
    out.print(
        Text(f"{total}: " if summary else total) + summary + Text(f" ({report.took_ms / 1_000:.1f} s)", style="dim")
    )
    if report.unembedded:
        message = "tools have no vector yet: they are searched by words alone until `toolscout index` runs again"
        out.print(Text(f"{report.unembedded:,} {message}", style="yellow"))
    for item in report.collisions:
        out.print(Text("renamed ", style="yellow") + safe(f"{item.where}: {item.reason}"), soft_wrap=True)
    _show_waiting(out, report)
    _show_reasons(out, Text("look-alike ", style="yellow"), report.look_alikes)
    _show_reasons(out, Text("dropped ", style="red"), report.dropped)


def _show_reasons(out: Console, label: Text, items: Sequence[Dropped]) -> None:
    for item in items[:_SHOWN_REASONS]:
        out.print(label + safe(f"{item.where}: {item.reason}"), soft_wrap=True)
    if len(items) > _SHOWN_REASONS:
        out.print(Text(f"... and {len(items) - _SHOWN_REASONS:,} more (--json lists all)", style="dim"))


def _show_waiting(out: Console, report: IndexReport) -> None:
    """Print which tools wait for a decision, and the commands for it."""
    withheld = [item for item in report.quarantined if item.reason != KEPT_OUT]
    for item in withheld[:_SHOWN_REASONS]:
        out.print(Text("held back ", style="red") + safe(f"{item.where}: {item.reason}"), soft_wrap=True)
    offered = sorted({*report.offered} - {item.where for item in report.quarantined})
    for key in offered[:_SHOWN_REASONS]:
        out.print(
            Text("changed ", style="yellow")
            + safe(f"{key}: the definition differs from the one first seen or approved")
        )
    if withheld or offered:
        out.print(
            "`toolscout changes` shows them. `toolscout approve KEY@VERSION` approves one, "
            "and --keep-out keeps it held back."
        )


def show_servers(servers: Sequence[ServerStatus]) -> None:
    """Print the state of each server."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("server", style="cyan", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("tools", justify="right")
    table.add_column("")
    for status in servers:
        style = {"ready": "green", "failed": "red"}.get(status.state, "yellow")
        detail = "; ".join(filter(None, (status.detail, status.hint)))
        table.add_row(safe(status.title), Text(status.state, style=style), str(status.tools), safe(detail))
    console().print(table)


def _table(matches: Sequence[ToolMatch], width: int) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    scored = any(match.score is not None for match in matches)
    related = any(match.relationship for match in matches)
    judged = any(match.fit for match in matches)
    if scored:
        table.add_column("score", justify="right", style="green", no_wrap=True)
    if judged:
        table.add_column("fit", no_wrap=True)
    # Users copy keys, so a key is wrapped only if the other columns would have no space.
    longest = max(len(match.tool.key) for match in matches)
    table.add_column("tool", style="cyan", overflow="fold", no_wrap=longest <= width - _REST_CHARS)
    if related:
        table.add_column("relation", style="magenta", no_wrap=True)
    table.add_column("what it does")
    for match in matches:
        row: list[Text] = []
        if scored:
            row.append(Text(_score(match.score)))
        if judged:
            row.append(Text(match.fit or "", style=_FIT_STYLE.get(match.fit or "", "")))
        row.append(safe(match.tool.key))
        if related:
            row.append(safe(match.relationship or ""))
        row.append(safe(shorten(match.tool.description, 160) if match.detail != "minimal" else ""))
        table.add_row(*row)
    return table


def _score(score: float | None) -> str:
    if score is None:
        return ""
    return f"{score:.2f}" if score >= 0.005 or score <= 0 else "<.01"


def _footer(answer: Answer) -> str:
    metadata = answer.metadata
    parts = [f"{metadata.returned} of {metadata.matched:,}" if metadata.ranker else f"{metadata.returned} shown"]
    parts.append(count_of(metadata.total, "tool"))
    if metadata.took_ms:
        parts.append(f"{metadata.took_ms:.1f} ms")
    parts.append(f"{metadata.tokens:,} tokens instead of {metadata.tokens + metadata.tokens_saved:,}")
    if answer.pagination:
        parts.append(f"page {answer.pagination.page} of {answer.pagination.total_pages}")
    return " · ".join(parts)


def _type_name(value: dict[str, Any]) -> str:
    if isinstance(value.get("enum"), list):
        return " | ".join(str(item) for item in value["enum"][:8])
    types = value.get("type")
    return "/".join(map(str, types)) if isinstance(types, list) else str(types or "")
