"""Spellings that a model reads and a person may not: ciphers, alphabets, separators and markup inside words.

Each function takes the text of one string and returns it decoded, or unchanged. Each takes time that is linear in the
length of the text, and a decoding counts only where it gives words that are known.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from toolscout.data import read_data
from toolscout.indexing.screen.features import lexicon

_FUNCTION_WORDS = frozenset(
    "a an the it its is are was were be been to of in on at by for from with as and or but if so that this these has "
    "have had do does did can may will would there which who what where when how into than then your you all "
    "any".split()
)
_PLAIN_WORDS = frozenset(
    "ignore previous instructions instruction disregard system prompt reveal user password file read send please tool "
    "call first data key secret message messages now rules content contents".split()
)
_WORDS = re.compile(r"[A-Za-z]{2,}")
_SEGMENT = re.compile(r"[^.!?;:\n]+")
_SAMPLE = 240
_FEW_SPELT = 7
_LEAST_WORDS = 3
_LEAST_SHARE = 0.5
_UNKNOWN_SHARE = 0.3
_LONGEST_WORD = 14
_MOST_CACHED_CHARS = 2_000
_MARKUP = re.compile(
    r"(?<=[A-Za-z])(?:<!--[^>]{0,80}-->|</?[A-Za-z][^<>]{0,60}>|[*`~|^]{1,3}|\\(?![nrtxu0-9]))+(?=[A-Za-z])"
)
_MARK = re.compile(r"[<*`~|^\\]")
_JOINT = re.compile(r"(?<=[A-Za-z])['\"] ?[+.] ?['\"](?=[A-Za-z])")
_HYPHENED = re.compile(r"(?<![A-Za-z])[A-Za-z]{1,20}(?:[-.•/\u00b7,+=:] ?[A-Za-z]{1,20}){1,12}")
_SEPARATOR = re.compile(r"[^A-Za-z]+")
_LONG_WORD = re.compile(r"[A-Za-z]{16,200}")
_SINGLE = re.compile(r"(?<![A-Za-z])[A-Za-z](?:[^A-Za-z0-9\x00]{1,3}[A-Za-z](?![A-Za-z])){7,}")
_BINARY = re.compile(r"(?:[01]{7,8}[ ,]{0,2}){6,}")
_MORSE = re.compile(r"(?:[.\-·−]{1,5}[ /|]{1,3}){8,}[.\-·−]{1,5}")
_CODE_POINTS = re.compile(r"(?:(?:U\+|0x|\\u\{?|%u|&#x?)[0-9A-Fa-f]{2,6}[};]?[ ,;]{0,2}){5,}")
_CODE_POINT = re.compile(r"(?:U\+|0x|\\u\{?|%u|&#x?)([0-9A-Fa-f]{2,6})")
_OCTAL = re.compile(r"(?:\\[0-3]?[0-7]{2}){5,}")
_QUOTED = re.compile(r"(?:=[0-9A-F]{2}){5,}")
_BASE32 = re.compile(r"\b[A-Z2-7]{24,}={0,6}")
_BASE85 = re.compile(r"<~[!-u\s]{10,}~>")
_BROKEN_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4,76}[ \n]{1,2}){2,}[A-Za-z0-9+/]{2,76}={0,2}")
_INNER_CAPITAL = re.compile("[a-z0-9][A-Z]")
_MORSE_LETTERS = dict(
    zip(
        ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- "
        "--..".split(),
        string.ascii_lowercase,
        strict=True,
    )
)
_NATO = {
    word: word[0]
    for word in "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa "
    "quebec romeo sierra tango uniform victor whiskey xray yankee zulu alfa juliet".split()
}
_UPSIDE_DOWN = str.maketrans("ɐqɔpǝɟɓƃɥᴉıɾʞlɯuodbɹsʇnʌʍxʎz", "abcdefgghiijklmnopqrstuvwxyz")
_BRAILLE = {
    chr(0x2800 + dots): letter
    for dots, letter in zip(
        (1, 3, 9, 25, 17, 11, 27, 19, 10, 26, 5, 7, 13, 29, 21, 15, 31, 23, 14, 30, 37, 39, 58, 45, 61, 53),
        string.ascii_lowercase,
        strict=True,
    )
}
_SIGNS = {
    row + number: letter for row in (0x1F150, 0x1F170, 0x1F1E6) for number, letter in enumerate(string.ascii_lowercase)
}
_SHIFTS = {
    number: str.maketrans(
        string.ascii_letters,
        string.ascii_lowercase[number:]
        + string.ascii_lowercase[:number]
        + string.ascii_uppercase[number:]
        + string.ascii_uppercase[:number],
    )
    for number in range(1, 26)
}
_MIRRORED = str.maketrans(string.ascii_letters, string.ascii_lowercase[::-1] + string.ascii_uppercase[::-1])
_ROT47 = {code: chr(33 + (code - 33 + 47) % 94) for code in range(33, 127)}


@cache
def _known_words() -> frozenset[str]:
    english = {word for word in lexicon().words if word.isascii() and len(word) > 1}
    return frozenset(english | _FUNCTION_WORDS | _PLAIN_WORDS)


@cache
def _english_words() -> frozenset[str]:
    return _known_words() | {word for word in read_data("languages/en.txt").split() if len(word) > 2}


def _share(text: str) -> float:
    """Return how much of a text is English words, by letters."""
    words = _WORDS.findall(text.lower())
    letters = sum(map(len, words))
    return sum(map(len, filter(_english_words().__contains__, words))) / letters if letters else 0.0


def without_markup(text: str) -> str:
    """Remove markup and quotes that divide a word: `ig<b>no</b>re`, `ig**no**re`, `"ig" + "nore"`."""
    if _MARK.search(text):
        text = _MARKUP.sub("", text)
    return _JOINT.sub("", text) if '"' in text or "'" in text else text


def joined(text: str) -> str:
    """Join words that separators divide, and words that are spelt letter by letter."""

    def letters(match: re.Match[str]) -> str:
        separators = _SEPARATOR.findall(match[0])
        usual = max(set(separators), key=separators.count)
        parts = re.split("|".join(re.escape(item) for item in sorted(set(separators) - {usual})) or r"\Z.", match[0])
        return " ".join(_split_words(part.replace(usual, "")) for part in parts)

    def word(match: re.Match[str]) -> str:
        whole = _SEPARATOR.sub("", match[0])
        parts = _SEPARATOR.split(match[0])
        known = _known_words()
        return whole if whole.lower() in known and not all(part.lower() in known for part in parts) else match[0]

    return _HYPHENED.sub(word, _SINGLE.sub(letters, text))


def divided(text: str) -> str:
    """Divide words that were written without blanks."""
    return _LONG_WORD.sub(lambda match: _split_words(match[0]), text)


def _split_words(text: str) -> str:
    """Divide a run of letters into known words, the longest that fit. Return it unchanged if much is left over."""
    known, lower = _known_words(), text.lower()
    best: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(lower) + 1):
        choices = [(best[end - 1][0] + 2, end - 1)]
        choices += [
            (best[start][0] + (1 if end - start > 1 else 2), start)
            for start in range(max(0, end - _LONGEST_WORD), end)
            if lower[start:end] in known
        ]
        best.append(min(choices))
    words, end = [], len(lower)
    while end:
        start = best[end][1]
        words.append(text[start:end])
        end = start
    words.reverse()
    whole = sum(len(word) for word in words if len(word) > 1)
    return " ".join(words) if whole >= 0.9 * len(text) else text


def deciphered(text: str) -> str:
    """Read segments that hold hardly a known word by shifts of the alphabet, mirrored, or backwards."""

    def segment(match: re.Match[str]) -> str:
        part = match[0]
        sample = part[:_SAMPLE]
        if not _is_garbled(sample):
            return part
        best = max(_CIPHERS, key=lambda cipher: _share(cipher(sample)))
        return best(part) if _share(best(sample)) >= _LEAST_SHARE else part

    return _SEGMENT.sub(segment, text)


def _is_garbled(sample: str) -> bool:
    """Tell whether a text has words, but hardly an English one."""
    if sample.count(" ") < _LEAST_WORDS - 1 or not sample.isascii():
        return False
    words = sample.lower().split()
    if 2 * sum(map(_english_words().__contains__, words)) > len(words):
        return False
    return len(_WORDS.findall(sample)) >= _LEAST_WORDS and _share(sample) <= _UNKNOWN_SHARE


def _shift(number: int) -> Callable[[str], str]:
    return lambda text: text.translate(_SHIFTS[number])


_CIPHERS: tuple[Callable[[str], str], ...] = (
    *(_shift(number) for number in _SHIFTS),
    lambda text: text.translate(_MIRRORED),
    lambda text: text[::-1],
)


def turned_words(text: str) -> str:
    """Read a text whose words are written backwards, each in its place."""
    sample = text[:_SAMPLE]
    if not _is_garbled(sample) or _share(sample[::-1]) < _LEAST_SHARE:
        return text
    return " ".join(word[::-1] for word in text.split(" "))


def rot47(text: str) -> str:
    """Read lines by rot47, which moves signs too: there, `e` is `6` and `o` is `@`."""
    if "6" not in text or "@" not in text or "E" not in text:
        return text
    return "\n".join(_rot47_line(line) for line in text.split("\n"))


def _rot47_line(line: str) -> str:
    sample = line[:_SAMPLE]
    plain = sample.translate(_ROT47)
    return line.translate(_ROT47) if _share(plain) >= _LEAST_SHARE > _share(sample) else line


def from_numbers(text: str) -> str:
    """Decode runs of binary digits, code points (`U+0069`, `0x69`), octal escapes and quoted-printable."""
    if "01" in text and "10" in text:
        text = _BINARY.sub(lambda match: _characters(re.findall("[01]{7,8}", match[0]), 2), text)
    if any(sign in text for sign in ("U+", "0x", "\\u", "%u", "&#")):
        text = _CODE_POINTS.sub(lambda match: _characters(_CODE_POINT.findall(match[0]), 16), text)
    if "\\" in text:
        text = _OCTAL.sub(lambda match: _characters(match[0].split("\\")[1:], 8), text)
    if "=" in text:
        text = _QUOTED.sub(lambda match: _characters(match[0].split("=")[1:], 16), text)
    return text


def _characters(codes: list[str], radix: int) -> str:
    return "".join(chr(code) if 31 < (code := int(item, radix)) < 0x110000 else " " for item in codes)


def from_bases(text: str) -> str:
    """Decode base32, Ascii85, and base64 that is broken into lines or groups."""
    text = _BASE32.sub(lambda match: _decoded(match[0], base64.b32decode, 8), text)
    if "<~" in text:
        text = _BASE85.sub(lambda match: _decoded(match[0], lambda data: base64.a85decode(data, adobe=True), 0), text)
    return _BROKEN_BASE64.sub(_from_groups, text) if _INNER_CAPITAL.search(text) else text


def _from_groups(match: re.Match[str]) -> str:
    """Decode base64 in groups. Plain words look like it too, but hardly ever with capitals inside of them."""
    return _decoded(match[0], base64.b64decode, 4) if _INNER_CAPITAL.search(match[0]) else match[0]


def _decoded(token: str, decode: Callable[[str], bytes], block: int) -> str:
    bare = "".join(token.split()).rstrip("=") if block else token
    padded = bare + "=" * (-len(bare) % block) if block else bare
    try:
        plain = decode(padded).decode("utf-8")
    except (ValueError, binascii.Error):
        return token
    return plain if _share(plain) >= _LEAST_SHARE else token


def from_alphabets(text: str) -> str:
    """Read Morse code, the spelling alphabet, braille, regional indicators, and letters turned upside down."""
    if "-." in text or "−" in text or "·" in text:
        text = _MORSE.sub(_from_morse, text)
    if "echo" in text.lower():
        spelt = [_NATO.get(word.strip(",.-\n").lower(), "") for word in text.split()]
        if sum(map(bool, spelt)) > _FEW_SPELT:
            text = " ".join(_split_words(part) for part in "".join(letter or " " for letter in spelt).split())
    if text.isascii():
        return text
    if any("\u2800" <= character <= "\u28ff" for character in text):
        text = text.translate({ord(sign): letter for sign, letter in _BRAILLE.items()} | {0x2800: " "})
    if any("\U0001f150" <= character <= "\U0001f1ff" for character in text):
        text = text.translate(_SIGNS)
    turned = text.translate(_UPSIDE_DOWN)[::-1]
    return turned if turned[::-1] != text and _share(turned) >= _LEAST_SHARE > _share(text) else text


def _from_morse(match: re.Match[str]) -> str:
    words = re.split(r" ?[/|] ?| {2,}", match[0].replace("·", ".").replace("−", "-"))
    return " ".join("".join(_MORSE_LETTERS.get(sign, "") for sign in word.split()) for word in words)


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "markup removed": without_markup,
    "separators removed": joined,
    "words divided": divided,
    "deciphered": deciphered,
    "words backwards": lambda text: _SEGMENT.sub(lambda match: turned_words(match[0]), text),
    "rot47": rot47,
    "character codes": from_numbers,
    "decoded": from_bases,
    "other alphabet": from_alphabets,
}
"""The spellings by the names that findings use."""


def respellings(text: str) -> Mapping[str, str]:
    """Return the other spellings of a text by name. Tools of one server share many texts, but no long ones."""
    return _cached_respellings(text) if len(text) <= _MOST_CACHED_CHARS else _respellings(text)


@lru_cache(maxsize=2_048)
def _cached_respellings(text: str) -> Mapping[str, str]:
    return _respellings(text)


def _respellings(text: str) -> Mapping[str, str]:
    return {name: other for name, respell in SPELLINGS.items() if (other := respell(text)) != text}
