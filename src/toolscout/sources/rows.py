"""Raw tool definitions as sources: from a `tools.jsonl` file, from Python objects, or as a live server listed them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolscout.errors import InputFileError, ServerUnavailableError
from toolscout.models import LOCAL, Caller, Dropped, Server
from toolscout.ports import Upstream
from toolscout.tool_keys import server_slug

_FILE_HINT = (
    "it needs one tool a line, or a list of tools, also in the form of OpenAI or Anthropic: see docs/catalogue.md"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsSource:
    """The raw definitions ("rows") of one server's tools. They can be indexed, but not called."""

    server: Server
    rows: Sequence[Mapping[str, Any]]

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows."""
        return self.rows

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],  # noqa: ARG002 - no server to send them to
        *,
        caller: Caller,  # noqa: ARG002
        upstream: Upstream | None = None,  # noqa: ARG002
        extra: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """Refuse: rows only describe tools."""
        raise ServerUnavailableError(
            f"{name} was indexed from rows, and no server that could call it is connected",
            hint="connect its server to call it",
        )


def group_rows(rows: Iterable[Any]) -> list[RowsSource]:
    """Return one source for each `server` that the rows name. No server, or an empty name, means `local`."""
    grouped: dict[str, list[Any]] = {}
    for row in map(plain_row, rows):
        name = row.get("server") if isinstance(row, Mapping) else None
        grouped.setdefault(_title(name) if isinstance(name, str) else LOCAL, []).append(row)
    return [
        RowsSource(server=Server(key=server_slug(title), title=title), rows=grouped[title]) for title in sorted(grouped)
    ]


def plain_row(row: Any) -> Any:
    """Unwrap a tool in the format of OpenAI's chat API. Those of its newer API and of Anthropic are rows already."""
    function = row.get("function") if isinstance(row, Mapping) and row.get("type") == "function" else None
    if not isinstance(function, Mapping):
        return row
    return {**{name: value for name, value in row.items() if name not in ("type", "function")}, **function}


def _title(name: str) -> str:
    """Normalize the name of a server as the names of tools are: NFC, and only what UTF-8 can encode."""
    return unicodedata.normalize("NFC", name).encode("utf-8", "replace").decode("utf-8").strip() or LOCAL


def read_jsonl(path: str | Path, *, strict: bool = False) -> tuple[list[Mapping[str, Any]], list[Dropped]]:
    """Read rows from a file. A bad line is skipped and reported with its number. With `strict`, it is an error."""
    rows: list[Mapping[str, Any]] = []
    bad_lines: list[Dropped] = []
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputFileError(f"{path} cannot be read: {error.strerror}", hint="check the path") from error
    items = _items(content)
    lines = content.splitlines() if items is None else items
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        problem = ""
        try:
            row = plain_row(json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8")))
            if not isinstance(row, Mapping):
                problem = f"a row must be an object, not {type(row).__name__}"
            elif not isinstance(row.get("name"), str) or not row["name"].strip():
                problem = "a row needs a name"
            else:
                rows.append(row)
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 at byte {error.start}"
        except RecursionError:
            problem = "nested too deeply"
        except json.JSONDecodeError as error:
            problem = f"not JSON: {error.msg} at column {error.colno}"
        except ValueError as error:
            problem = f"not JSON: {error}"
        if problem:
            if strict:
                raise InputFileError(f"{path}:{number}: {problem}", hint="correct the line, or omit --strict")
            bad_lines.append(Dropped(where=f"{path}:{number}", reason=problem))
    if not rows:
        first = bad_lines[0].where.removeprefix(f"{path}:") if bad_lines else ""
        why = f": {'line' if items is None else 'tool'} {first}: {bad_lines[0].reason}" if first else ""
        raise InputFileError(f"{path} holds no tool{why}", hint=_FILE_HINT)
    return rows, bad_lines


def _items(content: bytes) -> list[bytes] | None:
    """Return each tool of a file that is one JSON array, or an object with `tools`, else None.

    The answer of a server to `tools/list` is such an object too, alone or as a `result`.
    """
    if not content.lstrip().startswith((b"[", b"{")):
        return None
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if isinstance(values, Mapping):
        result = values.get("result")
        values = (result if isinstance(result, Mapping) else values).get("tools")
    return [json.dumps(tool).encode("ascii") for tool in values] if isinstance(values, list) else None
