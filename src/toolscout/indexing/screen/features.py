"""What the classifier sees of a text: words, pairs of words, concepts, pairs of concepts, and who is spoken to.

A concept stands for many words of many languages (`screen/concepts.toml`), so that an order counts however it is
phrased: "send the chat" and "forward what was said" are one pair of concepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from toolscout.data import read_toml

CONCEPT_FILE = "screen/concepts.toml"
MAX_SENTENCE = 320
"""How many characters of a sentence are read as one. A longer one is cut at a blank."""
STEM = 6
"""How many letters of a word count."""

_PAIR_DISTANCE = 100
_PAIRS_AHEAD = 8
_SENTENCE_END = re.compile(r"(?<=[.!?;:。！？])[ ]+|(?<=[。！？；])| [-*•] ")
_TOKEN = re.compile(r"[^\W_]+(?:['’][a-z]{1,2}\b)?")
_LINK = re.compile(r"https?://(?!(?:[\w-]{1,40}\.){0,3}example\.)[^\s\x00]{3,200}|\bwss?://[^\s\x00]{3,200}")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?!example\.)[\w-]{1,60}(?:\.[\w-]{1,30}){1,4}")
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
_DOT_PATH = re.compile(r"~/\.?\w|(?<![\w/])\.(?:env|ssh|aws|kube|netrc|npmrc|config|gnupg)\b|/etc/\w")
_BLANKLESS = re.compile("[\u0370-\u03ff\u0590-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TOPICS = frozenset(
    "talk prompt secret personal config file mail others money shell agent rules said result persistence".split()
)
_DEMANDS = frozenset("must should shall always never please remember ensure make do don't".split())
_ADDRESSED = {
    "you": frozenset(("you", "your", "yourself")),
    "user": frozenset(("user", "users", "user's", "person", "customer")),
    "agent": frozenset(("agent", "agents", "assistant", "model", "llm", "ai")),
}
_GAPS = (2, 3)
_WORDS_PER_STEP = 6
_LONGEST_STEP = 6
_VOWELS = frozenset("aeiou")
_THIRD_PERSON = re.compile(r"[a-z]{2,}(?:s|es)\b")


@dataclass(frozen=True, slots=True)
class ConceptLexicon:
    """The concepts of words, of phrases by their first word, and of words in scripts without blanks; and the verbs."""

    verbs: frozenset[str]
    words: Mapping[str, tuple[str, ...]]
    phrases: Mapping[str, Sequence[tuple[str, str]]]
    blankless: Mapping[str, str]
    blankless_regex: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its words and the concepts in it, each with its offset."""

    text: str
    words: tuple[str, ...]
    hits: tuple[tuple[int, str], ...]


@cache
def lexicon() -> ConceptLexicon:
    """Read the concepts, and add the inflected forms of English words."""
    words: dict[str, set[str]] = {}
    phrases: dict[str, list[tuple[str, str]]] = {}
    blankless: dict[str, str] = {}
    verbs: set[str] = set()
    for table, concepts in read_toml(CONCEPT_FILE).items():
        for concept, entries in concepts.items():
            single, *several = entries.split("|")
            if table == "scripts":
                blankless |= dict.fromkeys(single.split(), concept)
                continue
            if table == "verbs":
                verbs.update(single.split())
            for word in single.split():
                for form in _forms(word) if table in ("verbs", "nouns") else (word,):
                    words.setdefault(form, set()).add(concept)
            for phrase in several:
                phrases.setdefault(_first_word(phrase), []).append((phrase, concept))
    longest_first = sorted(blankless, key=len, reverse=True)
    return ConceptLexicon(
        verbs=frozenset(verbs),
        words={word: tuple(sorted(concepts)) for word, concepts in words.items()},
        phrases=phrases,
        blankless=blankless,
        blankless_regex=re.compile("|".join(map(re.escape, longest_first))),
    )


def _first_word(phrase: str) -> str:
    match = _TOKEN.search(phrase)
    return match[0] if match else phrase


def _forms(word: str) -> Iterator[str]:
    """Yield a word and its regular English inflections. A form that does not exist does no harm."""
    yield word
    if word.endswith("y") and word[-2] not in _VOWELS:
        stem = word[:-1]
        yield from (stem + "ies", stem + "ied", word + "ing")
    elif word.endswith("e"):
        yield from (word + "s", word + "d", word[:-1] + "ing")
    elif word.endswith(("s", "x", "ch", "sh")):
        yield from (word + "es", word + "ed", word + "ing")
    else:
        yield from (word + "s", word + "ed", word + "ing")
        if word[-1] in "bdglmnprt" and len(word) > 2 and word[-2] in _VOWELS:
            yield from (word + word[-1] + "ed", word + word[-1] + "ing")


def sentences(text: str) -> list[Sentence]:
    """Split a folded text into sentences, and find the concepts in each."""
    return [read_sentence(part) for whole in _SENTENCE_END.split(text) for part in _cut(whole.strip()) if part]


def first_sentence(text: str) -> Sentence:
    """Read the first sentence of a folded text."""
    return read_sentence(next(_cut(_SENTENCE_END.split(text, maxsplit=1)[0].strip())))


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > MAX_SENTENCE:
        end = sentence.rfind(" ", MAX_SENTENCE // 2, MAX_SENTENCE)
        end = end if end > 0 else MAX_SENTENCE
        yield sentence[:end]
        sentence = sentence[end:].lstrip()
    yield sentence


@lru_cache(maxsize=4_096)
def read_sentence(text: str) -> Sentence:
    """Find the words and concepts of one sentence."""
    table = lexicon()
    words: list[str] = []
    hits: list[tuple[int, str]] = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        words.append(word)
        concepts = table.words.get(word)
        if concepts is None and word[-2:] in ("'s", "’s"):
            concepts = table.words.get(word[:-2])
        if concepts:
            hits.extend((match.start(), concept) for concept in concepts)
        for phrase, concept in table.phrases.get(word, ()):
            if text.startswith(phrase, match.start()):
                hits.append((match.start(), concept))
    hits.extend(_signs(text))
    if not text.isascii() and _BLANKLESS.search(text):
        hits.extend((match.start(), table.blankless[match[0]]) for match in table.blankless_regex.finditer(text))
    hits.sort()
    return Sentence(text, tuple(words), tuple(hits))


def wording_features(sentence: Sentence) -> set[str]:
    """Return the stems of a sentence, pairs of adjacent ones, pairs with one or two words between them, and its mood.

    They depend on nothing else than the sentence.
    """
    if not sentence.words:
        return set()
    stems = [word[:STEM] for word in sentence.words]
    names = {*stems, *map(" ".join, pairwise(stems)), *_mood(sentence.text, sentence.words, sentence.hits)}
    for gap in _GAPS:
        names.update(map(" .. ".join, zip(stems, stems[gap:], strict=False)))
    names.add("^ returns" if _THIRD_PERSON.fullmatch(sentence.words[0]) else "^ " + stems[0])
    return names


def _mood(text: str, words: Sequence[str], hits: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield whether a sentence opens as an order or as a statement, whom it names, and how long it is.

    "Read the file" speaks to the model, "Reads the file" says what the tool does.
    """
    verbs, first, present = lexicon().verbs, words[0], set(words)
    mood = (
        "order" if first in verbs
        else "demand" if first in _DEMANDS
        else "statement" if first[:-1] in verbs and first[-1] == "s"
        else "address" if first == "you"
        else "other"
    )  # fmt: skip
    yield f"[opens {mood}]"
    yield " ".join((f"[opens {mood}] names", *(who for who, names in _ADDRESSED.items() if present & names)))
    yield f"[opens {mood}] {'code' if '`' in text else 'no code'}"
    yield f"[words {min(len(words) // _WORDS_PER_STEP, _LONGEST_STEP)}]"
    yield from {f"[opens {mood}] [{concept}]" for _, concept in hits}


def _signs(text: str) -> Iterator[tuple[int, str]]:
    if "://" in text:
        yield from ((match.start(), "link") for match in _LINK.finditer(text))
    if "@" in text:
        yield from ((match.start(), "mailbox") for match in _MAIL.finditer(text))
    if "/" in text or "." in text:
        yield from ((match.start(), "dot_path") for match in _DOT_PATH.finditer(text))
    if "." in text:
        yield from ((match.start(), "link") for match in _ADDRESS.finditer(text))
    if "`" in text:
        yield text.index("`"), "code"


def concepts_of(text: str) -> frozenset[str]:
    """Return the concepts of a text, such as the name and the first sentence of a tool."""
    return frozenset(concept for sentence in sentences(text) for _, concept in sentence.hits)


def features(passage: Sequence[Sentence], place: str, subject: frozenset[str]) -> set[str]:
    """Return the features of one or two adjacent sentences.

    `place` says what the text describes, `subject` are the concepts that the tool is about: a passage about mail is
    more telling in a tool about the weather.
    """
    names: set[str] = set()
    for sentence in passage:
        names |= wording_features(sentence)
        names |= concept_features(sentence, place, subject)
    for before, after in pairwise(passage):
        names.update(joint_features(before, after))
    return names


def concept_features(sentence: Sentence, place: str, subject: frozenset[str]) -> set[str]:
    """Return the features that concepts have in one place of a tool about a subject."""
    names: set[str] = set()
    hits = sentence.hits
    for number, (offset, concept) in enumerate(hits):
        names.add(f"[{concept}]")
        names.add(f"{place} [{concept}]")
        strange = concept in _TOPICS and concept not in subject
        if strange:
            names.add(f"strange [{concept}]")
        for other_offset, other in hits[number + 1 : number + 1 + _PAIRS_AHEAD]:
            if other == concept or other_offset - offset > _PAIR_DISTANCE:
                continue
            names.add(f"[{concept}] [{other}]")
            if strange or (other in _TOPICS and other not in subject):
                names.add(f"strange [{concept}] [{other}]")
    return names


def joint_features(before: Sentence, after: Sentence) -> set[str]:
    """Return the features that two adjacent sentences have together."""
    return {f"[{one}]. [{other}]" for _, one in before.hits[-6:] for _, other in after.hits[:6]}
