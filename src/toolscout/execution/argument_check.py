"""The check of arguments by a stranger's schema: in place if it is certainly cheap, else where it can be stopped."""

from __future__ import annotations

from threading import Lock
from typing import Any

from cachetools import LRUCache, cached

from toolscout.arguments import validate_apart, validate_arguments
from toolscout.errors import InvalidArgumentsError
from toolscout.models import Tool
from toolscout.ports import Isolation, WorkStoppedError
from toolscout.schema_cost import SchemaCost, cost_of

CHECK_S = 2.0
"""How long the check of one call's arguments may take."""


async def check_arguments(tool: Tool, arguments: Any, isolation: Isolation) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments to send and the repairs that were made, or raise InvalidArgumentsError."""
    if _cost(tool).allows(arguments):
        return validate_arguments(tool, arguments)
    definition = Tool(
        key=tool.key,
        id=tool.id,
        server=tool.server,
        server_title=tool.server_title,
        name=tool.name,
        input_schema=tool.input_schema,
        fingerprint=tool.fingerprint,
    )
    try:
        result = await isolation.run(validate_apart, definition, arguments, owner=tool.server, timeout_s=CHECK_S)
    except WorkStoppedError:
        raise InvalidArgumentsError(
            f"the arguments of {tool.key} cannot be checked: its schema takes longer than {CHECK_S:g} s",
            hint="send shorter arguments, or use another tool; nothing was sent",
        ) from None
    if isinstance(result, InvalidArgumentsError):
        raise result
    checked, repairs = result
    return checked, repairs


def _cache_key(tool: Tool) -> tuple[str, str]:
    return tool.key, tool.fingerprint


@cached(LRUCache(4_096), key=_cache_key, lock=Lock())
def _cost(tool: Tool) -> SchemaCost:
    return cost_of(tool.input_schema)
