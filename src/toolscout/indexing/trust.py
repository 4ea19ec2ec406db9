"""Trust in definitions: pin the first definition of a tool, compare later ones with the pin, quarantine poisoned text.

A pin is the definition that was approved, or else the one that was seen first. Its verdict says which: `seen`,
`approved` by an operator, or `kept_out` by an operator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from toolscout.indexing.screen import quarantines, screen_tool, screen_version
from toolscout.models import KEPT_OUT, Change, Pin, Record, Scope, Tool, Verdict

PIN_KIND = "pin"
"""The kind of record under which a store keeps pins."""

CHANGED = "its definition has changed and is not approved"
NEW = "it is new on its server and not approved"


_WITH_REST = ":rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTool:
    """A tool with its quarantine reason set, and the pin to store if it is new or was updated."""

    tool: Tool
    pin: Pin | None
    changed: bool
    """Whether the definition differs from the pinned one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """The result of the screen: for which rules and which definition it holds, and why the tool is poisoned."""

    id: str = ""
    poison: str = ""


def screen_once(tool: Tool, pin: Pin | None, rest: Mapping[str, Any] | None = None) -> Screening:
    """Screen a definition, unless its pin has the result already: once for each version of the rules.

    `rest` is what the server sent beside it and what the tool does not hold.
    """
    screening = f"{screen_version()}:{tool.fingerprint}:{_overlay_digest(tool)}{_WITH_REST if rest else ''}"
    if pin and pin.screened == screening:
        return Screening(id=screening, poison=pin.found)
    return Screening(id=screening, poison=poison_reason(tool) or (_poison_of_rest(tool, rest) if rest else ""))


def _poison_of_rest(tool: Tool, rest: Mapping[str, Any]) -> str:
    beside = Tool(
        key=tool.key,
        id=tool.key,
        server=tool.server,
        server_title=tool.server_title,
        name=tool.name,
        input_schema=rest,
        trusted=tool.trusted,
    )
    return poison_reason(beside).replace(" in /inputSchema/", " in /", 1)


def judge_tool(
    tool: Tool,
    pin: Pin | None,
    *,
    screened: bool,
    strict: bool,
    now: float,
    screening: Screening | None = None,
    later: bool = False,
) -> JudgedTool:
    """Decide whether a tool is quarantined, by its pin and by the screen.

    An approval covers the approved definition only. A tool that an operator kept out stays out, also when its
    definition changes. The result of the screen is stored in the pin. `screening` is the result if there is one.

    With `strict`, a tool that a server brings `later`, after its first tools were pinned, is withheld too. Its pin has
    no fingerprint, so that every definition of it is a change until an operator decides.
    """
    screening = (screening or screen_once(tool, pin)) if screened else Screening()
    poison = screening.poison
    if pin is None:
        held = strict and later
        fingerprint = "" if held else tool.fingerprint
        first = Pin(key=tool.key, fingerprint=fingerprint, at=now, screened=screening.id, found=poison)
        reason = poison or (NEW if held else "")
        return JudgedTool(tool=replace(tool, quarantine_reason=reason), pin=first, changed=held)
    updated = replace(pin, screened=screening.id, found=poison)
    changed = pin.fingerprint != tool.fingerprint
    if pin.verdict == "kept_out":
        reason = KEPT_OUT
    elif pin.verdict == "approved" and not changed:
        reason = ""
    else:
        unapproved = CHANGED if pin.fingerprint or pin.before else NEW
        reason = poison or (unapproved if changed and strict else "")
    return JudgedTool(
        tool=replace(tool, quarantine_reason=reason), pin=None if updated == pin else updated, changed=changed
    )


def merge_pins(own: Pin | None, archived: Pin | None, *, offered: Tool | None, stored: Tool | None) -> Pin:
    """Merge the pin of a store with that of an archive, for the tool that the archive offers.

    The stricter verdict wins: kept out, then approved, then seen. Between equals, the store's own pin wins.

    The fingerprint of an archived tool cannot be checked, so it proves nothing. The store's approval therefore
    counts only while the store still holds the approved tool. If that tool and the offered one have the same
    fingerprint but different content, no approval counts: the result is a pin without a fingerprint, which makes
    every definition a change until an operator decides.
    """
    same = stored if stored and offered and stored.fingerprint == offered.fingerprint else None
    if own and offered and own.verdict == "approved" and own.fingerprint == offered.fingerprint and not same:
        own = replace(own, verdict="seen")
    pin = max((item for item in (own, archived) if item), key=lambda item: get_args(Verdict).index(item.verdict))
    disputed = same and offered and _approved_content(same, pin) != _approved_content(offered, pin)
    if pin.verdict == "kept_out" or not (disputed or (own and not own.fingerprint)):
        return pin
    before = (own or pin).before or (definition_of(same) if same else None)
    return replace(own or pin, verdict="seen", fingerprint="", before=before)


def definition_of(tool: Tool) -> Mapping[str, Any]:
    """Return the parts of a tool that its server defines, to show two definitions side by side."""
    parts = {
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
    return {name: value for name, value in parts.items() if value or name == "name"}


def change_of(scope: Scope, tool: Tool, pin: Pin | None) -> Change | None:
    """Return what an operator has to decide, or has decided, about a published tool. None if there is nothing."""
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
        version=shown_version(tool),
    )


def shown_version(tool: Tool) -> str:
    """Return what identifies the definition of a tool as an operator sees it.

    The fingerprint covers what the server sent, but that of an archived tool cannot be checked. So the parts that are
    shown count too. Both definitions may be a server's choice, so the whole has 160 bits: to find two that have the
    same takes 2 to the power of 80 attempts.
    """
    parts = json.dumps(definition_of(tool), sort_keys=True).encode()
    return tool.version + hashlib.blake2b(parts, digest_size=14).hexdigest()


def read_pin(record: Record) -> Pin:
    """Read a pin from a record."""
    return Pin(**record.body)


def write_pin(scope: Scope, pin: Pin) -> Record:
    """Write a pin as a record."""
    return Record(kind=PIN_KIND, scope=scope, name=pin.key, body=asdict(pin))


def _approved_content(tool: Tool, pin: Pin) -> tuple[Any, ...]:
    """Return what two tools with one fingerprint must share: the definition, and after an approval the labels too."""
    labels = (tool.id, tool.category, tool.tags) if pin.verdict == "approved" else ()
    return (definition_of(tool), *labels)


def _overlay_digest(tool: Tool) -> str:
    """Hash the fields that the operator's config can replace: text behind a removed overlay has to be screened."""
    values = (tool.trusted, tool.description, tool.category, tool.tags, tool.keywords, tool.related, tool.examples)
    return hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def poison_reason(tool: Tool) -> str:
    """Screen a tool and return why it is quarantined, "" if it is not."""
    findings = screen_tool(tool)
    return f"{findings[0].rule} in {findings[0].where}: {findings[0].reason}" if quarantines(findings) else ""
