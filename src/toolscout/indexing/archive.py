"""The archive format: a whole catalogue as lines of JSON, to copy it from one store to another. See docs/archive.md.

The first line names the format, its version and the model of the vectors. Then each scope follows with its servers,
tools, switches, pins, and the vectors that no earlier scope brought. The last line counts the items, so that a file
that was cut off is noticed. Everything is ASCII: a lone surrogate, which UTF-8 cannot encode, is escaped.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, create_model

from toolscout.errors import BadToolError, InputFileError
from toolscout.indexing.normalize import normalize_tool
from toolscout.models import Pin, Scope, Server, Tool, Verdict
from toolscout.settings import Settings
from toolscout.tool_keys import tool_key

if TYPE_CHECKING:
    from toolscout.models import FloatArray

FORMAT = "toolscout-catalogue"
VERSION = 1
MAX_LINE_BYTES = 8_388_608
"""The longest line that is read. The largest definition is far shorter."""
COUNTED = ("scope", "server", "tool", "switch", "pin", "vector")

_HASH_BYTES = 16
_SCOPE_FIELDS = ("tenant", "owner")
_SCREEN_FIELDS = ("screened", "found")
_ARCHIVE_NAMES = {"quarantine_reason": "held"}
_HINT = "export the catalogue again; nothing was imported"
_EXPECTED = {
    "missing": "is missing",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "mapping_type": "must be an object",
    "dict_type": "must be an object",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
}
"""Error types of pydantic in the words of JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveHeader:
    """The first line: the model of the vectors, "" when there are none."""

    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTool:
    """A tool with the stamp under which it was published."""

    tool: Tool
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedSwitch:
    """An operator's decision to enable or disable a tool."""

    key: str
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedVector:
    """A vector under the hash of its text."""

    text_hash: str
    vector: FloatArray


ArchiveItem = ArchiveHeader | Scope | Server | ArchivedTool | ArchivedSwitch | Pin | ArchivedVector

_KINDS: Mapping[type[object], str] = {
    ArchiveHeader: "header",
    Scope: "scope",
    Server: "server",
    ArchivedTool: "tool",
    ArchivedSwitch: "switch",
    Pin: "pin",
    ArchivedVector: "vector",
}


def write_items(items: Iterable[ArchiveItem]) -> Iterator[bytes]:
    """Write items as lines. `write_end` has to follow."""
    for item in items:
        yield _line(_to_row(item))


def write_end(counts: Mapping[str, int]) -> bytes:
    """Write the last line."""
    return _line({"kind": "end", **{kind: counts.get(kind, 0) for kind in COUNTED}})


def read_items(lines: Iterable[bytes], where: str, settings: Settings | None = None) -> Iterator[ArchiveItem]:
    """Read items back and check each against those before it. An error names the file and the line.

    Definitions have the same bounds as those of a live server.
    """
    reader = _ArchiveReader(settings or Settings())
    number = 0
    for number, line in enumerate(lines, start=1):
        try:
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"it has more than {MAX_LINE_BYTES:,} bytes")
            item = reader.read(json.loads(line))
        except (ValueError, TypeError, RecursionError, BadToolError) as error:
            raise InputFileError(f"{where}, line {number}: {_reason(error)}", hint=_HINT) from None
        if item is not None:
            yield item
    if not reader.ended:
        raise InputFileError(f"{where} ends after line {number}, before its last line", hint=_HINT)


def kind_of(item: ArchiveItem) -> str:
    """Return the kind of an item, as the last line counts it."""
    return _KINDS[type(item)]


def _to_row(item: ArchiveItem) -> dict[str, Any]:
    if isinstance(item, ArchiveHeader):
        return {"format": FORMAT, "version": VERSION, "model": item.model_id}
    if isinstance(item, ArchivedVector):
        data = base64.b64encode(item.vector.astype("<f2").tobytes()).decode()
        return {"kind": "vector", "text": item.text_hash, "f2": data}
    if isinstance(item, Server):
        return {"kind": "server", "key": item.key, "title": item.title, "trusted": item.trusted}
    if isinstance(item, ArchivedTool):
        names = [field.name for field in fields(Tool) if field.name not in _SCOPE_FIELDS]
        values = {_ARCHIVE_NAMES.get(name, name): getattr(item.tool, name) for name in names}
        return {"kind": "tool", "stamp": item.stamp, **values}
    if isinstance(item, Pin):
        return {"kind": "pin", **{name: value for name, value in asdict(item).items() if name not in _SCREEN_FIELDS}}
    return {"kind": kind_of(item), **asdict(item)}


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"


def _reason(error: Exception) -> str:
    """Say what is wrong with a line. Values are never repeated: they may be long."""
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return "it is not JSON"
    if isinstance(error, BadToolError):
        return f"the tool cannot be indexed: {error.message}"
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"`{field}` {_EXPECTED.get(first['type']) or 'is wrong: ' + first['msg']}"


class _Row(BaseModel):
    """One line of an archive. Types are checked strictly, and unknown fields are ignored."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


_Name = Annotated[str, Field(min_length=1)]


class _HeaderRow(_Row):
    model: str


class _ScopeRow(_Row):
    tenant: _Name
    owner: _Name | None = None


class _ServerRow(_Row):
    key: _Name
    title: str
    trusted: bool


class _SwitchRow(_Row):
    key: str
    enabled: bool


class _PinRow(_Row):
    """A pin without the result of its screening: an imported definition is always screened again."""

    key: _Name
    fingerprint: str
    verdict: Verdict
    at: float
    before: dict[str, Any] | None = None


class _VectorRow(_Row):
    text: str
    f2: str


def _tool_row() -> type[_Row]:
    """Derive the row of a tool from the fields of Tool. JSON has lists where Tool has tuples."""
    types = get_type_hints(Tool)
    columns: dict[str, Any] = {"stamp": (str, ...), "fingerprint": (_Name, ...)}
    for field in fields(Tool):
        if field.name in columns or field.name in _SCOPE_FIELDS:
            continue
        kind = types[field.name]
        if get_origin(kind) is tuple:
            kind = Annotated[kind, Strict(strict=False)]
        options: dict[str, Any] = {"alias": _ARCHIVE_NAMES.get(field.name)}
        if field.default_factory is not MISSING:
            options["default_factory"] = field.default_factory
        elif field.default is not MISSING:
            options["default"] = field.default
        columns[field.name] = (kind, Field(**options))
    return create_model("_ToolRow", __base__=_Row, **columns)


_ToolRow = _tool_row()


class _ArchiveReader:
    """Reads rows in order. It remembers the present scope, and what has been read of it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.ended = False
        self._header: ArchiveHeader | None = None
        self._scope: Scope | None = None
        self._scopes: set[Scope] = set()
        self._servers: set[str] = set()
        self._keys: set[str] = set()
        self._pins: set[str] = set()
        self._vector_bytes = 0
        self._counts = dict.fromkeys(COUNTED, 0)
        self._readers: Mapping[str, Callable[[dict[str, Any]], ArchiveItem]] = {
            "scope": self._read_scope,
            "server": self._read_server,
            "tool": self._read_tool,
            "switch": self._read_switch,
            "pin": self._read_pin,
            "vector": self._read_vector,
        }

    def read(self, row: Any) -> ArchiveItem | None:
        """Return the item of a row, None for the last line."""
        if not isinstance(row, dict):
            raise TypeError("it is not a JSON object")
        if self._header is None:
            self._header = _read_header(row)
            return self._header
        kind = row.get("kind")
        if self.ended:
            raise ValueError("it follows the last line")
        if kind == "end":
            self._read_end(row)
            return None
        if kind not in COUNTED:
            raise ValueError(f"it is of the unknown kind {str(kind)[:40]!r}")
        if self._scope is None and kind != "scope":
            raise ValueError(f"a {kind} comes before any scope")
        self._counts[kind] += 1
        return self._readers[kind](row)

    def _read_scope(self, row: dict[str, Any]) -> Scope:
        values = _ScopeRow.model_validate(row)
        scope = Scope(tenant=values.tenant, owner=values.owner)
        _refuse_second(scope, self._scopes, "scope")
        self._scope = scope
        self._servers, self._keys, self._pins = set(), set(), set()
        return scope

    def _read_server(self, row: dict[str, Any]) -> Server:
        values = _ServerRow.model_validate(row)
        _refuse_second(values.key, self._servers, "server")
        return Server(key=values.key, title=values.title, trusted=values.trusted)

    def _read_tool(self, row: dict[str, Any]) -> ArchivedTool:
        assert self._scope is not None  # noqa: S101 - checked in `read`
        values = dict(_ToolRow.model_validate(row).__dict__)
        stamp = values.pop("stamp")
        tool = Tool(**values, tenant=self._scope.tenant, owner=self._scope.owner)
        if tool.server not in self._servers:
            raise ValueError(f"the tool's server {tool.server!r} is not in its scope")
        if tool.key != tool_key(tool.server, tool.name):
            # Policy and audit see the key, and the server gets the name.
            raise ValueError("the tool's key does not consist of its server and its name")
        _refuse_second(tool.key, self._keys, "tool")
        _check_bounds(tool, self._settings)
        return ArchivedTool(tool=tool, stamp=stamp)

    def _read_switch(self, row: dict[str, Any]) -> ArchivedSwitch:
        values = _SwitchRow.model_validate(row)
        return ArchivedSwitch(key=values.key, enabled=values.enabled)

    def _read_pin(self, row: dict[str, Any]) -> Pin:
        values = _PinRow.model_validate(row)
        _refuse_second(values.key, self._pins, "pin")
        return Pin(**values.__dict__)

    def _read_vector(self, row: dict[str, Any]) -> ArchivedVector:
        import numpy as np

        values = _VectorRow.model_validate(row)
        if len(bytes.fromhex(values.text)) != _HASH_BYTES:
            raise ValueError("`text` is not a hash of 16 bytes")
        if self._header is None or not self._header.model_id:
            raise ValueError("a vector comes, but the first line names no model")
        try:
            data = base64.b64decode(values.f2, validate=True)
        except ValueError:
            raise ValueError("`f2` is not base64") from None
        if not data or len(data) % 2 or len(data) != (self._vector_bytes or len(data)):
            raise ValueError("the vector has another length than those before it")
        self._vector_bytes = len(data)
        vector = np.frombuffer(data, dtype="<f2").astype(np.float32)
        if not np.isfinite(vector).all():
            raise ValueError("the vector holds a number that is not finite")
        return ArchivedVector(text_hash=values.text, vector=vector)

    def _read_end(self, row: Mapping[str, Any]) -> None:
        for kind, count in self._counts.items():
            if row.get(kind, 0) != count:
                raise ValueError(f"it counts {row.get(kind)} of the kind {kind}, but {count} came")
        self.ended = True


def _check_bounds(tool: Tool, settings: Settings) -> None:
    """Refuse what would be dropped if a server sent it."""
    raw = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "category": tool.category,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
        "_meta": tool.meta,
        "tags": list(tool.tags),
        "keywords": list(tool.keywords),
        "capabilities": list(tool.capabilities),
        "related": list(tool.related),
        "examples": list(tool.examples),
    }
    normalize_tool(raw, Server(key=tool.server, title=tool.server_title), settings)


def _read_header(row: dict[str, Any]) -> ArchiveHeader:
    if row.get("format") != FORMAT:
        raise ValueError(f'it does not begin with {{"format": "{FORMAT}"}}')
    if row.get("version") != VERSION:
        raise ValueError(f"it is of version {row.get('version')}, this toolscout reads version {VERSION}")
    return ArchiveHeader(model_id=_HeaderRow.model_validate(row).model)


def _refuse_second(value: Any, values: set[Any], kind: str) -> None:
    if value in values:
        raise ValueError(f"the {kind} comes twice")
    values.add(value)
