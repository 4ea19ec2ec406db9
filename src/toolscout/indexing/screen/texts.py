"""Collect the strings of a definition, and decode them as a model may read them although a person would not."""

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
from toolscout.indexing.screen.ciphers import SPELLINGS, respellings
from toolscout.indexing.screen.rules import STEM
from toolscout.models import Tool

END = "\x00"
"""Separates the strings of a definition. No pattern matches across it."""

UNREAD = "more than is read"
"""The name of the reading that stands for text which was decoded but not searched."""

_SCHEMA_WORDS = frozenset(
    "type properties description string object integer number boolean array null items required title default enum "
    "additionalProperties anyOf oneOf allOf format minimum maximum minLength maxLength $schema $ref $defs examples "
    "http://json-schema.org/draft-07/schema# https://json-schema.org/draft/2020-12/schema readOnlyHint openWorldHint "
    "destructiveHint idempotentHint name query id path url limit minItems maxItems uniqueItems const pattern".split()
)
_SUSPECT_WORDS = "instructions instruction ignore disregard password system reveal previous".split()
_CAMEL = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)+")
_IDENTIFIER = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONG_IDENTIFIER = 20
_EXCERPT_CHARS = 80
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{24,}")
_CODES = re.compile(r"(?:[0-9a-f]{2,3}[ ,:;]{1,2}){11}[0-9a-f ,:;]+")
_ESCAPED = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}){6,}")
_BYTE = re.compile(r"\\(?:x|u00)([0-9a-fA-F]{2})")
_SPELT = re.compile(r"(?:(?<=[^a-z])[a-z][ .*~|+-]{1,4}){6,}[a-z]\b")
_LETTER_GAP = re.compile(r"[ .*~|+-]{1,4}")
_WORD_GAP = re.compile(r" {2,}")
_WORD = re.compile(r"[a-z0-9@$]+")
_ROT13 = frozenset(codecs.encode(word, "rot13")[:STEM] for word in _SUSPECT_WORDS)
_BACKWARDS = frozenset(word[::-1][:STEM] for word in _SUSPECT_WORDS)
_LONG_TOKEN = 16
_FEW_SINGLE_LETTERS = 4
_MANY_DIFFERENT = 24
_SINGLE_LETTERS = frozenset("bcdefghjklmnopqrstuvwxyz")
_MAX_ROUNDS = 2
_MAX_GROWTH = 12


@dataclass(frozen=True, slots=True)
class Reading:
    """All strings of a definition joined by END, decoded in one way. `how` names the way, `stems` are of its words."""

    how: str
    text: str
    stems: frozenset[str]


class Texts:
    """All strings of a definition, keys of objects included: joined for matching, and each with its place."""

    __slots__ = ("_links", "raw")

    def __init__(self, tool: Tool) -> None:
        strings: list[str] = []
        self._links: list[Any] = []
        for link, text in _strings(tool):
            strings.append(text)
            self._links.append(link)
        self.raw = END.join(strings)
        if self.raw.count(END) != len(strings) - 1:
            self.raw = END.join(text.replace(END, "") for text in strings)

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """The place of each string: the keys that lead to it."""
        return [tuple(self._steps(number)) for number in range(len(self._links))]

    def where(self, number: int) -> str:
        """Return the place of one string as a path that is safe to print."""
        return "/" + "/".join(visible(step, 60) for step in self._steps(number))

    def _steps(self, number: int) -> list[str]:
        steps: list[str] = []
        link = self._links[number]
        while link is not None:
            link, step = link
            steps.append(str(step))
        return steps[::-1]


def _strings(tool: Tool) -> Iterator[tuple[Any, str]]:
    parts: tuple[tuple[str, Any], ...] = (
        ("name", tool.name),
        ("id", "" if tool.id == tool.key else tool.id),
        ("title", tool.title),
        ("description", tool.description),
        ("category", tool.category),
        ("tags", tool.tags),
        ("keywords", tool.keywords),
        ("capabilities", tool.capabilities),
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
            if value not in _SCHEMA_WORDS:
                yield link, _split_identifier(value)
        elif isinstance(value, Mapping):
            for key, child in value.items():
                inner = (link, key)
                if key not in _SCHEMA_WORDS:
                    yield inner, _split_identifier(str(key))
                if isinstance(child, (str, Mapping, list, tuple)):
                    stack.append((inner, child))
        elif isinstance(value, (list, tuple)):
            stack.extend(
                ((link, place), child)
                for place, child in enumerate(value)
                if isinstance(child, (str, Mapping, list, tuple))
            )


def _split_identifier(key: str) -> str:
    """Split a long identifier into words: the name of a parameter may be an instruction."""
    return _IDENTIFIER.sub(" ", key) if len(key) >= _LONG_IDENTIFIER and _CAMEL.fullmatch(key) else key


def readings(raw: str, cue_stems: frozenset[str]) -> Iterator[Reading]:
    """Yield the text as it stands, then as a model may read it: unmasked, respelt, decoded up to two times.

    Digits are read as letters only where that gives a word with one of the `cue_stems`. The decoded text is at most
    a multiple of the text that was sent. Where there is more, the last reading is named UNREAD.
    """
    seen, queue = {raw}, [(raw, "", 0)]
    left = _MAX_GROWTH * len(raw) + 4_096
    while queue:
        text, how, rounds = queue.pop()
        longest_word, numbers = 0, 0
        for reading, words in _fold(text, how, cue_stems):
            longest_word = max(longest_word, max(map(len, words), default=0))
            numbers += sum(map(str.isdigit, words))
            yield reading
        if rounds == _MAX_ROUNDS:
            continue
        for name, decoded in _decode(text, longest_word=longest_word, numbers=numbers):
            changed = _changed_strings(text, decoded) if decoded != text else text
            if changed in seen or changed == text:
                continue
            seen.add(changed)
            left -= len(changed.replace(END, ""))
            if left < 0:
                yield Reading(UNREAD, END * raw.count(END), frozenset())
                return
            queue.append((changed, _name_way(how, name), rounds + 1))


def _fold(raw: str, how: str, cue_stems: frozenset[str]) -> Iterator[tuple[Reading, list[str]]]:
    lower = raw.lower()
    if not lower.isascii():
        lower = _replace_each(_replace_each(lower, _compatible), _plain_sign)
    text = " ".join(lower.replace("_", " ").split())
    if not text.isascii():
        bare = _replace_each(text, _latin)
        if bare != text:
            yield _reading(how, _changed_strings(bare, text))
            text = bare
    reading, words = _reading(how, text)
    yield reading, words
    leet = character_tables().leet
    if not all(map(str.isalpha, words)) and not cue_stems.isdisjoint(
        word.translate(leet)[:STEM] for word in set(words) if not word.isalpha() and not word.isdigit()
    ):
        yield _reading(_name_way(how, "digits read as letters"), _changed_strings(text, text.translate(leet)))
    if sum(map(_SINGLE_LETTERS.__contains__, words)) > _FEW_SINGLE_LETTERS:
        joined = _replace_each(_join_letters(lower), _latin)
        if joined != text:
            yield _reading(_name_way(how, "letters joined"), _changed_strings(text, joined))
    if not reading.stems.isdisjoint(_ROT13):
        yield _reading(_name_way(how, "rot13"), codecs.decode(text, "rot13"))
    if not reading.stems.isdisjoint(_BACKWARDS):
        yield _reading(_name_way(how, "read backwards"), END.join(part[::-1] for part in text.split(END)))


def _replace_each(text: str, change: Callable[[str], str]) -> str:
    """Replace every character beyond ASCII. Most texts hold only a few different ones, such as a dash or a quote."""
    if text.isascii():
        return text
    others = [character for character in set(text) if character > "\x7f"]
    if len(others) > _MANY_DIFFERENT:
        return text.translate({ord(character): change(character) for character in others})
    for character in sorted(others):
        text = text.replace(character, change(character))
    return text


@lru_cache(maxsize=4_096)
def _compatible(character: str) -> str:
    return "" if ord(character) in character_tables().invisible else unicodedata.normalize("NFKC", character).lower()


@lru_cache(maxsize=4_096)
def _plain_sign(character: str) -> str:
    """Replace a typographic dash, quote or blank. A text in which only these differ need not be searched twice."""
    return _latin(character) if unicodedata.category(character)[0] in "PSZ" else character


@lru_cache(maxsize=4_096)
def _latin(character: str) -> str:
    return unicodedata.normalize("NFKD", character).translate(character_tables().latin)


def _reading(how: str, text: str) -> tuple[Reading, list[str]]:
    words = _WORD.findall(text)
    return Reading(how, text, frozenset([word[:STEM] for word in words])), words


def _changed_strings(before: str, after: str) -> str:
    """Keep the strings that changed, each in its place, and empty the others: they were searched before."""
    pairs = zip(before.split(END), after.split(END), strict=True)
    return END.join("" if one == other else other for one, other in pairs)


def _name_way(how: str, name: str) -> str:
    return f"{name}, {how}" if how else name


def _join_letters(text: str) -> str:
    """Join letters that stand one by one (`i g n o r e`). Wider gaps remain as gaps between words."""

    def word(match: re.Match[str]) -> str:
        parts = _WORD_GAP.split(match[0]) if "  " in match[0] else [match[0]]
        return " ".join(_LETTER_GAP.sub("", part) for part in parts)

    return " ".join(_SPELT.sub(word, f" {text}").replace("_", " ").split())


def _decode(text: str, *, longest_word: int, numbers: int) -> Iterator[tuple[str, str]]:
    """Yield decodings that give words. Each string keeps its place, so that a finding can name it."""
    hidden = _hidden_tags(text)
    if hidden is not None:
        yield "tag characters", hidden
    if "&" in text and ";" in text:
        yield "entities", _decode_each(text, html.unescape)
    if text.count("%") > 4:
        yield "percent-encoded", _decode_each(text, urllib.parse.unquote)
    if "\\x" in text or "\\u00" in text:
        yield "escaped", _ESCAPED.sub(lambda match: _BYTE.sub(_character, match[0]), text)
    tokens = _TOKEN.findall(text) if longest_word >= _LONG_TOKEN else []
    words = {token: word for token in set(tokens) if (word := _from_token(token))}
    if words:
        yield "decoded", _TOKEN.sub(lambda match: words.get(match[0], match[0]), text)
    if numbers > 4 and _CODES.search(text):
        yield "character codes", _CODES.sub(lambda match: _from_codes(match[0]), text)
    parts = text.split(END)
    found = {number: respellings(part) for number, part in enumerate(parts) if len(part) >= _LONG_TOKEN}
    for name in SPELLINGS if any(found.values()) else ():
        changes = {number: others[name] for number, others in found.items() if name in others}
        if changes:
            yield name, END.join(changes.get(number, part).replace(END, "") for number, part in enumerate(parts))


def _character(byte: re.Match[str]) -> str:
    return chr(int(byte[1], 16) or 32)


def _decode_each(text: str, change: Callable[[str], str]) -> str:
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
    """Decode hex or base64. Return "" if it is neither, or holds no words."""
    try:
        if len(token) % 2 == 0 and not token.strip("0123456789abcdefABCDEF"):
            return _text_of(bytes.fromhex(token))
        plain = token.replace("-", "+").replace("_", "/")
        return _text_of(base64.b64decode(plain[: len(plain) // 4 * 4] + _padded_rest(plain)))
    except (ValueError, binascii.Error):
        return ""


def _padded_rest(token: str) -> str:
    rest = token[len(token) // 4 * 4 :]
    return rest + "=" * (4 - len(rest)) if len(rest) > 1 else ""


def _text_of(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    printable = sum(character.isalnum() or character in " .,:;=/+'-_~\n" for character in text)
    return text.replace(END, " ") if printable >= 0.9 * len(text) else ""


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


def visible(text: str, limit: int = _EXCERPT_CHARS) -> str:
    """Make a text safe to print: invisible and control characters are escaped, and a long text is cut."""
    parts: list[str] = []
    length = 0
    for character in text:
        plain = character == " " or (character.isprintable() and not _is_invisible(character))
        part = character if plain else f"\\u{{{ord(character):x}}}"
        length += len(part)
        if length > limit - 1:
            return "".join(parts) + "…"
        parts.append(part)
    return "".join(parts)


def _is_invisible(character: str) -> bool:
    return ord(character) in character_tables().invisible or unicodedata.category(character) in {"Mn", "Me"}
