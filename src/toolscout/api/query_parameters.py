"""Unknown query parameters are refused, as unknown fields of a body are: a misspelt filter must not pass for none."""

from __future__ import annotations

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError


async def check_parameters(request: Request) -> None:
    """Raise RequestValidationError if the query has a parameter that the route does not have."""
    if not request.query_params:
        return
    known = _query_parameters(request.scope["route"].dependant)
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        message = f"there is no such parameter; this endpoint has {', '.join(sorted(known)) or 'none'}"
        raise RequestValidationError([{"loc": ("query", name), "msg": message} for name in unknown])


def _query_parameters(dependant: Dependant) -> set[str]:
    own = {field.alias for field in dependant.query_params}
    return own.union(*map(_query_parameters, dependant.dependencies))
