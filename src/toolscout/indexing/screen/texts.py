"""Every string of a definition, and the readings of it that a model can make though a person does not see them."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from toolscout.indexing.screen.characters import character_tables
from toolscout.indexing.screen.rules import STEM
from toolscout.models import Tool

END = "\x00"
"""What stands between two strings of a definition; no pattern matches across it."""

_VOCABULARY = frozenset(
    "type properties description string object integer number boolean array null items required title default enum "
    "additionalProperties anyOf oneOf allOf format minimum maximum minLength maxLength $schema $ref $defs examples "
    "http://json-schema.org/draft-07/schema# https://json-schema.org/draft/2020-12/schema readOnlyHint openWorldHint "
    "destructiveHint idempotentHint name query id path url limit minItems maxItems uniqueItems const pattern".split()
)
_TELLING = "instructions instruction ignore disregard password system reveal previous".split()
_CAMEL = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)+")
_IDENTIFIER = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONG_IDENTIFIER = 20
_SHOWN = 80
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{24,}")
_CODES = re.compile(r"(?:[0-9a-f]{2,3}[ ,:;]{1,2}){11}[0-9a-f ,:;]+")
_ESCAPED = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}){6,}")
_BYTE = re.compile(r"\\(?:x|u00)([0-9a-fA-F]{2})")
_SPELT = re.compile(r"(?:(?<=[^a-z])[a-z][ .*~|+-]{1,4}){6,}[a-z]\b")
_APART = re.compile(r"[ .*~|+-]{1,4}")
_WIDE = re.compile(r" {2,}")
_WORD = re.compile(r"[a-z0-9@$]+")
_ROT13 = frozenset(codecs.encode(word, "rot13")[:STEM] for word in _TELLING)
_BACKWARDS = frozenset(word[::-1][:STEM] for word in _TELLING)
_LONG_TOKEN = 16
_SINGLES = 4
_FEW = 24
_LETTERS = frozenset("bcdefghjklmnopqrstuvwxyz")
_MAX_TOKENS = 64
_MAX_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read all strings of a definition, joined by END: how it came about, and the text."""

    how: str
    text: str
    stems: frozenset[str]


class Texts:
    """All strings of a definition: joined for matching, and each with its place."""

    __slots__ = ("_links", "raw")

    def __init__(self, tool: Tool) -> None:
        """Collect every string of the definition, keys of objects among them."""
        strings: list[str] = []
        self._links: list[Any] = []
        for link, text in _strings(tool):
            strings.append(text)
            self._links.append(link)
        self.raw = END.join(strings)
        if self.raw.count(END) != len(strings) - 1:
            self.raw = END.join(text.replace(END, "") for text in strings)

    def where(self, number: int) -> str:
        """Write the place of one string as a path, harmless to print."""
        steps: list[str] = []
        link = self._links[number]
        while link is not None:
            link, step = link
            steps.append(visible(str(step), 60))
        return "/" + "/".join(reversed(steps))


def _strings(tool: Tool) -> Iterator[tuple[Any, str]]:
    parts: tuple[tuple[str, Any], ...] = (
        ("name", tool.name),
        ("id", "" if tool.id == tool.key else tool.id),
        ("title", tool.title),
        ("description", tool.description),
        ("category", tool.category),
        ("tags", tool.tags),
        ("keywords", tool.keywords),
        ("related", tool.related),
        ("inputSchema", tool.input_schema),
        ("outputSchema", tool.output_schema),
        ("annotations", tool.annotations),
        ("_meta", tool.meta),
        ("examples", tool.examples),
    )
    stack: list[tuple[Any, Any]] = [((None, name), value) for name, value in reversed(parts) if value]
    while stack:
        link, value = stack.pop()
        if isinstance(value, str):
            if value not in _VOCABULARY:
                yield link, _apart(value)
        elif isinstance(value, Mapping):
            for key, child in value.items():
                inner = (link, key)
                if key not in _VOCABULARY:
                    yield inner, _apart(str(key))
                if isinstance(child, (str, Mapping, list, tuple)):
                    stack.append((inner, child))
        elif isinstance(value, (list, tuple)):
            stack.extend(
                ((link, place), child)
                for place, child in enumerate(value)
                if isinstance(child, (str, Mapping, list, tuple))
            )


def _apart(key: str) -> str:
    """Write a long identifier as words: an instruction may be the name of a parameter."""
    return _IDENTIFIER.sub(" ", key) if len(key) >= _LONG_IDENTIFIER and _CAMEL.fullmatch(key) else key


def readings(raw: str, telling: frozenset[str]) -> Iterator[Reading]:
    """Give the text as it stands, then as a model may read it: unmasked, respelt, decoded.

    A respelling that brings none of the `telling` stems to light is left out.
    """
    seen, rest = {raw}, [(raw, "", 0)]
    while rest:
        text, how, rounds = rest.pop()
        long, numbers = 0, 0
        for reading, words in _folded(text, how, telling):
            long = max(long, max(map(len, words), default=0))
            numbers += sum(map(str.isdigit, words))
            yield reading
        if rounds == _MAX_ROUNDS:
            continue
        for name, decoded in _decoded(text, long=long, numbers=numbers):
            if decoded not in seen:
                seen.add(decoded)
                rest.append((_changed(text, decoded), _also(how, name), rounds + 1))


def _folded(raw: str, how: str, telling: frozenset[str]) -> Iterator[tuple[Reading, list[str]]]:
    lower = raw.lower()
    if not raw.isascii():
        lower = _mapped(lower, _compatible)
    text = " ".join(lower.replace("_", " ").split())
    if not text.isascii():
        bare = _mapped(text, _latin)
        if bare != text:
            yield _reading(how, _changed(bare, text))
            text = bare
    reading, words = _reading(how, text)
    yield reading, words
    leet = character_tables().leet
    if not all(map(str.isalpha, words)) and not telling.isdisjoint(
        word.translate(leet)[:STEM] for word in set(words) if not word.isalpha() and not word.isdigit()
    ):
        yield _reading(_also(how, "digits read as letters"), _changed(text, text.translate(leet)))
    if sum(map(_LETTERS.__contains__, words)) > _SINGLES:
        joined = _joined(lower)
        if joined != text:
            yield _reading(_also(how, "letters joined"), _changed(text, joined))
    if not reading.stems.isdisjoint(_ROT13):
        yield _reading(_also(how, "rot13"), codecs.decode(text, "rot13"))
    if not reading.stems.isdisjoint(_BACKWARDS):
        yield _reading(_also(how, "read backwards"), END.join(part[::-1] for part in text.split(END)))


def _mapped(text: str, change: Callable[[str], str]) -> str:
    """Change every character beyond ASCII; most texts hold a few kinds of them, a dash or a quote."""
    odd = [character for character in set(text) if character > "\x7f"]
    if len(odd) > _FEW:
        return text.translate({ord(character): change(character) for character in odd})
    for character in sorted(odd):
        text = text.replace(character, change(character))
    return text


@lru_cache(maxsize=4_096)
def _compatible(character: str) -> str:
    return "" if ord(character) in character_tables().invisible else unicodedata.normalize("NFKC", character).lower()


@lru_cache(maxsize=4_096)
def _latin(character: str) -> str:
    return unicodedata.normalize("NFKD", character).translate(character_tables().latin)


def _reading(how: str, text: str) -> tuple[Reading, list[str]]:
    words = _WORD.findall(text)
    return Reading(how, text, frozenset([word[:STEM] for word in words])), words


def _changed(before: str, after: str) -> str:
    """Keep the strings that read otherwise now, each in its place, and empty the others: they were looked at."""
    pairs = zip(before.split(END), after.split(END), strict=True)
    return END.join("" if one == other else other for one, other in pairs)


def _also(how: str, name: str) -> str:
    return f"{name}, {how}" if how else name


def _joined(text: str) -> str:
    """Join letters that stand one by one; wider gaps stay gaps between words."""

    def word(match: re.Match[str]) -> str:
        parts = _WIDE.split(match[0]) if "  " in match[0] else [match[0]]
        return " ".join(_APART.sub("", part) for part in parts)

    return " ".join(_SPELT.sub(word, f" {text}").replace("_", " ").split())


def _decoded(text: str, *, long: int, numbers: int) -> Iterator[tuple[str, str]]:
    """Decode what decodes to words, each string in its place so that findings still say where."""
    hidden = _hidden_tags(text)
    if hidden is not None:
        yield "tag characters", hidden
    if "&" in text and ("&#" in text or "&lt;" in text):
        yield "entities", _each(text, html.unescape)
    if text.count("%") > 8:
        yield "percent-encoded", _each(text, urllib.parse.unquote)
    if "\\x" in text or "\\u00" in text:
        yield "escaped", _ESCAPED.sub(lambda match: _BYTE.sub(_character, match[0]), text)
    tokens = _TOKEN.findall(text)[:_MAX_TOKENS] if long >= _LONG_TOKEN else []
    words = {token: word for token in tokens if (word := _from_token(token))}
    if words:
        yield "decoded", _TOKEN.sub(lambda match: words.get(match[0], match[0]), text)
    if numbers > 4 and _CODES.search(text):
        yield "character codes", _CODES.sub(lambda match: _from_codes(match[0]), text)


def _character(byte: re.Match[str]) -> str:
    return chr(int(byte[1], 16) or 32)


def _each(text: str, change: Callable[[str], str]) -> str:
    return END.join(change(part).replace(END, "") for part in text.split(END))


def _hidden_tags(text: str) -> str | None:
    if text.isascii() or not any(0xE0000 <= ord(character) <= 0xE01EF for character in set(text)):
        return None
    return "".join(_visible_twin(character) for character in text)


def _visible_twin(character: str) -> str:
    code = ord(character)
    if 0xE0020 <= code <= 0xE007E:
        return chr(code - 0xE0000)
    if 0xE0100 <= code <= 0xE01EF:
        return chr(code - 0xE0100 + 16)
    return character


def _from_token(token: str) -> str:
    """Decode hex or base64, or return nothing where it is neither or holds no words."""
    try:
        if len(token) % 2 == 0 and not token.strip("0123456789abcdefABCDEF"):
            return _worded(bytes.fromhex(token))
        plain = token.replace("-", "+").replace("_", "/")
        return _worded(base64.b64decode(plain[: len(plain) // 4 * 4] + _filled(plain)))
    except (ValueError, binascii.Error):
        return ""


def _filled(token: str) -> str:
    rest = token[len(token) // 4 * 4 :]
    return rest + "=" * (4 - len(rest)) if len(rest) > 1 else ""


def _worded(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    told = sum(character.isalnum() or character in " .,:;=/+'-_~\n" for character in text)
    return text.replace(END, " ") if told >= 0.9 * len(text) else ""


def _from_codes(run: str) -> str:
    parts = run.replace(",", " ").replace(":", " ").replace(";", " ").split()
    for radix in (10, 16):
        try:
            codes = [int(part, radix) for part in parts]
        except ValueError:
            continue
        if all(32 <= code < 127 for code in codes):
            return "".join(map(chr, codes))
    return run


def visible(text: str, most: int = _SHOWN) -> str:
    """Write a text so that it can be printed anywhere: nothing invisible, no control, no line break, not long."""
    shown: list[str] = []
    length = 0
    for character in text:
        shows = character == " " or (character.isprintable() and not _masked(character))
        part = character if shows else f"\\u{{{ord(character):x}}}"
        length += len(part)
        if length > most - 1:
            return "".join(shown) + "…"
        shown.append(part)
    return "".join(shown)


def _masked(character: str) -> bool:
    return ord(character) in character_tables().invisible or unicodedata.category(character) in {"Mn", "Me"}
