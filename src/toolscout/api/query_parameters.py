"""Unknown query parameters are refused, as unknown fields of a body are: a misspelt filter must not pass for none."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute


async def check_parameters(request: Request) -> None:
    """Raise RequestValidationError if the query has a parameter that the description of the route does not have."""
    if not request.query_params:
        return
    known = _described(request.app, request.scope["route"])
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        message = f"there is no such parameter; this endpoint has {', '.join(sorted(known)) or 'none'}"
        raise RequestValidationError([{"loc": ("query", name), "msg": message} for name in unknown])


def _described(app: FastAPI, route: APIRoute) -> set[str]:
    operations = (operation for path in app.openapi()["paths"].values() for operation in path.values())
    described = next(operation for operation in operations if operation["operationId"] == route.name)
    return {item["name"] for item in described.get("parameters", ()) if item["in"] == "query"}
