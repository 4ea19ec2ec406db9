"""The one predicate: search, details, related, suggestions, counts and calls all ask it, and only it."""

from __future__ import annotations

from toolscout.models import Caller, Facets


def may_see(caller: Caller, tool: Facets) -> bool:
    """Decide whether the caller may see the tool: same tenant, everyone's or their own, in reach, and switched on."""
    return (
        tool.enabled
        and tool.tenant == caller.tenant
        and (tool.owner is None or tool.owner == caller.user)
        and (tool.owner is not None or caller.servers is None or tool.server in caller.servers)
    )
