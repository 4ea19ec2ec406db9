"""Why a caller sees no tool at all. Only the command line says it: over the gateway it would reveal hidden tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolscout.models import Caller
    from toolscout.scout import Scout

EMPTY = (
    "The catalogue is empty. `toolscout import` finds your servers, `toolscout index --config F` indexes them. "
    "To try toolscout without servers, run `toolscout index --sample`."
)
HIDDEN = "This caller may not see any tool: `toolscout policy check KEY` shows why."


async def empty_catalogue_reason(scout: Scout, caller: Caller) -> str:
    """Return why the caller sees no tool and what to do about it, "" when they see one."""
    if (await scout.overview(caller=caller)).total:
        return ""
    return HIDDEN if await scout.access.has_servers(caller) else EMPTY
