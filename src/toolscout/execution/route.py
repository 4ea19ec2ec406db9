"""Key to tool: absent and forbidden answer alike; a definition that has changed since it was shown is noticed."""

from __future__ import annotations

from collections.abc import Mapping

from toolscout.errors import DefinitionChangedError, NotReadOnlyError
from toolscout.models import Tool


def check_route(tool: Tool, *, version: str | None, read_only: bool) -> None:
    """Raise when the call may not go out: another definition than was seen, or a write through the reading door."""
    if version and not tool.fingerprint.startswith(version):
        raise DefinitionChangedError(
            f"{tool.key} has changed since version {version}: it is {tool.version} now",
            hint="read the new schema and call again with its version; nothing was sent",
            details=_definition(tool),
        )
    if read_only and not tool.read_only:
        raise NotReadOnlyError(
            f"{tool.key} is not declared read-only by a trusted server",
            hint="use call_tool, which the host may ask you to approve; nothing was sent",
        )


def _definition(tool: Tool) -> Mapping[str, object]:
    return {"version": tool.version, "description": tool.description, "input_schema": tool.input_schema}
