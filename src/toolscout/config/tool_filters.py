"""The hosts' lists of allowed and forbidden tools, read as toolscout's own `enabled` of each tool.

They are translated and never dropped: a tool that a host forbids must not become callable through the gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from toolscout.fields import Fields
from toolscout.models import Overlay

EVERY_TOOL = "*"
ALLOWED = ("includeTools", "enabledTools", "enabled_tools", "tools", "available_tools")
"""Gemini and Qwen, some editors, Codex, Copilot, Goose."""
FORBIDDEN = ("excludeTools", "disabledTools", "disabled_tools")
"""Gemini and Qwen, Windsurf, Kiro and Roo, Codex."""


def read_filters(entry: Any, where: str) -> dict[str, Overlay]:
    """Return the overlays that a host's lists stand for. A list of the wrong type is an error, not an empty list."""
    fields = Fields(entry, where)
    overlays: dict[str, Overlay] = {}
    for field in ALLOWED:
        if isinstance(fields.get(field), Mapping):
            overlays.update(_switches(fields.child(field)))
        elif fields.get(field) is not None:
            names = _names(fields, field)
            if EVERY_TOOL not in names and not (field == "available_tools" and not names):
                overlays[EVERY_TOOL] = Overlay(enabled=False)
                overlays.update({name: Overlay(enabled=True) for name in names})
    for field in FORBIDDEN:
        if fields.get(field) is not None:
            overlays.update({name: Overlay(enabled=False) for name in _names(fields, field)})
    return overlays


def merge_overlays(host: Mapping[str, Overlay], own: Mapping[str, Overlay]) -> dict[str, Overlay]:
    """Put toolscout's own overlays over those of the host. What they leave open, the host decides."""
    merged = dict(host)
    for name, overlay in own.items():
        below = host.get(name)
        merged[name] = replace(overlay, enabled=below.enabled) if below and overlay.enabled is None else overlay
    return merged


def _names(fields: Fields, field: str) -> Iterable[str]:
    """Return the names of a list. Gemini allows arguments in brackets after a name: the tool counts, not they."""
    value = fields.get(field)
    names = (value,) if isinstance(value, str) else fields.texts(field)
    return tuple(name.split("(")[0].strip() for name in names if name.strip())


def _switches(tools: Fields) -> dict[str, Overlay]:
    """Read Codex's table of single tools, of which `enabled` counts."""
    overlays: dict[str, Overlay] = {}
    for name in tools.values:
        enabled = tools.child(name).flag("enabled") if isinstance(tools.get(name), Mapping) else tools.flag(name)
        if enabled is not None:
            overlays[name] = Overlay(enabled=enabled)
    return overlays
