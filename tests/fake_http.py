"""An MCP server over HTTP that misbehaves on request and records every request with its headers. No SDK."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class FakeHttp(ThreadingHTTPServer):
    """Listens on a local port. `seen` holds (method, path, headers, body) of every request."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    """Connections made at once wait here. With the default of 5, the kernel drops some of them on a busy machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.connections = 0
        self.token: str | None = None
        """The bearer token that /mcp requires."""
        self.elsewhere: dict[str, str] = {}
        """Other origins that its OAuth "metadata", token "endpoint", "issuer" or "resource" are said to be at."""
        self.expires_in: Any = 3600
        """How long its tokens live, as it says."""
        self.endless: str | None = None
        """Where bodies never end and call themselves events: "errors", "metadata" or "token"."""
        self.sent_bytes = 0
        self.stopping = threading.Event()
        self.ended = threading.Event()
        """Whether a stream that never ends by itself was given up by its reader."""
        self.sessions = True
        self.forget = False

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)

    @property
    def origin(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def calls(self, name: str) -> list[dict[str, str]]:
        """Return the headers of all calls of a tool."""
        calls = [item for item in self.seen if isinstance(item[3], dict) and item[3].get("method") == "tools/call"]
        return [headers for _, _, headers, body in calls if body["params"]["name"] == name]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeHttp

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, status: int, body: Any = b"", kind: str = "application/json", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        with suppress(ConnectionError):  # the client has left
            self.wfile.write(data)

    def pour(self, status: int) -> None:
        """Send events without end."""
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            while self.server.sent_bytes < 256 << 20:
                self.server.sent_bytes += self.wfile.write(b"data: x\n\n" * 8_192)

    def note(self, body: Any = None) -> None:
        self.server.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))

    def do_GET(self) -> None:
        self.note()
        if self.path.startswith("/.well-known/") and self.server.endless == "metadata":
            self.pour(200)
        elif self.path == "/.well-known/oauth-protected-resource":
            issuer = self.server.elsewhere.get("metadata", self.server.origin)
            resource = self.server.elsewhere.get("resource", self.server.origin)
            meta = {"resource": f"{resource}/mcp", "authorization_servers": [issuer]}
            self.reply(200, meta)
        elif self.path == "/.well-known/oauth-authorization-server":
            endpoint = self.server.elsewhere.get("endpoint", self.server.origin)
            issuer = self.server.elsewhere.get("issuer", self.server.origin)
            self.reply(200, {"issuer": issuer, "token_endpoint": f"{endpoint}/token"})
        else:
            self.reply(405)

    def do_DELETE(self) -> None:
        self.note()
        self.reply(200)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/token":
            self.note(parse_qs(raw.decode()))
            if self.server.endless == "token":
                self.pour(200)
                return
            answer = {"access_token": self.server.token, "token_type": "Bearer", "expires_in": self.server.expires_in}
            self.reply(200, answer)
            return
        if urlsplit(self.path).path != "/mcp":
            self.note()
            self.reply(404)
            return
        message = json.loads(raw)
        self.note(message)
        if self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            where = f"{self.server.origin}/.well-known/oauth-protected-resource"
            self.reply(401, WWW_Authenticate=f'Bearer resource_metadata="{where}"')
        elif self.server.forget and self.headers.get("mcp-session-id"):
            self.reply(404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}})
        else:
            self.handle_message(message)

    def handle_message(self, message: dict[str, Any]) -> None:
        request, method = message.get("id"), message.get("method")
        if request is None:
            self.reply(202)
        elif method == "initialize":
            self.server.forget = False
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "f"}}
            more = {"Mcp_Session_Id": str(time.monotonic_ns())} if self.server.sessions else {}
            self.reply(200, {"jsonrpc": "2.0", "id": request, "result": result}, **more)
        elif method == "tools/list":
            self.reply(200, {"jsonrpc": "2.0", "id": request, "result": {"tools": [{"name": "echo"}]}})
        elif method == "tools/call":
            self.call(request, message["params"]["name"], message["params"].get("arguments") or {})
        else:
            self.reply(200, {"jsonrpc": "2.0", "id": request, "error": {"code": -32601, "message": "no"}})

    def call(self, request: Any, name: str, arguments: dict[str, Any]) -> None:
        answer = {"jsonrpc": "2.0", "id": request, "result": {"content": [{"type": "text", "text": "ok"}]}}
        if name == "echo":
            answer["result"] = {"content": [{"type": "text", "text": arguments.get("text", "ok")}]}
            self.reply(200, answer)
        elif name == "error_32000":
            error = {"jsonrpc": "2.0", "id": request, "error": {"code": -32000, "message": arguments["text"]}}
            events = b"data: " + json.dumps(error).encode() + b"\n\n"
            self.reply(200, *((events, "text/event-stream") if arguments.get("events") else (error,)))
        elif name == "hang":
            self.server.stopping.wait(arguments.get("seconds", 30))
        elif name == "drop":
            self.close_connection = True
        elif name == "half":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b'{"jsonrpc"')
            self.close_connection = True
        elif name == "half_events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b": hello\n\n")
            self.close_connection = True
        elif name == "huge":
            self.send_response(200)
            self.send_header("Content-Type", arguments["kind"])
            self.end_headers()
            self.close_connection = True
            self.wfile.write(b"data: " if "event" in arguments["kind"] else b'"')
            part = b"x" * (1 << 20)
            for _ in range(arguments["bytes"] >> 20):
                self.wfile.write(part)
        elif name == "endless_error":
            self.pour(500)
        elif name == "endless_comments":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.close_connection = True
            with suppress(OSError):
                if arguments.get("resumable"):
                    self.wfile.write(b"id: 7\nretry: 1\ndata:\n\n")
                while not self.server.stopping.wait(0.02):
                    self.wfile.write(b": still here\n\n")
            self.server.ended.set()
        elif name == "compressed":
            self.reply(200, gzip.compress(json.dumps(answer).encode()), Content_Encoding="gzip")
        elif name == "status":
            self.reply(arguments["status"], b"<html>sorry</html>", "text/html")
        elif name == "redirect":
            self.reply(arguments.get("status", 307), b"", Location=arguments["to"])
        elif name == "forget":
            self.server.forget = True
            self.reply(200, answer)
        else:
            self.reply(200, b"not json at all")


@contextmanager
def fake_http() -> Iterator[FakeHttp]:
    """Run the server while the block runs."""
    server = FakeHttp()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
