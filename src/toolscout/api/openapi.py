"""The description of the API (OpenAPI 3.1), completed with what FastAPI does not know: errors, headers, sign-in."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from toolscout.api.response_bodies import Problem
from toolscout.api.writes import LONGEST_KEY
from toolscout.gateway.problem_documents import PROBLEM

_WRITES = ("post", "put", "delete")
_NOT_WRITTEN = frozenset({"search", "discover", "explain", "search_semantic", "evaluate"})
_COMMON = {
    400: "The request is wrong, for instance an unknown tag",
    401: "No valid key or token was sent",
    403: "The caller may not do this",
    422: "A parameter or a part of the body is missing or wrong",
    429: "A limit is reached. `Retry-After` says when to try again",
    404: "There is no such thing, or not for this caller",
    503: "The catalogue, the embedder or the server cannot be reached now",
}
_WRITTEN = {409: "It contradicts what is there; nothing was done", 413: "The body is too large"}
_CALLED = {
    424: "Somebody has to sign in to the server first; nothing was sent",
    502: "The server answered with an error",
    504: "The deadline passed; the call was sent and is not sent again",
}


def complete_description(app: FastAPI) -> None:
    """Complete the description that an application serves."""
    generated = app.openapi

    def completed() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generated()
            _add_schemas(document)
            for path, operations in document["paths"].items():
                for method, operation in operations.items():
                    _complete_operation(path, method, operation)
        assert app.openapi_schema is not None  # noqa: S101 - `generated` sets it
        return app.openapi_schema

    app.openapi = completed  # type: ignore[method-assign]


def _add_schemas(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    model = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= model.pop("$defs")
    schemas["Problem"] = model
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or an access token of the issuer"}
    }
    document["security"] = [{"bearer": []}, {}]


def _complete_operation(path: str, method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    errors = dict(_COMMON)
    if method in _WRITES:
        errors |= _WRITTEN
    if path.endswith("/call"):
        errors |= _CALLED
    for status, description in errors.items():
        content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses[str(status)] = {"description": description, "content": content}
    responses["429"]["headers"] = {"Retry-After": _header("In how many seconds to try again", "integer")}
    if method in _WRITES and operation["operationId"] not in _NOT_WRITTEN:
        operation.setdefault("parameters", []).append(
            _parameter("Idempotency-Key", "Makes it safe to send the request again: it is done once", LONGEST_KEY)
        )
    if "304" in responses:
        operation.setdefault("parameters", []).append(
            _parameter("If-None-Match", "The ETag of an answer that the client has")
        )
        responses["200"]["headers"] = {"ETag": _header("Changes when the content does", "string")}


def _parameter(name: str, description: str, longest: int | None = None) -> dict[str, Any]:
    schema = {"type": "string", **({"minLength": 1, "maxLength": longest} if longest else {})}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _header(description: str, kind: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}}
