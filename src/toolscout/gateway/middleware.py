"""A middleware of the SDK that sends results unchanged, and errors without internal details.

The SDK sends the result of a middleware without validating it, so fields that its models do not know survive. In
return, this middleware itself does the checks of the SDK's pipeline and adds the protocol fields.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, SERVER_INFO_META_KEY
from mcp_types.methods import validate_client_request

from toolscout.errors import ToolscoutError, UsageError, to_wire
from toolscout.gateway.client import Context, is_modern

_log = logging.getLogger("toolscout")

Handle = Callable[[Context, Mapping[str, Any]], Awaitable[dict[str, Any]]]

_LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list"})


class ResultMiddleware:
    """Answers the methods that it has a handler for. The SDK handles all others."""

    def __init__(self, handlers: Mapping[str, Handle], *, server_info: Mapping[str, Any], list_ttl_ms: int) -> None:
        """Take the handlers by method, and the values of the protocol fields."""
        self._handlers = handlers
        self._server_info = dict(server_info)
        self._list_ttl_ms = list_ttl_ms

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Check the request, handle it, and add the fields of its protocol version."""
        handle = self._handlers.get(ctx.method)
        if handle is None or ctx.request_id is None:
            return await call_next(ctx)
        if not is_modern(ctx) and ctx.session.client_params is None:
            raise MCPError(code=INVALID_PARAMS, message="Invalid request parameters", data="not initialized")
        try:
            validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        except KeyError:
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=ctx.method) from None
        try:
            result = await handle(ctx, ctx.params or {})
        except MCPError:
            raise
        except ToolscoutError as error:
            raise to_protocol_error(error) from error
        except Exception as error:  # noqa: BLE001 - clients must not see the details of a bug
            _log.exception("%s failed", ctx.method)
            raise to_protocol_error(error) from None
        return self._with_protocol_fields(ctx, result)

    def _with_protocol_fields(self, context: Context, result: dict[str, Any]) -> dict[str, Any]:
        if not is_modern(context):
            if result.get("resultType") == "input_required":
                raise MCPError(
                    code=INTERNAL_ERROR,
                    message=f"the server needs input for {context.method}, but this protocol version has no way to ask",
                )
            return {name: value for name, value in result.items() if name != "resultType"}
        result.setdefault("resultType", "complete")
        if context.method in _LISTS and result["resultType"] == "complete":
            result.setdefault("ttlMs", self._list_ttl_ms if context.method == "tools/list" else 0)
            result.setdefault("cacheScope", "private")
            meta = result.get("_meta") or {}
            if meta.get(SERVER_INFO_META_KEY) is None:
                result["_meta"] = {**meta, SERVER_INFO_META_KEY: self._server_info}
        return result


def to_protocol_error(error: BaseException) -> MCPError:
    """Turn an error into a protocol error. A server's own code is kept, an unexpected exception shows no detail."""
    body = to_wire(error)["error"]
    code = body.get("details", {}).get("code")
    if isinstance(code, int):
        return MCPError(code=code, message=body["message"], data=body["details"].get("data"))
    return MCPError(
        code=INVALID_PARAMS if isinstance(error, UsageError) else INTERNAL_ERROR, message=body["message"], data=body
    )
