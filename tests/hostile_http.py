"""An MCP server over HTTP that attacks the gateway with streams: `python hostile_http.py ATTACK PORT SIGN`. No SDK.

Streams have no end, and are written as fast as they are read. It creates the file SIGN when the attack begins.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def event(**message: Any) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


ANNOUNCEMENTS = {
    "stream_of_pings": event(id=7, method="ping") * 500,
    "stream_of_garbage": b"event: \x1b[31mx\ndata: x\n\n" * 2_000,
}
"""What is sent without end on the stream of announcements."""

DENSE = {"tools": [{"name": "dense", "_meta": {"x": [[]] * 120_000}}]}


class Connection:
    """One connection, which serves one request after the other."""

    def __init__(self, attack: str, sign: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._attack = attack
        self._sign = sign
        self._reader = reader
        self._writer = writer

    async def serve(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(part.lower().split(": ", 1) for part in head.split("\r\n")[1:] if ": " in part)
                body = await self._reader.readexactly(int(fields.get("content-length", 0)))
                await (self._post(json.loads(body)) if head.startswith("POST") else self._other(head))
        self._writer.close()

    async def _other(self, head: str) -> None:
        if head.startswith("GET /mcp") and self._attack in ANNOUNCEMENTS:
            await self._pour(200, ANNOUNCEMENTS[self._attack])
        elif head.startswith("GET /mcp") and self._attack == "stream_that_ends":
            self._sign.touch()
            self._writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            self._writer.write(b"retry: 0\n\n")
            await self._writer.drain()
            raise ConnectionError
        elif "/.well-known/" in head and self._attack == "endless_metadata":
            await self._pour(200, b'"x' + b"x" * 65_536 + b'": "y",', kind="application/json")
        else:
            await self._reply(405, b"")

    async def _post(self, message: Mapping[str, Any]) -> None:
        method = message.get("method")
        if self._attack == "endless_metadata":
            await self._reply(401, b"", 'WWW-Authenticate: Bearer scope="all"')
            return
        result: dict[str, Any] = {}
        if method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "hostile", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
        elif method == "tools/list":
            if self._attack == "endless_error":
                await self._pour(500, b"data: x\n\n" * 8_000)
            if self._attack == "dense_list":
                self._sign.touch()
                result = DENSE
            else:
                result = {"tools": [{"name": "echo"}]}
        if message.get("id") is None or method is None:
            await self._reply(202, b"")
        else:
            await self._reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    async def _reply(self, status: int, data: bytes, field: str = "Mcp-Session-Id: a") -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{field}\r\nContent-Length: {len(data)}"
        self._writer.write(head.encode() + b"\r\n\r\n" + data)
        await self._writer.drain()

    async def _pour(self, status: int, block: bytes, kind: str = "text/event-stream") -> None:
        self._sign.touch()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n"
        self._writer.write(head.encode())
        while True:
            self._writer.write(block)
            await self._writer.drain()


async def main() -> None:
    """Serve until the process is ended."""
    attack, port, sign = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(attack, sign, reader, writer).serve()

    async with await asyncio.start_server(serve, "127.0.0.1", port, limit=1 << 24) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
