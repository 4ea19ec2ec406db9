"""The few pages that a person sees while signing in. They hold no script, load nothing, and cannot be framed."""

from __future__ import annotations

from html import escape

from starlette.responses import HTMLResponse

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
    "Referrer-Policy": "same-origin",  # with `no-referrer`, a browser would send a form without its Origin
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Toolscout</title>
<style>body{{font:1.1em system-ui,sans-serif;max-width:34em;margin:4em auto;padding:0 1em}}</style></head>
<body><h1>{title}</h1><p>{text}</p>{form}</body></html>
"""


def page(title: str, text: str, *, form: str = "", status: int = 200, retry_after_s: int = 0) -> HTMLResponse:
    """Return a page. Title and text are escaped, `form` is markup of our own. With `retry_after_s`, it is a 429."""
    body = _PAGE.format(title=escape(title), text=escape(text), form=form)
    if retry_after_s:
        return HTMLResponse(body, status_code=429, headers={**_HEADERS, "Retry-After": str(retry_after_s)})
    return HTMLResponse(body, status_code=status, headers=_HEADERS)
