"""Every error of the REST API as a problem document (RFC 9457), with its status and headers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscout.errors import (
    AuditError,
    AuthError,
    CallError,
    CallTimeoutError,
    CheckUnavailableError,
    ConfigError,
    ConflictError,
    DefinitionChangedError,
    EmbedderError,
    ForbiddenError,
    InvalidArgumentsError,
    InvalidValueError,
    LimitError,
    NotAllowedError,
    NotReadOnlyError,
    ServerUnavailableError,
    SignInRequiredError,
    StoreError,
    ToolNotFoundError,
    ToolscoutError,
    UnknownServerError,
    UsageError,
)
from toolscout.gateway.problem_documents import PROBLEM, problem_document

STATUS: Mapping[type[ToolscoutError], int] = {
    UsageError: 400,
    ConfigError: 422,
    AuthError: 401,
    ForbiddenError: 403,
    ConflictError: 409,
    ToolNotFoundError: 404,
    InvalidArgumentsError: 422,
    NotReadOnlyError: 403,
    NotAllowedError: 403,
    DefinitionChangedError: 409,
    LimitError: 429,
    AuditError: 503,
    CheckUnavailableError: 503,
    SignInRequiredError: 424,
    ServerUnavailableError: 503,
    CallTimeoutError: 504,
    CallError: 502,
    EmbedderError: 503,
    StoreError: 503,
}
"""The status of each error. One that is not listed has the status of its parent class."""

_REFUSALS: Mapping[int, ToolscoutError] = {
    400: AuthError("the request has two Authorization headers", hint="send one"),
    401: AuthError("no valid key or token was sent", hint="send `Authorization: Bearer` with an API key or a token"),
    403: ForbiddenError("the key or token lacks a scope that this gateway requires", hint="ask the operator for it"),
    429: LimitError("too many requests without a valid key or token came from this address", hint="see Retry-After"),
    503: StoreError("keys cannot be looked up now", hint="try again in a second"),
}
_NOT_FOUND = 404
_MOST_PROBLEMS = 5
_WRONG_REQUEST = "see the description of this API: /api/v1/openapi.json"


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def problem(error: BaseException, status: int | None = None) -> Response:
    """Write an error. An error that toolscout did not raise itself shows no detail."""
    status = status or status_of(error)
    body = json.dumps(problem_document(error, status), ensure_ascii=False)
    return Response(body, status_code=status, media_type=PROBLEM, headers=_headers(error, status))


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every error of an application with a problem document."""

    async def known(request: Request, error: Exception) -> Response:
        named_by_path = isinstance(error, UnknownServerError) and "key" in request.path_params
        return problem(error, _NOT_FOUND if named_by_path else None)

    async def wrong_request(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
        return problem(InvalidValueError(_describe(error), hint=_WRONG_REQUEST), status=422)

    async def wrong_path(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
        refused = problem(InvalidValueError(f"{error.detail}", hint=_WRONG_REQUEST), status=error.status_code)
        refused.headers.update(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            refused.headers["Allow"] = ", ".join(sorted(_methods_of(app, request)))
        return refused

    app.add_exception_handler(ToolscoutError, known)
    app.add_exception_handler(RequestValidationError, wrong_request)
    app.add_exception_handler(HTTPException, wrong_path)
    app.add_exception_handler(Exception, known)


class RefusalProblems:
    """Middleware that makes problem documents of what authentication and its limits refuse before the API is asked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        document: bytes | None = None

        async def send_problem(message: Message) -> None:
            nonlocal document
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                if message["status"] in _REFUSALS and headers.get("content-type", "").startswith("application/json"):
                    document = bytes(problem(_REFUSALS[message["status"]], message["status"]).body)
                    headers["content-type"], headers["content-length"] = PROBLEM, str(len(document))
            elif document is not None:
                message = {**message, "body": document if not message.get("more_body") else b""}
            await send(message)

        await self._app(scope, receive, send_problem)


def _methods_of(app: FastAPI, request: Request) -> set[str]:
    """Return the methods of a path. Starlette names those of its first route alone."""
    described, path = app.openapi()["paths"], request.scope["path"]
    match = path if path in described else next((item for item in described if _pattern(item).fullmatch(path)), None)
    return {method.upper() for method in described[match]} if match else set()


def _pattern(path: str) -> re.Pattern[str]:
    """Return the pattern of a path of the description."""
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))


def _headers(error: BaseException, status: int) -> dict[str, str]:
    details: Mapping[str, Any] = error.details if isinstance(error, ToolscoutError) else {}
    if "retry_after_s" in details:
        return {"Retry-After": str(details["retry_after_s"])}
    return {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


def _describe(error: RequestValidationError) -> str:
    """Name the places of wrong values, never the values."""
    problems = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:_MOST_PROBLEMS]]
    return "; ".join(problems)
