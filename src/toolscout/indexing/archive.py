"""A whole catalogue as lines of JSON, to carry it from one store to another; docs/archive.md describes it.

The first line names the format, its version and the model of the vectors. Then follow, scope by scope, its servers,
tools, switches and pins, and the vectors that no scope before it brought. The last line counts what came, so that a
file that was cut off is noticed. Everything is ASCII: what no text encoding can hold, a lone surrogate, is escaped.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any, get_args

from toolscout.errors import InputFileError
from toolscout.models import Pin, Scope, Server, Tool, Verdict

if TYPE_CHECKING:
    from toolscout.models import FloatArray

FORMAT = "toolscout-catalogue"
VERSION = 1
COUNTED = ("scope", "server", "tool", "switch", "pin", "vector")

_HASH_BYTES = 16
_PLACE = ("tenant", "owner")
_SCREENED = ("screened", "found")
_HINT = "export the catalogue again; nothing was imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveHeader:
    """How an archive begins: whose vectors it brings, "" when it has none."""

    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTool:
    """A tool with the stamp under which it was published."""

    tool: Tool
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedSwitch:
    """A decision by hand about one tool."""

    key: str
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedVector:
    """A vector under the hash of its text."""

    text_hash: str
    vector: FloatArray


ArchiveItem = ArchiveHeader | Scope | Server | ArchivedTool | ArchivedSwitch | Pin | ArchivedVector


def write_items(items: Iterable[ArchiveItem]) -> Iterator[bytes]:
    """Write items as lines; `write_end` has to follow them."""
    for item in items:
        yield _line(_write(item))


def write_end(counts: Mapping[str, int]) -> bytes:
    """Write the last line."""
    return _line({"kind": "end", **{kind: counts.get(kind, 0) for kind in COUNTED}})


def read_items(lines: Iterable[bytes], where: str) -> Iterator[ArchiveItem]:
    """Read items back, each checked against those before it; a bad line is named by its number."""
    reader = _Reader()
    number = 0
    for number, line in enumerate(lines, start=1):
        try:
            item = reader.read(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            reason = "it is no JSON" if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)) else str(error)
            raise InputFileError(f"{where}, line {number}: {reason}", hint=_HINT) from None
        if item is not None:
            yield item
    if not reader.ended:
        raise InputFileError(f"{where} ends after line {number}, before its last line", hint=_HINT)


def kind_of(item: ArchiveItem) -> str:
    """Name what an item is, as the last line counts it."""
    return _KINDS[type(item)]


_KINDS: Mapping[type[object], str] = {
    ArchiveHeader: "header",
    Scope: "scope",
    Server: "server",
    ArchivedTool: "tool",
    ArchivedSwitch: "switch",
    Pin: "pin",
    ArchivedVector: "vector",
}


def _write(item: ArchiveItem) -> dict[str, Any]:
    if isinstance(item, ArchiveHeader):
        return {"format": FORMAT, "version": VERSION, "model": item.model_id}
    if isinstance(item, ArchivedVector):
        data = base64.b64encode(item.vector.astype("<f2").tobytes()).decode()
        return {"kind": "vector", "text": item.text_hash, "f2": data}
    if isinstance(item, Server):
        return {"kind": "server", "key": item.key, "title": item.title, "trusted": item.trusted}
    if isinstance(item, ArchivedTool):
        told = {field.name: getattr(item.tool, field.name) for field in fields(Tool) if field.name not in _PLACE}
        return {"kind": "tool", "stamp": item.stamp, **told}
    if isinstance(item, Pin):
        return {"kind": "pin", **{name: value for name, value in asdict(item).items() if name not in _SCREENED}}
    return {"kind": kind_of(item), **asdict(item)}


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


class _Reader:
    """Knows what has come so far: the scope that the next rows belong to, its servers, keys and pins."""

    def __init__(self) -> None:
        self.ended = False
        self._header: ArchiveHeader | None = None
        self._scope: Scope | None = None
        self._scopes: set[Scope] = set()
        self._servers: set[str] = set()
        self._keys: set[str] = set()
        self._pins: set[str] = set()
        self._dimension = 0
        self._counts = dict.fromkeys(COUNTED, 0)

    def read(self, row: Any) -> ArchiveItem | None:
        if not isinstance(row, dict):
            raise TypeError("it is no JSON object")
        if self._header is None:
            self._header = _header(row)
            return self._header
        kind = row.get("kind")
        if self.ended:
            raise ValueError("it follows the last line")
        if kind == "end":
            self._end(row)
            return None
        if kind not in COUNTED:
            raise ValueError(f"it is of the unknown kind {str(kind)[:40]!r}")
        if self._scope is None and kind != "scope":
            raise ValueError(f"a {kind} comes before any scope")
        self._counts[kind] += 1
        readers: Mapping[str, Callable[[Mapping[str, Any]], ArchiveItem]] = {
            "scope": self._begin,
            "server": self._server,
            "tool": self._tool,
            "switch": self._switch,
            "pin": self._pin,
            "vector": self._vector,
        }
        return readers[kind](row)

    def _begin(self, row: Mapping[str, Any]) -> Scope:
        tenant, owner = _text(row, "tenant"), None if row.get("owner") is None else _text(row, "owner")
        if not tenant or owner == "" or (scope := Scope(tenant=tenant, owner=owner)) in self._scopes:
            raise ValueError("the scope has an empty name, or comes twice")
        self._scopes.add(scope)
        self._scope = scope
        self._servers, self._keys, self._pins = set(), set(), set()
        return scope

    def _server(self, row: Mapping[str, Any]) -> Server:
        server = Server(key=_text(row, "key"), title=_text(row, "title"), trusted=_flag(row, "trusted"))
        if not server.key or server.key in self._servers:
            raise ValueError("the server has no key, or comes twice")
        self._servers.add(server.key)
        return server

    def _tool(self, row: Mapping[str, Any]) -> ArchivedTool:
        assert self._scope is not None  # noqa: S101 - checked in `read`
        told = {field.name: _value(row, field) for field in fields(Tool) if field.name not in _PLACE}
        tool = Tool(**told, tenant=self._scope.tenant, owner=self._scope.owner)
        if tool.server not in self._servers:
            raise ValueError(f"the tool's server {tool.server!r} is not in its scope")
        if not tool.key.startswith(f"{tool.server}__") or tool.key in self._keys:
            raise ValueError("the tool's key does not begin with its server, or comes twice")
        if not tool.fingerprint:
            raise ValueError("the tool has no fingerprint")
        self._keys.add(tool.key)
        return ArchivedTool(tool=tool, stamp=_text(row, "stamp"))

    def _switch(self, row: Mapping[str, Any]) -> ArchivedSwitch:
        return ArchivedSwitch(key=_text(row, "key"), enabled=_flag(row, "enabled"))

    def _pin(self, row: Mapping[str, Any]) -> Pin:
        """Read a pin; what the screen found is not taken from a file: it looks again."""
        key, at, before = _text(row, "key"), row.get("at"), row.get("before")
        verdict: Any = row.get("verdict")
        if not key or key in self._pins:
            raise ValueError("the pin has no key, or comes twice")
        if verdict not in get_args(Verdict):
            raise ValueError(f"`verdict` is none of {', '.join(get_args(Verdict))}")
        if not isinstance(at, (int, float)) or isinstance(at, bool) or not isfinite(at):
            raise TypeError("`at` is no time")
        if before is not None and not isinstance(before, dict):
            raise TypeError("`before` is of the wrong kind")
        self._pins.add(key)
        return Pin(key=key, fingerprint=_text(row, "fingerprint"), verdict=verdict, at=at, before=before)

    def _vector(self, row: Mapping[str, Any]) -> ArchivedVector:
        import numpy as np

        text_hash = _text(row, "text")
        if len(bytes.fromhex(text_hash)) != _HASH_BYTES:
            raise ValueError("`text` is no hash of 16 bytes")
        if self._header is None or not self._header.model_id:
            raise ValueError("a vector comes, but the first line names no model")
        try:
            data = base64.b64decode(_text(row, "f2"), validate=True)
        except binascii.Error:
            raise ValueError("`f2` is no base64") from None
        if not data or len(data) % 2 or len(data) != (self._dimension or len(data)):
            raise ValueError("the vector has another length than those before it")
        self._dimension = len(data)
        vector = np.frombuffer(data, dtype="<f2").astype(np.float32)
        if not np.isfinite(vector).all():
            raise ValueError("the vector holds a number that is none")
        return ArchivedVector(text_hash=text_hash, vector=vector)

    def _end(self, row: Mapping[str, Any]) -> None:
        for kind, count in self._counts.items():
            if row.get(kind, 0) != count:
                raise ValueError(f"it counts {row.get(kind)} of the kind {kind}, but {count} came")
        self.ended = True


def _header(row: Mapping[str, Any]) -> ArchiveHeader:
    if row.get("format") != FORMAT:
        raise ValueError(f'it does not begin with {{"format": "{FORMAT}"}}')
    if row.get("version") != VERSION:
        raise ValueError(f"it is of version {row.get('version')}, this toolscout reads version {VERSION}")
    return ArchiveHeader(model_id=_text(row, "model"))


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is no text")
    return value


def _flag(row: Mapping[str, Any], name: str) -> bool:
    value = row.get(name)
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` is neither true nor false")
    return value


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "tuple[str, ...]": _texts,
    "tuple[Any, ...]": lambda value: isinstance(value, list),
    "Mapping[str, Any]": lambda value: isinstance(value, dict),
    "Mapping[str, Any] | None": lambda value: value is None or isinstance(value, dict),
}


def _value(row: Mapping[str, Any], field: Any) -> Any:
    """Read one field of a tool by the type that its class declares."""
    if field.name not in row:
        if field.default is not MISSING:
            return field.default
        if field.default_factory is not MISSING:
            return field.default_factory()
        raise ValueError(f"`{field.name}` is missing")
    value = row[field.name]
    if not _FITS[field.type](value):
        raise TypeError(f"`{field.name}` is of the wrong kind")
    return tuple(value) if isinstance(value, list) else value
