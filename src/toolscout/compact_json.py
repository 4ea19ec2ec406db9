"""Values and results of calls as compact JSON, and how many bytes that has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import pydantic_core

_PIECE_CHARS = 65_536


def byte_size(value: Any) -> int:
    """Count the bytes of a value as compact JSON."""
    return len(compact_json(value))


def compact_json(value: Any) -> bytes:
    """Write a value as compact JSON."""
    try:
        return pydantic_core.to_json(value, inf_nan_mode="null", serialize_unknown=True)
    except ValueError:  # for instance half of a surrogate pair, which the other writer is slower to write
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def result_size(result: Mapping[str, Any]) -> int:
    """Count the bytes of a result as compact JSON, without writing all of a long one at once."""
    return sum(map(len, _parts(result)))


def result_json(result: Mapping[str, Any]) -> bytes:
    """Write a result as compact JSON. Its long texts are written in pieces: at once takes three times their size."""
    buffer = BytesIO()
    buffer.writelines(_parts(result))
    return buffer.getvalue()


def _parts(result: Mapping[str, Any]) -> Iterator[bytes]:
    content = result.get("content")
    if not isinstance(content, list) or not any(_long_text(item) for item in content):
        yield compact_json(result)
        return
    others = {name: value for name, value in result.items() if name != "content"}
    yield compact_json({**others, "content": []}).removesuffix(b"]}")
    for number, item in enumerate(content):
        yield b"," if number else b""
        text = _long_text(item)
        if not text:
            yield compact_json(item)
            continue
        others = {name: value for name, value in item.items() if name != "text"}
        yield compact_json({**others, "text": ""}).removesuffix(b'"}')
        for at in range(0, len(text), _PIECE_CHARS):
            yield compact_json(text[at : at + _PIECE_CHARS])[1:-1]
        yield b'"}'
    yield b"]}"


def _long_text(item: Any) -> str:
    """Return the text of an item of content if it is long."""
    text = item.get("text") if isinstance(item, Mapping) else None
    return text if isinstance(text, str) and len(text) > _PIECE_CHARS else ""
