"""A real OpenAI-compatible embeddings endpoint on loopback that can misbehave in many ways."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from embedders import hash_vector


class Endpoint(ThreadingHTTPServer):
    """The server. `manner` says how it answers, and `seen` holds the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.manner = "well"
        self.seen: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.over = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def stop(self) -> None:
        self.over.set()
        self.shutdown()
        self._thread.join(60)
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """Ignore a client that disconnects: some tests do."""


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((dict(self.headers), body))
        manner = self.server.manner
        if manner in ("401", "429", "500"):
            self._send({"error": {"message": f"no: {self.headers.get('Authorization')}"}}, int(manner))
        elif manner == "hangs":
            self.server.over.wait(60)
            self.close_connection = True
        elif manner == "drips":
            self._drip()
        elif manner == "floods":
            self._flood()
        elif manner == "hangs up":
            self.close_connection = True
        elif manner == "babbles":
            self._write(b"<html>not JSON</html>", 200)
        else:
            self._send({"data": _spoilt(_rows(body), manner)}, 200)

    def _flood(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(10**12))
        self.end_headers()
        self.close_connection = True
        while not self.server.over.is_set():
            self.wfile.write(b" " * 65_536)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        for _ in range(3_000):
            if self.server.over.wait(0.02):
                break
            self.wfile.write(b" ")
            self.wfile.flush()
        self.close_connection = True

    def _send(self, value: Any, status: int) -> None:
        self._write(json.dumps(value).encode(), status)

    def _write(self, content: bytes, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _rows(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return vectors of length three, which a client has to normalize."""
    dimension = body.get("dimensions", 64)
    vectors = [(3 * hash_vector(text, dimension)).tolist() for text in body["input"]]
    return [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]


def _spoilt(rows: list[dict[str, Any]], manner: str) -> Any:
    if manner == "unordered":
        return rows[::-1]
    if manner == "one too few":
        return rows[:-1]
    if manner == "one twice":
        return [*rows[:-1], {**rows[-1], "index": 0}]
    if manner == "too short":
        return [{**row, "embedding": row["embedding"][:-1]} for row in rows]
    if manner == "of two lengths":
        return [{**rows[0], "embedding": rows[0]["embedding"][:-1]}, *rows[1:]]
    if manner == "not numbers":
        return [{**row, "embedding": ["x"] * 64} for row in rows]
    if manner == "not a list":
        return None
    return rows
