"""How text is read everywhere: words, stems, scripts, stop words, labels, negation words, and sizes in tokens.

Identifiers are split, case is folded, words are stemmed, and scripts without spaces are cut into pairs of characters.

>>> split_words("listS3Buckets")
['list', 's3', 'buckets']
>>> query_terms("please list all the S3 buckets")
['list', 's3', 'bucket']
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from typing import Any

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and another any anyone anything are around as at be because been before
    being below between both but by can cannot could did do does doing done don down during each either else etc
    even ever every few for from further had has have having he her here hers herself him himself his how however i
    if in into is it its itself just let ll many may maybe me might more most much must my myself neither no nor not
    now of off ok okay on once only onto or other our ours ourselves out over own per perhaps please rather re
    really s same shall she should since so some someone something soon still such t than thank thanks that the
    their theirs them themselves then there these they this those though through thus to together too toward towards
    under until up upon us ve very via want wants wanted was we well were what whatever when where whether which
    while who whom whose why will with within without would yes yet you your yours yourself
    able appreciate assist assistance curious desire eager excited give gonna got gotta hello help helpful hey hi
    hope hoping interested kindly know like looking love need needed needing needs pls provide specifically tell
    thinking trying use using wanna wish wondering
    """.split()
)
"""Words of a request that say nothing about the tool. They are dropped from queries, never from tools."""

_LONG_NAME = 5
NAME_LABELS = frozenset({"mcp", "server", "tool"})
"""Words that only label a name, as in `tool: create_issue`."""
SERVER_LABELS = NAME_LABELS | {"api", "service"}
"""Words that only label the name of a server, as in `GitHub MCP server`."""

NEGATIONS = r"do not|don['’]?t|never"
"""How a request negates a verb. A part of regular expressions, as is `CONTRASTS`."""
CONTRASTS = "instead of|rather than"
"""How a request names what it does not want beside what it wants."""

QUOTED = re.compile(r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|(?<!\w)'[^'\n]{1,200}'(?!\w)|`[^`\n]{1,200}`")
"""A quotation. Its text is content of the request and neither split nor cut."""

MIN_PART = 4
"""The shortest word that may match inside another. If shorter, `an` would be found in `manage`, `add` in `address`."""

MAX_CHARACTERS = 20_000
"""How many characters of a text are read for words."""


_SMALL = r"[^\W\d_A-Z]"
_WORD = re.compile(
    r"[A-Z]{2,}s(?![A-Za-z])"  # PRs, URLs
    r"|[A-Za-z]\d+[a-z](?![A-Za-z\d])"  # k8s, i18n
    rf"|[A-Z]+(?!{_SMALL})\d*"  # HTTP, S3
    rf"|[A-Z]?{_SMALL}+\d*"  # Word, word, base64, and the words of other alphabets
    r"|\d+[A-Za-z]{1,2}(?![A-Za-z])|\d+"  # 3d, 2FA, 2024
)
_BRAND = re.compile(
    r"(?<![A-Za-z\d])(?=[A-Za-z\d]{3,12}(?![A-Za-z\d]))(?![A-Z]+s?(?![A-Za-z\d]))"
    r"[A-Za-z][a-z\d]*[A-Z]+[a-z\d]*(?![A-Za-z\d])"
)
_UNSPACED = (
    r"\u0900-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0002ffff"
)
"""The scripts whose words are cut into pairs of characters, as the contents of a character class."""
HAN_AND_KANA = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
"""A run of Chinese or Japanese characters."""
_RUN = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_ACCENTS = re.compile(r"[\u0300-\u036f]")

_VOWELS = frozenset("aeiouy")
_ENDINGS = ("ion", "er", "or", "e")
_UNCHANGED = frozenset({"news", "series"})


def json_size(value: Any) -> int:
    """Count the characters of a value as compact JSON."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def count_tokens(value: Any) -> int:
    """Estimate the tokens of a value: the characters of its compact JSON divided by four, rounded up."""
    return tokens_of(json_size(value))


def tokens_of(characters: int) -> int:
    """Estimate the tokens of a number of characters."""
    return -(-characters // 4)


def shorten(text: str, limit: int = 200) -> str:
    """Cut a description at the end of a sentence or of a word."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[:limit]
    sentence = cut.rfind(". ")
    if sentence >= limit // 3:
        return cut[: sentence + 1]
    word = cut.rfind(" ")
    return (cut[:word] if word > 0 else cut) + "…"


def cut(text: str, limit: int) -> str:
    """Return the beginning of a text that is too long, marked with dots."""
    return text if len(text) <= limit else f"{text[:limit]} ..."


def fold(text: str) -> str:
    """Return a text in lower case and without accents, as the words of a query are compared with it."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text))).casefold()


@lru_cache(maxsize=65_536)
def spell_out(name: str) -> str:
    """Return a name as words: `sendEmail_v2` becomes `send email v2`."""
    return " ".join(split_words(name))


def query_words(query: str) -> list[str]:
    """Return the distinct words of a query in order, without stop words unless there is nothing else."""
    words = list(dict.fromkeys(split_words(query)))
    return [word for word in words if word not in STOP_WORDS] or words


def has_word(word: str, text: str) -> bool:
    """Tell whether a folded text contains a word as a whole word."""
    return word in text and _whole(word).search(text) is not None


def has_part(word: str, text: str) -> bool:
    """Tell whether a folded text contains a word: inside other words if it is long enough, else with an ending."""
    return word in text and (may_match_inside(word) or _inflected(word).search(text) is not None)


def may_match_inside(word: str) -> bool:
    """Tell whether a word may match inside another one. Words of scripts without spaces always may."""
    return len(word) >= MIN_PART or _IS_UNSPACED.search(word) is not None


@lru_cache(maxsize=1_024)
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


@lru_cache(maxsize=1_024)
def _inflected(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?:s|es|ed|ing)?(?!\w)")


def split_words(text: str) -> list[str]:
    """Return the words of a text in order, folded: `GitHub_listPRs` gives git, hub, list, pr."""
    text = text[:MAX_CHARACTERS]
    if text.isascii():
        return _split_cased(text)
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    plain = _FOREIGN.sub(lambda run: run[0].casefold(), unicodedata.normalize("NFC", plain))
    if not _IS_UNSPACED.search(plain):
        return _split_cased(plain)
    words: list[str] = []
    for run in _RUN.findall(plain):
        words.extend(_pairs(run) if _IS_UNSPACED.match(run) else _split_cased(run))
    return words


def terms(text: str) -> list[str]:
    """Return the stems of a text's words, repeated as often as they occur, and its short mixed words whole.

    `GitHub search` gives git, hub, search, github. Brands are written in one word as often as in two.
    """
    return [stem_word(word) for word in split_words(text) + _brands(text)]


def query_terms(text: str) -> list[str]:
    """Return the distinct stems of a request without stop words, or all of them if there is nothing else."""
    words = split_words(text) + _brands(text)
    telling = [word for word in words if word not in STOP_WORDS]
    return list(dict.fromkeys(stem_word(word) for word in telling or words))


def telling_terms(text: str) -> list[str]:
    """Return the distinct stems of a text without stop words and bare numbers."""
    words = [word for word in split_words(text) if word not in STOP_WORDS and not word.isdigit()]
    return list(dict.fromkeys(stem_word(word) for word in words))


def names_server(terms_asked: frozenset[str], title: str) -> bool:
    """Tell whether the terms of a request contain a server's name without labels, in one word or in several."""
    words, joined = _title(title)
    return bool(words) and (words <= terms_asked or joined in terms_asked)


def title_words(title: str) -> frozenset[str]:
    """Return the stems of a server's name without labels."""
    return _title(title)[0]


@lru_cache(maxsize=64)
def words_of_servers(servers: tuple[str, ...]) -> frozenset[str]:
    """Return the words of the names of servers that are long enough to be recognized: `boot` is no misspelt `bot`."""
    words = (word for server in servers for word in split_words(server) if len(word) >= _LONG_NAME)
    return frozenset(words) - SERVER_LABELS


@lru_cache(maxsize=65_536)
def _title(title: str) -> tuple[frozenset[str], str]:
    words = [term for term in telling_terms(title) if term not in _LABEL_STEMS]
    return frozenset(words), "".join(words)


def _brands(text: str) -> list[str]:
    return [] if text.islower() else [brand.lower() for brand in _BRAND.findall(text[:MAX_CHARACTERS])]


def _split_cased(text: str) -> list[str]:
    words: list[str] = _WORD.findall(text)
    return words if text.islower() else [_folded(word) for word in words]


def _folded(word: str) -> str:
    plural = len(word) > 2 and word[-1] == "s" and word[:-1].isupper()
    return word[:-1].lower() if plural else word.lower()


def _pairs(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


@lru_cache(maxsize=200_000)
def stem_word(word: str) -> str:
    """Cut plural, -ing, -ed and a few nouns of action: creates, creating, created, creation, creator give creat.

    It is lighter than Porter's rules, which merge words that tools keep apart. Measured, it ranks as well or better.
    """
    if len(word) <= 3 or word in _UNCHANGED or not word.isascii():
        return word
    if word[-1] == "s":
        word = _singular(word)
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            rest = word[: -len(ending)]
            if not _VOWELS.isdisjoint(rest):
                word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    if word.endswith("ment") and len(word) >= 8:
        word = word[:-4]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:-1] + "i" if word[-1] == "y" and word[-2] not in _VOWELS and len(word) > 3 else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word if word[-2] in "sui" else word[:-1]


_LABEL_STEMS = frozenset(map(stem_word, SERVER_LABELS))
