"""The corpus of poisoned definitions and of benign ones that look like them, in two halves by hash.

The rules were tuned on the development half alone. Of the held-out half only the rates were looked at.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolscout import Server, Settings
from toolscout.indexing.normalize import normalize_tool
from toolscout.models import Tool

CORPUS = Path(__file__).parent / "data" / "poisoned.jsonl"
SERVER = Server(key="server", title="server")
STRANGER = Server(key="server", title="server", trusted=False)


@dataclass(frozen=True)
class Case:
    """One definition of the corpus: the attack it carries, or the look-alike it is."""

    kind: str
    poisoned: bool
    held_out: bool
    definition: dict[str, Any]

    @property
    def tool(self) -> Tool:
        """The definition as the screen gets it."""
        return to_tool(self.definition)


def to_tool(definition: dict[str, Any], server: Server = SERVER) -> Tool:
    """Normalize a raw definition as indexing does."""
    return normalize_tool(definition, server, Settings())


def cases() -> list[Case]:
    """Read the corpus."""
    return [_case(json.loads(line)) for line in CORPUS.read_text("utf-8").splitlines()]


def _case(row: dict[str, Any]) -> Case:
    digest = hashlib.sha256(json.dumps(row["tool"], sort_keys=True).encode()).digest()
    return Case(row["kind"], row["poisoned"], digest[0] % 2 == 1, row["tool"])
