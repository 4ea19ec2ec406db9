"""What a server writes, cut into messages: a line that is too long fails its own call, garbage is skipped."""

from __future__ import annotations

import re
from typing import Any, Final

import pydantic_core
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

TOO_LONG: Final = -32091
"""The code of the error that stands in for an answer which was too long to read."""

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,64}")')
_EDGE = 512
_NEAR = 96
_FLOOD_LINES = 128


class LineReader:
    """Bytes in, JSON-RPC messages out; it never holds more than one line of the longest allowed."""

    def __init__(self, max_line_bytes: int) -> None:
        """Read lines of at most that many bytes."""
        self._max = max_line_bytes
        self._buffer = bytearray()
        self._scanned = 0
        self._head = b""
        self._tail = b""
        self._skipped = 0
        self.garbage = 0
        """How many lines were no JSON-RPC message."""

    @property
    def flooded(self) -> bool:
        """Whether a line is so long that it will hardly ever end."""
        return self._skipped > self._max * _FLOOD_LINES

    def feed(self, data: bytes) -> list[JSONRPCMessage]:
        """Take what was read and return the messages that are whole now."""
        buffer = self._buffer
        buffer += data
        found: list[JSONRPCMessage] = []
        while True:
            end = buffer.find(b"\n", self._scanned)
            if end < 0:
                self._scanned = len(buffer)
                if self._skipped or len(buffer) > self._max:
                    self._skip(bytes(buffer))
                    buffer.clear()
                    self._scanned = 0
                return found
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            self._scanned = 0
            if self._skipped or len(line) > self._max:
                self._skip(line)
                message = self._skipped_whole()
            else:
                message = self._message(line) if line.strip() else None
            if message is not None:
                found.append(message)

    def _message(self, line: bytes) -> JSONRPCMessage | None:
        try:
            # Bad UTF-8, bad JSON and nesting without end are all ValueErrors: one bad line never ends the session.
            value = pydantic_core.from_json(line)
            return _response(value) or jsonrpc_message_adapter.validate_python(value, by_name=False)
        except ValueError:
            self.garbage += 1
            return None

    def _skip(self, part: bytes) -> None:
        if not self._skipped:
            self._head = part[:_EDGE]
        self._skipped += len(part) or 1
        self._tail = (self._tail + part[-_EDGE:])[-_EDGE:]

    def _skipped_whole(self) -> JSONRPCMessage | None:
        """Answer the call whose answer was skipped: its id stands first (Python) or last (TypeScript)."""
        size, head, tail = self._skipped, self._head, self._tail
        self._skipped, self._head, self._tail = 0, b"", b""
        found = _ID.search(head[:_NEAR]) or next(reversed(list(_ID.finditer(tail[-_NEAR:]))), None)
        if found is None or b'"method"' in head[:_NEAR]:
            self.garbage += 1
            return None
        written = found[1]
        request = written[1:-1].decode("utf-8", "replace") if written[:1] == b'"' else int(written)
        message = f"the answer has {size} bytes; more than {self._max} are not read"
        return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=TOO_LONG, message=message))


def _response(value: Any) -> JSONRPCResponse | None:
    """Build the message that nearly every line is without validating what is passed on untouched anyway."""
    if (
        type(value) is dict
        and value.get("jsonrpc") == "2.0"
        and type(value.get("id")) in (int, str)
        and type(value.get("result")) is dict
        and "method" not in value
    ):
        return JSONRPCResponse.model_construct(jsonrpc="2.0", id=value["id"], result=value["result"])
    return None
