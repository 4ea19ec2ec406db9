"""What the gateway tells an agent about itself when it connects."""

from __future__ import annotations

_DISCOVER = (
    "Many more tools than you see are behind this server. Before you say that something cannot be done, describe the "
    "need to search_tools in a few words (several needs at once as a list). Each hit has a key and says in call_with "
    "which tool calls it: call_read_tool for tools that only read, call_tool for all others. Read the input schema "
    'with get_tool_details, or search with detail="full", before the first call; then call with '
    '{"name": key, "arguments": {...}, "version": version of the hit}. An error says what to change. When nothing '
    "fits, search again in other words."
)
_ALL = "The tools of several servers, each named <server>__<tool>."


def instructions_for(surface: str) -> str:
    """Return the instructions of a surface."""
    return _ALL if surface == "all" else _DISCOVER
