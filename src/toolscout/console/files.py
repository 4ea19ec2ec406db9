"""The static files of the console. They are read once, and the browser may keep each version of them for ever.

The content security policy allows nothing inline and nothing from elsewhere. `require-trusted-types-for` makes the
browser refuse to turn text into markup or code, so that a tool's description can be nothing but text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_INDEX = "index.html"
_MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".md": "text/plain",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
_FOR_EVER = "public, max-age=31536000, immutable"


class ConsoleFiles:
    """Serves the page at `/`, and the other files under an address that changes with their content."""

    def __init__(self) -> None:
        contents = dict(_read(files("toolscout.console") / "static"))
        digest = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:16]
        page = contents.pop(_INDEX).decode()
        base = f"/console/files/{digest}"
        modules = sorted(path for path in contents if path.endswith((".js", ".mjs")))
        preloads = "\n".join(f'<link rel="modulepreload" href="{base}/{path}">' for path in modules)
        self._page = page.replace("BASE", base).replace("<!-- modules -->", preloads).encode()
        self._files = {f"{digest}/{path}": content for path, content in contents.items()}

    def routes(self) -> list[Route]:
        """Return the routes of all files."""
        return [
            Route("/", self._index, methods=["GET"]),
            Route("/console/files/{path:path}", self._file, methods=["GET"]),
        ]

    async def _index(self, _request: Request) -> Response:
        return Response(self._page, headers={**SECURITY_HEADERS, "Cache-Control": "no-cache"}, media_type="text/html")

    async def _file(self, request: Request) -> Response:
        path = str(request.path_params["path"])
        content = self._files.get(path)
        if content is None:
            return Response("There is no such file.", 404, SECURITY_HEADERS, "text/plain")
        media_type = _MEDIA_TYPES.get(path[path.rfind(".") :], "text/plain")
        return Response(content, headers={**SECURITY_HEADERS, "Cache-Control": _FOR_EVER}, media_type=media_type)


def _read(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _read(item, f"{prefix}{item.name}/")
        else:
            yield prefix + item.name, item.read_bytes()
