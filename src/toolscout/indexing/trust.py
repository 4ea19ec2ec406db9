"""Trust in definitions: the first is pinned, a later one is held against it, and poisoned text is held back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from toolscout.indexing.screen import VERSION, quarantines, screen_tool
from toolscout.models import Pin, Record, Scope, Tool

KIND = "pin"
"""The kind of a pin among the records of a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A tool with its verdict, and the pin to keep where it is not the one that is kept already."""

    tool: Tool
    pin: Pin | None
    changed: bool


def judge(tool: Tool, pin: Pin | None, *, screened: bool, strict: bool, now: float) -> Judged:
    """Hold a definition against its pin and screen it, once for each definition and set of rules."""
    asked = f"{VERSION}:{tool.fingerprint}" if screened else ""
    found = pin.found if pin and pin.screened == asked else _found(tool) if screened else ""
    if pin is None:
        first = Pin(key=tool.key, fingerprint=tool.fingerprint, at=now, screened=asked, found=found)
        return Judged(tool=replace(tool, held=found), pin=first, changed=False)
    seen = pin if pin.screened == asked else replace(pin, screened=asked, found=found)
    changed = pin.fingerprint != tool.fingerprint
    if not changed and pin.verdict != "seen":
        held = "kept out by hand" if pin.verdict == "kept_out" else ""
    else:
        held = found or ("its definition has changed and is not approved" if changed and strict else "")
    return Judged(tool=replace(tool, held=held), pin=None if seen == pin else seen, changed=changed)


def definition_of(tool: Tool) -> Mapping[str, Any]:
    """Write what a fingerprint covers, for showing two definitions side by side."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
        "meta": tool.meta,
    }


def read_pin(record: Record) -> Pin:
    """Read a pin from a record."""
    return Pin(**record.body)


def write_pin(scope: Scope, pin: Pin) -> Record:
    """Write a pin as a record."""
    return Record(kind=KIND, scope=scope, name=pin.key, body=asdict(pin))


def _found(tool: Tool) -> str:
    findings = screen_tool(tool)
    return f"{findings[0].rule} in {findings[0].where}: {findings[0].reason}" if quarantines(findings) else ""
