"""How vectors and words are encoded for PostgreSQL: vectors as pgvector's halfvec, words as lexemes of a tsvector.

A lexeme begins with four letters that stand for the tenant, so that the posting lists of a tenant grow with its own
tools alone. Then come its kind and eight letters of a hash, so that no foreign text is ever part of a query.
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
"""A term has one more lexeme for each of these impacts that it reaches.

A search for a common word then reads only the tools where the word has a high impact.
"""

_ANY_TOOL = "*"
_ROW, _LENGTH = struct.Struct(">hi"), struct.Struct(">i")


def to_halves(vectors: FloatArray) -> list[bytes]:
    """Encode vectors as binary halfvec: their length, a zero, the numbers, all big-endian."""
    head = np.array([vectors.shape[1], 0], dtype=">i2").tobytes()
    return [head + row.tobytes() for row in vectors.astype(">f2")]


def copy_data(text_hashes: Sequence[str], vectors: FloatArray) -> bytes:
    """Encode text hashes and their vectors as the data of one binary COPY."""
    hashes = [bytes.fromhex(item) for item in text_hashes]
    rows = (
        _ROW.pack(2, len(text_hash)) + text_hash + _LENGTH.pack(len(half)) + half
        for text_hash, half in zip(hashes, to_halves(vectors), strict=True)
    )
    return b"".join((b"PGCOPY\n\xff\r\n\0", bytes(8), *rows, b"\xff\xff"))


def little_halves(data: bytes | None) -> bytes | None:
    """Convert a binary halfvec to the little-endian bytes that segments are built from."""
    return None if data is None else np.frombuffer(data, dtype=">f2", offset=4).astype("<f2").tobytes()


def from_halves(data: bytes) -> FloatArray:
    """Decode one binary halfvec."""
    return np.frombuffer(data, dtype=">f2", offset=4).astype(np.float32)


def vector_literal(vector: FloatArray) -> str:
    """Write a query vector as an SQL literal."""
    return f"[{','.join(map(repr, vector.astype(float).tolist()))}]"


def name_id(text: str) -> int:
    """Return the number of a tag or a category, the same for upper and lower case."""
    digest = hashlib.blake2b(text.casefold().encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@lru_cache(maxsize=10_000)
def tenant_prefix(tenant: str) -> str:
    """Return the four letters that the lexemes of a tenant begin with."""
    return b64encode(hashlib.blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=3).digest()).decode()


def term_lexeme(tenant: str, term: str, tier: int = 0) -> str:
    """Return the lexeme of a word. One of tier 1 to 3 stands for tools where the word has at least that impact."""
    return f"{tenant_prefix(tenant)}{_letters(term_id(term).to_bytes(8, 'little'))}{tier or ''}"


def label_lexeme(tenant: str, kind: str, text: str) -> str:
    """Return the lexeme of a tag (#), a category (=) or a server (@)."""
    return f"{tenant_prefix(tenant)}{kind}{_letters(name_id(text).to_bytes(8, 'little', signed=True))}"


def tool_lexemes(tenant: str, terms: bytes, labels: Iterable[tuple[str, str]]) -> str:
    """Return all lexemes of a tool, separated by spaces."""
    packed = np.frombuffer(terms, dtype=PACKED)
    prefix = tenant_prefix(tenant)
    cut = np.ascontiguousarray(packed["term"]).view(np.uint8).reshape(-1, 8)[:, :6]
    letters = b64encode(cut.tobytes()).decode()
    plain = [prefix + letters[at : at + 8] for at in range(0, len(letters), 8)]
    all_lexemes = list(plain)
    for tier, least in enumerate(TIERS, start=1):
        all_lexemes += [f"{plain[at]}{tier}" for at in np.flatnonzero(packed["impact"] >= least).tolist()]
    all_lexemes += [label_lexeme(tenant, kind, text) for kind, text in labels]
    return " ".join((prefix + _ANY_TOOL, *all_lexemes))


def any_of(lexemes: Sequence[str]) -> str:
    """Return the tsquery that matches any of the lexemes."""
    return "(" + " | ".join(f"'{item}'" for item in lexemes) + ")"


def storable(text: str) -> bool:
    """Tell whether PostgreSQL can store a text: a name that it cannot store is the name of nothing there."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _letters(digest: bytes) -> str:
    return b64encode(digest[:6]).decode()
