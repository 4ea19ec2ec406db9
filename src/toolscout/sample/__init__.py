"""A small catalogue of made-up tools on servers of well-known kinds, to try Toolscout before any server is set up."""

from __future__ import annotations

from pathlib import Path

__all__ = ["path"]


def path() -> Path:
    """Return the path of the catalogue, a file of `tools.jsonl` rows."""
    return Path(__file__).with_name("tools.jsonl")
