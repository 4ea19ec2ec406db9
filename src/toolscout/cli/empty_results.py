"""Why someone sees no tool at all, for the person at the terminal: over the gateway this would tell what is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolscout.models import Caller
    from toolscout.scout import Scout

EMPTY = (
    "The catalogue is empty. `toolscout import` finds your servers, `toolscout index --config F` indexes them; "
    "`toolscout index --sample` is for a try."
)
HIDDEN = "This caller may see none of the tools: `toolscout policy check KEY` says why."


async def why_nothing(scout: Scout, caller: Caller) -> str:
    """Say why the caller sees no tool and what to type; nothing where they see one."""
    if (await scout.overview(caller=caller)).total:
        return ""
    return HIDDEN if await scout.access.has_servers(caller) else EMPTY
