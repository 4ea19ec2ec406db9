"""Trust in definitions: the first is pinned, a later one is held against it, and poisoned text is held back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from toolscout.indexing.screen import quarantines, screen_tool, screen_version
from toolscout.models import Change, Pin, Record, Scope, Tool, Verdict

PIN_KIND = "pin"
"""The kind of a pin among the records of a store."""

KEPT_OUT = "kept out by hand"
CHANGED = "its definition has changed and is not approved"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTool:
    """A tool with its verdict, and the pin to keep where it is not the one that is kept already."""

    tool: Tool
    pin: Pin | None
    changed: bool


def judge_tool(tool: Tool, pin: Pin | None, *, screened: bool, strict: bool, now: float) -> JudgedTool:
    """Hold a definition against its pin and screen it, once for each definition and set of rules.

    What was approved is approved as it was then; what was kept out by hand stays out, whatever it turns into.
    """
    asked = f"{screen_version()}:{tool.fingerprint}:{_told(tool)}" if screened else ""
    found = pin.found if pin and pin.screened == asked else _found(tool) if screened else ""
    if pin is None:
        first = Pin(key=tool.key, fingerprint=tool.fingerprint, at=now, screened=asked, found=found)
        return JudgedTool(tool=replace(tool, quarantine_reason=found), pin=first, changed=False)
    seen = pin if pin.screened == asked else replace(pin, screened=asked, found=found)
    changed = pin.fingerprint != tool.fingerprint
    if pin.verdict == "kept_out":
        held = KEPT_OUT
    elif pin.verdict == "approved" and not changed:
        held = ""
    else:
        held = found or (CHANGED if changed and strict else "")
    return JudgedTool(tool=replace(tool, quarantine_reason=held), pin=None if seen == pin else seen, changed=changed)


def merge_pins(own: Pin | None, brought: Pin | None, *, offered: Tool | None, stored: Tool | None) -> Pin:
    """Say which pin counts for what an archive offers under a fingerprint that cannot be computed from it.

    Of two pins the one that is decided counts, keeping out before approving; between equals, the own. An own approval
    needs a stored tool of its fingerprint. Where that one says something else, both are disputed: until someone
    decides, whatever is offered is a change, and only keeping out counts.
    """
    known = stored if stored and offered and stored.fingerprint == offered.fingerprint else None
    if own and offered and own.verdict == "approved" and own.fingerprint == offered.fingerprint and not known:
        own = replace(own, verdict="seen")
    pin = max((item for item in (own, brought) if item), key=lambda item: get_args(Verdict).index(item.verdict))
    disputed = known and offered and _says(known, pin) != _says(offered, pin)
    if pin.verdict == "kept_out" or not (disputed or (own and not own.fingerprint)):
        return pin
    before = (own or pin).before or (definition_of(known) if known else None)
    return replace(own or pin, verdict="seen", fingerprint="", before=before)


def definition_of(tool: Tool) -> Mapping[str, Any]:
    """Write what a server says of a tool, for showing two definitions side by side."""
    said = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
        "meta": tool.meta,
        "keywords": list(tool.keywords),
        "examples": list(tool.examples),
        "related": list(tool.related),
    }
    return {name: value for name, value in said.items() if value or name == "name"}


def change_of(scope: Scope, tool: Tool, pin: Pin | None) -> Change | None:
    """Say what is to be decided of a published tool, or was decided against it; None where nothing is."""
    changed = pin is not None and pin.fingerprint != tool.fingerprint
    if not changed and not tool.quarantine_reason:
        return None
    return Change(
        key=tool.key,
        scope=scope,
        quarantine_reason=tool.quarantine_reason,
        changed=changed,
        verdict=pin.verdict if pin else "seen",
        before=pin.before if pin and changed else None,
        after=definition_of(tool),
        findings=screen_tool(tool),
        at=pin.at if pin else 0.0,
    )


def read_pin(record: Record) -> Pin:
    """Read a pin from a record."""
    return Pin(**record.body)


def write_pin(scope: Scope, pin: Pin) -> Record:
    """Write a pin as a record."""
    return Record(kind=PIN_KIND, scope=scope, name=pin.key, body=asdict(pin))


def _says(tool: Tool, pin: Pin) -> tuple[Any, ...]:
    """Gather what two tools of one fingerprint share: all that an approval speaks free, else the definition."""
    labels = (tool.id, tool.category, tool.tags) if pin.verdict == "approved" else ()
    return (definition_of(tool), *labels)


def _told(tool: Tool) -> str:
    """Digest what the operator's config may say in place of the server: an overlay that goes uncovers other text."""
    said = (tool.description, tool.category, tool.tags, tool.keywords, tool.related, tool.examples)
    return hashlib.blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _found(tool: Tool) -> str:
    findings = screen_tool(tool)
    return f"{findings[0].rule} in {findings[0].where}: {findings[0].reason}" if quarantines(findings) else ""
