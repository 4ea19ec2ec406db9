"""The check of arguments by a stranger's schema: in place if it is certainly cheap, else where it can be stopped."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import Any

from cachetools import LRUCache, cached

from toolscout.arguments import validate_apart, validate_arguments
from toolscout.errors import CallTimeoutError, CheckUnavailableError, InvalidArgumentsError
from toolscout.models import Caller, Tool
from toolscout.ports import Isolation, NoWorkerError, WorkStoppedError
from toolscout.schema_cost import SchemaCost, cost_of

CHECK_S = 2.0
"""How long the check of one call's arguments may take."""

SLICE_S = 0.5
"""How long it may take while other checks wait for its place."""


async def check_arguments(
    tool: Tool, arguments: Any, isolation: Isolation, *, caller: Caller, within_s: float
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments to send and the repairs that were made, or raise InvalidArgumentsError.

    All of it, the wait for other checks too, is done within the time of the call, or the call is not sent.
    """
    if _cost(tool).allows(arguments):
        return validate_arguments(tool, arguments)
    try:
        async with asyncio.timeout(within_s):
            result = await _check_apart(tool, arguments, isolation, caller)
    except TimeoutError:
        raise CallTimeoutError(
            f"the arguments of {tool.key} were not checked within {within_s:g} s; nothing was sent",
            hint="other checks were running; try again later, or send shorter arguments",
        ) from None
    except WorkStoppedError as error:
        raise InvalidArgumentsError(
            f"the arguments of {tool.key} cannot be checked by its schema: {error}",
            hint="send shorter arguments, or use another tool; nothing was sent",
        ) from None
    except NoWorkerError as error:
        raise CheckUnavailableError(
            f"the arguments of {tool.key} cannot be checked: {error}",
            hint="nothing was sent; the operator has to allow the gateway more processes and memory",
        ) from error
    if isinstance(result, InvalidArgumentsError):
        raise result
    return result


async def _check_apart(
    tool: Tool, arguments: Any, isolation: Isolation, caller: Caller
) -> tuple[dict[str, Any], tuple[str, ...]] | InvalidArgumentsError:
    definition = Tool(
        key=tool.key,
        id=tool.id,
        server=tool.server,
        server_title=tool.server_title,
        name=tool.name,
        input_schema=tool.input_schema,
        fingerprint=tool.fingerprint,
    )
    owner = ("calls", caller.tenant, caller.key or caller.user or "")
    result: tuple[dict[str, Any], tuple[str, ...]] | InvalidArgumentsError = await isolation.run(
        validate_apart, definition, arguments, owner=owner, timeout_s=CHECK_S, slice_s=SLICE_S
    )
    return result


def _cache_key(tool: Tool) -> tuple[str, str]:
    return tool.key, tool.fingerprint


@cached(LRUCache(4_096), key=_cache_key, lock=Lock())
def _cost(tool: Tool) -> SchemaCost:
    return cost_of(tool.input_schema)
