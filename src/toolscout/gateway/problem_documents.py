"""Errors as problem documents (RFC 9457). `error` in them is the error as every other surface of toolscout shows it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from toolscout.errors import to_wire

PROBLEM = "application/problem+json"


def problem_document(error: BaseException, status: int) -> dict[str, Any]:
    """Return the document of an error. One that toolscout did not raise itself shows no detail."""
    wire = to_wire(error)
    return {
        "type": f"urn:toolscout:error:{wire['error']['code']}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": wire["error"]["message"],
        **wire,
    }
