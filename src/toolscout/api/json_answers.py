"""Answers as JSON: plain, with an ETag, and lists page by page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol

import pydantic_core
from fastapi import Query, Request
from starlette.responses import Response

from toolscout.models import Pagination

Page = Annotated[int, Query(ge=1, le=1_000_000)]
PageSize = Annotated[int, Query(ge=1, le=1_000)]

_NOT_MODIFIED = 304
_TIMES = ("took_ms",)


class JsonRow(Protocol):
    """A value that is written as one row of a list."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON."""


def json_answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Write a body as JSON."""
    return Response(_to_json(body), status, headers, "application/json")


def tagged_answer(request: Request, body: dict[str, Any]) -> Response:
    """Write a body with an ETag, or 304 if the client has it already. How long it took to make does not count."""
    digest = hashlib.sha256(_to_json(_without_times(body))).hexdigest()[:32]
    tag = f'"{digest}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
    given = {item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(",")}
    if tag in given or "*" in given:
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return json_answer(body, headers=headers)


def page_answer(
    request: Request, name: str, rows: Sequence[JsonRow | dict[str, Any]], page: int, page_size: int, **more: Any
) -> Response:
    """Write one page of a list, with an ETag. A page past the end is empty."""
    pagination = Pagination(page=page, page_size=page_size, total_tools=len(rows)).to_dict()
    pagination["total"] = pagination.pop("total_tools")
    start = (page - 1) * page_size
    shown = [row if isinstance(row, dict) else row.to_dict() for row in rows[start : start + page_size]]
    return tagged_answer(request, {name: shown, "pagination": pagination, **more})


def _to_json(body: Any) -> bytes:
    try:
        return pydantic_core.to_json(body, inf_nan_mode="null")
    except ValueError:  # for instance half of a surrogate pair
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _without_times(body: dict[str, Any]) -> dict[str, Any]:
    if isinstance(body.get("metadata"), dict):
        metadata = {name: value for name, value in body["metadata"].items() if name not in _TIMES}
        return {**body, "metadata": metadata}
    return body
