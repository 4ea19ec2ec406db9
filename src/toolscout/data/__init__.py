"""Tables that ship with Toolscout as data files, and the functions that read them."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_data(name: str) -> str:
    """Return the text of a data file, such as `taxonomy.toml` or `screen/orders.toml`."""
    return files(__name__).joinpath(name).read_text("utf-8")


def read_toml(name: str) -> dict[str, Any]:
    """Parse a data file in TOML."""
    return tomllib.loads(read_data(name))


def digest_texts(*texts: str) -> str:
    """Return a short hash of texts. It serves as their version: it changes with every edit."""
    return hashlib.blake2b("\x00".join(texts).encode(), digest_size=8).hexdigest()
