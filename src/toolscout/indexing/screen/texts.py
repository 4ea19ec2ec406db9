"""Every string of a definition, and the readings of it that a model can make though a person does not see them."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.indexing.screen.letters import IGNORABLE, LATIN, LEET
from toolscout.models import Tool

END = "\x00"
"""What stands between two strings of a definition; no pattern matches across it."""

_VOCABULARY = frozenset(
    "type properties description string object integer number boolean array null items required title default enum "
    "additionalProperties anyOf oneOf allOf format minimum maximum minLength maxLength $schema $ref $defs examples "
    "http://json-schema.org/draft-07/schema# https://json-schema.org/draft/2020-12/schema readOnlyHint openWorldHint "
    "destructiveHint idempotentHint name query id path url limit minItems maxItems uniqueItems const pattern".split()
)
_IDENTIFIER = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONG_IDENTIFIER = 20
_SHOWN = 80
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{24,}")
_CODES = re.compile(r"(?:[0-9a-f]{2,3}[ ,:;]{1,2}){11}[0-9a-f ,:;]+")
_ESCAPED = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}){6,}")
_BYTE = re.compile(r"\\(?:x|u00)([0-9a-fA-F]{2})")
_LEET = re.compile(r"[a-z][013457@$][a-z]|\b[1@$0][a-z]")
_SPELT = re.compile(r"(?:(?<=[^a-z])[a-z][ .*~|+-]{1,4}){6,}[a-z]\b")
_APART = re.compile(r"[ .*~|+-]{1,4}")
_WIDE = re.compile(r" {2,}")
_ROT13 = ("vafgehpg", "vtaber", "qvfertneq", "cnffjbeq", "flfgrz", "gur hfre", "erirny")
_BACKWARDS = ("snoitcurtsni", "erongi", "drowssap", "metsys", "resu eht", "laever", "dragersid")
_MAX_TOKENS = 64
_MAX_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read all strings of a definition, joined by END: how it came about, and the text."""

    how: str
    text: str


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
    return _IDENTIFIER.sub(" ", key) if len(key) >= _LONG_IDENTIFIER and " " not in key else key


def readings(raw: str) -> Iterator[Reading]:
    """Give the text as it stands, then as a model may read it: unmasked, respelt, decoded."""
    yield from _folded(raw, "")
    seen, rest = {raw}, [(raw, "", 0)]
    while rest:
        text, how, rounds = rest.pop()
        if rounds == _MAX_ROUNDS:
            continue
        for name, decoded in _decoded(text):
            if decoded not in seen:
                seen.add(decoded)
                label = f"{name}, {how}" if how else name
                yield from _folded(decoded, label)
                rest.append((decoded, label, rounds + 1))


def _folded(raw: str, how: str) -> Iterator[Reading]:
    lower = raw.lower()
    if not raw.isascii():
        lower = unicodedata.normalize("NFKC", lower.translate(IGNORABLE)).lower()
    words = lower.replace("_", " ").split()
    text = " ".join(words)
    yield Reading(how, text)
    if not text.isascii():
        bare = unicodedata.normalize("NFKD", text).translate(LATIN)
        if bare != text:
            text = bare
            yield Reading(how, text)
    if _LEET.search(text):
        yield Reading(_also(how, "digits read as letters"), text.translate(LEET))
    if sum(map((1).__eq__, map(len, words))) > 6 or _SPELT.search(text):
        joined = _joined(lower)
        if joined != text:
            yield Reading(_also(how, "letters joined"), joined)
    if any(word in text for word in _ROT13):
        yield Reading(_also(how, "rot13"), codecs.decode(text, "rot13"))
    if any(word in text for word in _BACKWARDS):
        yield Reading(_also(how, "read backwards"), END.join(part[::-1] for part in text.split(END)))


def _also(how: str, name: str) -> str:
    return f"{name}, {how}" if how else name


def _joined(text: str) -> str:
    """Join letters that stand one by one; wider gaps stay gaps between words."""

    def word(match: re.Match[str]) -> str:
        parts = _WIDE.split(match[0]) if "  " in match[0] else [match[0]]
        return " ".join(_APART.sub("", part) for part in parts)

    return " ".join(_SPELT.sub(word, f" {text}").split())


def _decoded(text: str) -> Iterator[tuple[str, str]]:
    """Decode what decodes to words, each string in its place so that findings still say where."""
    hidden = _hidden_tags(text)
    if hidden is not None:
        yield "tag characters", hidden
    if "&" in text and ("&#" in text or "&lt;" in text):
        yield "entities", _each(text, html.unescape)
    if text.count("%") > 8:
        yield "percent-encoded", _each(text, urllib.parse.unquote)
    if "\\x" in text or "\\u00" in text:
        yield "escaped", _ESCAPED.sub(lambda match: _BYTE.sub(lambda byte: chr(int(byte[1], 16)), match[0]), text)
    tokens = _TOKEN.findall(text)[:_MAX_TOKENS]
    words = {token: word for token in tokens if (word := _from_token(token))}
    if words:
        yield "decoded", _TOKEN.sub(lambda match: words.get(match[0], match[0]), text)
    if _CODES.search(text):
        yield "character codes", _CODES.sub(lambda match: _from_codes(match[0]), text)


def _each(text: str, change: Any) -> str:
    return END.join(str(change(part)).replace(END, "") for part in text.split(END))


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
        part = (
            character
            if character == " " or (character.isprintable() and not _masked(character))
            else _escape(character)
        )
        length += len(part)
        if length > most - 1:
            return "".join(shown) + "…"
        shown.append(part)
    return "".join(shown)


def _masked(character: str) -> bool:
    return ord(character) in IGNORABLE or unicodedata.category(character) in {"Mn", "Me"}


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
