"""Turn a raw definition into a Tool: check its size, normalize its Unicode, and compute its fingerprint."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from toolscout.errors import BadToolError
from toolscout.indexing.taxonomy import load_taxonomy
from toolscout.models import Server, Tool
from toolscout.settings import Settings
from toolscout.tool_keys import tool_key

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MAX_VALUES = 50_000
_MAX_REST_BYTES = 131_072
_MAX_TITLE_CHARS = 1_024
_MAX_INTEGER_BITS = 10_000
_TAG_KEYS = ("tags", "io.modelcontextprotocol/tags", "_fastmcp", "fastmcp")


_KEPT = frozenset(
    "name title description input_schema inputSchema parameters output_schema outputSchema annotations _meta category "
    "tags keywords capabilities examples related id enabled server".split()
)


def not_kept(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a raw definition that no Tool holds, such as its icons."""
    return {str(field): value for field, value in raw.items() if field not in _KEPT}


def normalize_tool(
    raw: Mapping[str, Any], server: Server, settings: Settings, *, owner: str | None = None, live: bool = False
) -> Tool:
    """Check and normalize one raw definition. Raise BadToolError with the reason if it cannot be indexed.

    The definition of a `live` server comes from a stranger, that of rows and of a registry from the operator.
    """
    if not isinstance(raw, Mapping):
        raise BadToolError(f"a tool must be an object, not {type(raw).__name__}")
    _check_values(raw, settings)
    clean = _to_nfc(raw)
    canonical = canonical_json(clean)
    if not _is_encodable(canonical):
        clean = json.loads(canonical.encode("utf-8", "replace"))
    name = _text(clean, "name").strip()
    _check_name(name, settings)
    description = _printable(_text(clean, "description")).strip()
    if len(description) > settings.max_description_chars:
        raise BadToolError(
            f"its description has {len(description):,} characters, over {settings.max_description_chars:,}"
        )
    input_schema, input_bytes = _schema(clean, ("input_schema", "inputSchema", "parameters"), settings)
    output_schema, output_bytes = _schema(clean, ("output_schema", "outputSchema"), settings)
    _check_rest(_byte_size(canonical) - input_bytes - output_bytes, settings)
    annotations = _mapping(clean, "annotations")
    title = _printable(_text(clean, "title")).strip() or str(annotations.get("title") or "")
    if len(title) > _MAX_TITLE_CHARS:
        raise BadToolError(f"its title has {len(title):,} characters, over {_MAX_TITLE_CHARS:,}")
    category = _printable(_text(clean, "category")).strip()
    if (live or not server.trusted) and category not in load_taxonomy().categories:
        # The descriptions of the gateway's own tools name all categories, and there no stranger may speak.
        category = ""
    meta = _mapping(clean, "_meta")
    overlay, tool_overlay = server.overlay, server.tool_overlay(name)
    key = tool_key(server.key, name)
    return Tool(
        key=key,
        id=str(clean.get("id") or key),
        server=server.key,
        server_title=server.title,
        name=name,
        title=title,
        description=tool_overlay.description or description,
        input_schema=input_schema or {},
        output_schema=output_schema,
        annotations=annotations,
        meta=meta,
        category=tool_overlay.category or overlay.category or category,
        tags=_merged(_words(clean.get("tags")), _meta_tags(meta), overlay.tags, tool_overlay.tags),
        keywords=_merged(_words(clean.get("keywords")), overlay.keywords, tool_overlay.keywords),
        capabilities=_words(clean.get("capabilities")),
        examples=tool_overlay.examples or _examples(clean.get("examples")),
        related=_merged(_words(clean.get("related")), overlay.related, tool_overlay.related),
        fingerprint=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(),
        owner=owner,
        enabled=_first(tool_overlay.enabled, overlay.enabled, clean.get("enabled") is not False),
        trusted=_first(tool_overlay.trusted, overlay.trusted, server.trusted),
    )


def canonical_json(value: Any) -> str:
    """Write JSON so that equal values give equal texts: sorted keys, no spaces, no escapes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _check_values(raw: Mapping[str, Any], settings: Settings) -> None:
    """Check size, depth and numbers without recursion, so that the recursive steps after it are safe."""
    limit = settings.max_schema_depth + 4
    for count, (depth, value) in enumerate(_levels(raw)):
        if count > _MAX_VALUES:
            raise BadToolError(f"it holds more than {_MAX_VALUES:,} values")
        if depth > limit:
            raise BadToolError(f"it is nested deeper than {settings.max_schema_depth} levels")
        if isinstance(value, float) and not math.isfinite(value):
            raise BadToolError(f"it holds {value}, which JSON does not have")
        if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
            raise BadToolError("it holds a whole number of thousands of digits")


def _levels(value: Any) -> Iterator[tuple[int, Any]]:
    """Yield all nested values with their depth, without recursion. The caller stops at its limits."""
    stack = [(0, value)]
    while stack:
        depth, item = stack.pop()
        yield depth, item
        if isinstance(item, Mapping):
            stack.extend((depth + 1, child) for child in item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend((depth + 1, child) for child in item)


def _to_nfc(value: Any) -> Any:
    """Normalize every string to Unicode NFC."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        return {_to_nfc(str(key)): _to_nfc(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_nfc(child) for child in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise BadToolError(f"it holds a {type(value).__name__}, which is not JSON")


def _check_name(name: str, settings: Settings) -> None:
    if not name:
        raise BadToolError("it has no name")
    if len(name) > settings.max_name_chars:
        raise BadToolError(f"its name has {len(name):,} characters, over {settings.max_name_chars}")
    if _CONTROL.search(name):
        raise BadToolError("its name holds control characters")


def _text(raw: Mapping[str, Any], field: str) -> str:
    value = raw.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadToolError(f"its {field} must be text, not {type(value).__name__}")
    return value


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text)


def _is_encodable(text: str) -> bool:
    """Tell whether UTF-8 can encode a text. A lone surrogate counts in the fingerprint, then becomes `?`."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _mapping(raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = raw.get(field)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadToolError(f"its {field} must be an object, not {type(value).__name__}")
    return value


def _byte_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _check_rest(size: int, settings: Settings) -> None:
    """Bound what is neither schema nor description: titles, annotations, `_meta`, examples, tags and unknown fields."""
    limit = _MAX_REST_BYTES + 4 * settings.max_description_chars
    if size > limit:
        raise BadToolError(f"it has {size:,} bytes beside its schemas, over {limit:,}")


def _schema(raw: Mapping[str, Any], names: tuple[str, ...], settings: Settings) -> tuple[Mapping[str, Any] | None, int]:
    """Return a schema and its size."""
    field = next((name for name in names if raw.get(name) is not None), None)
    if field is None:
        return None, 0
    schema = _mapping(raw, field)
    size = _byte_size(canonical_json(schema))
    if size > settings.max_schema_bytes:
        raise BadToolError(f"its {field} has {size:,} bytes, over {settings.max_schema_bytes:,}")
    depth = max(level for level, _ in _levels(schema))
    if depth > settings.max_schema_depth:
        raise BadToolError(f"its {field} is nested {depth} levels deep, over {settings.max_schema_depth}")
    return schema, size


def _words(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise BadToolError("its tags, keywords, capabilities and related must be lists of text")
    return tuple(item.strip() for item in value if item.strip())


def _meta_tags(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Read tags from where servers put them: `_meta.tags`, or `tags` in the object of a vendor."""
    tags: list[str] = []
    for key in _TAG_KEYS:
        value = meta.get(key)
        value = value.get("tags") if isinstance(value, Mapping) else value
        if isinstance(value, (list, tuple)):
            tags.extend(item.strip() for item in value if isinstance(item, str) and item.strip())
    return tuple(tags)


def _examples(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _merged(*groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def _first(*values: bool | None) -> bool:
    return next(value for value in values if value is not None)
