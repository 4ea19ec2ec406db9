"""How tools are written for PostgreSQL: halves of vectors, and words as lexemes of a tsvector.

A lexeme begins with four letters that stand for the tenant, so that the posting lists of one tenant grow with its own
tools alone; then comes what it is and eight letters of a hash, so that no text of a stranger is ever part of a query.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from toolscout.storage.index.postings import PACKED, term_id

if TYPE_CHECKING:
    from toolscout.models import FloatArray

TIERS = (0.25, 0.5, 0.75)
"""A term of at least this impact has a lexeme more: common words are looked up where they matter most."""

EVERY = "*"
_ROW, _LENGTH = struct.Struct(">hi"), struct.Struct(">i")


def to_halves(vectors: FloatArray) -> list[bytes]:
    """Write vectors as pgvector sends halfvec: their length, a zero, the numbers, all big-endian."""
    head = np.array([vectors.shape[1], 0], dtype=">i2").tobytes()
    return [head + row.tobytes() for row in vectors.astype(">f2")]


def copied(text_hashes: Sequence[str], vectors: FloatArray) -> bytes:
    """Write texts and their vectors as one binary COPY."""
    hashes = [bytes.fromhex(item) for item in text_hashes]
    rows = (
        _ROW.pack(2, len(text_hash)) + text_hash + _LENGTH.pack(len(half)) + half
        for text_hash, half in zip(hashes, to_halves(vectors), strict=True)
    )
    return b"".join((b"PGCOPY\n\xff\r\n\0", bytes(8), *rows, b"\xff\xff"))


def little_halves(sent: bytes | None) -> bytes | None:
    """Turn a halfvec as it was sent into the bytes that segments are built from."""
    return None if sent is None else np.frombuffer(sent, dtype=">f2", offset=4).astype("<f2").tobytes()


def from_halves(sent: bytes) -> FloatArray:
    """Read one vector."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def written(vector: FloatArray) -> str:
    """Write a query vector as SQL reads it."""
    return f"[{','.join(map(repr, vector.astype(float).tolist()))}]"


def name_id(text: str) -> int:
    """Give a tag or a category, whatever its case, a number that PostgreSQL can compare."""
    digest = hashlib.blake2b(text.casefold().encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@lru_cache(maxsize=10_000)
def mark(tenant: str) -> str:
    """Return the four letters that a tenant's lexemes begin with."""
    return b64encode(hashlib.blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=3).digest()).decode()


def term_lexeme(tenant: str, term: str, tier: int = 0) -> str:
    """Return the lexeme of a word; tier 1 to 3 that of the tools where it weighs most."""
    return f"{mark(tenant)}{_letters(term_id(term).to_bytes(8, 'little'))}{tier or ''}"


def label_lexeme(tenant: str, kind: str, text: str) -> str:
    """Return the lexeme of a tag (#), a category (=) or a server (@)."""
    return f"{mark(tenant)}{kind}{_letters(name_id(text).to_bytes(8, 'little', signed=True))}"


def lexemes(tenant: str, terms: bytes, labels: Iterable[tuple[str, str]]) -> str:
    """Write all lexemes of a tool, separated by spaces."""
    packed = np.frombuffer(terms, dtype=PACKED)
    begins = mark(tenant)
    cut = np.ascontiguousarray(packed["term"]).view(np.uint8).reshape(-1, 8)[:, :6]
    letters = b64encode(cut.tobytes()).decode()
    plain = [begins + letters[at : at + 8] for at in range(0, len(letters), 8)]
    found = list(plain)
    for tier, least in enumerate(TIERS, start=1):
        found += [f"{plain[at]}{tier}" for at in np.flatnonzero(packed["impact"] >= least).tolist()]
    found += [label_lexeme(tenant, kind, text) for kind, text in labels]
    return " ".join((begins + EVERY, *found))


def any_of(wanted: Sequence[str]) -> str:
    """Write the query that any of the lexemes answers."""
    return "(" + " | ".join(f"'{item}'" for item in wanted) + ")"


def storable(text: str) -> bool:
    """Tell whether PostgreSQL can hold a text at all: one that it cannot is the name of nothing there."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _letters(digest: bytes) -> str:
    return b64encode(digest[:6]).decode()
