"""A linear classifier beside the rules: it weighs the features of each passage of a definition.

`training/screen_classifier.py` makes the weights. They are text, so that a change of them can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, log

from toolscout.data import read_data
from toolscout.indexing.screen.features import (
    Sentence,
    concept_features,
    concepts_of,
    first_sentence,
    joint_features,
    read_sentence,
    sentences,
    wording_features,
)

WEIGHT_FILE = "screen/weights.tsv"
LEARNED = "reads-like-an-order"
"""The id that findings of the classifier carry in place of a rule's."""

_CUES = 4
_DOUBT = 4.0
_SUBJECT_CHARS = 400
_LENGTH_WEIGHT = 0.8
_FEW_PASSAGES, _MANY_PASSAGES = 6, 60


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each feature, the bias, and the scores from which a tool is quarantined.

    A false alarm about a server that the operator trusts costs more than one about a stranger's, and is less likely
    to be an attack. So the two have thresholds of their own.
    """

    features: Mapping[str, float]
    bias: float
    untrusted: float
    trusted: float

    @property
    def certain(self) -> float:
        """The score below which a definition holds no order, even if a rule finds words of one."""
        return self.untrusted - _DOUBT


@dataclass(frozen=True, slots=True)
class OrderEvidence:
    """The most suspicious passage of a reading: its score, the number of its string, its text and strongest cues."""

    score: float
    string: int
    text: str
    cues: tuple[str, ...]

    @property
    def reason(self) -> str:
        """What an operator is told."""
        likelihood = 1 / (1 + exp(-min(self.score, 20.0)))
        return f"It reads like an order to the model ({likelihood:.2f}), by {', '.join(self.cues)}."


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence, or two adjacent ones, of one string of a definition."""

    string: int
    place: str
    sentences: Sequence[Sentence]


@cache
def load_weights() -> Weights:
    """Read the weights."""
    weights: dict[str, float] = {}
    for line in read_data(WEIGHT_FILE).splitlines():
        if line and not line.startswith("#"):
            name, weight = line.split("\t")
            weights[name] = float(weight)
    bias, untrusted, trusted = (weights.pop(name) for name in ("(bias)", "(untrusted)", "(trusted)"))
    return Weights(weights, bias, untrusted, trusted)


def subject_of(name: str, title: str, description: str) -> frozenset[str]:
    """Return the concepts that a tool is about, by its name, its title and its first sentence."""
    label = f"{name} {title}".replace("_", " ").replace("-", " ").lower()
    opening = first_sentence(" ".join(description[:_SUBJECT_CHARS].lower().split()))
    return concepts_of(label).union(concept for _, concept in opening.hits)


def subject_of_strings(strings: Sequence[str], paths: Sequence[tuple[str, ...]]) -> frozenset[str]:
    """Return the subject of a definition as it is read: a disguise of its opening must not hide what it is about."""
    labels = {path: text for path, text in zip(paths, strings, strict=True) if len(path) == 1}
    return subject_of(*(labels.get((name,), "") for name in ("name", "title", "description")))


def places(strings: Sequence[str], paths: Sequence[tuple[str, ...]]) -> Iterator[tuple[int, str, list[Sentence]]]:
    """Yield the number, the place and the sentences of each string. The name of a parameter belongs to its text."""
    for number, (text, path) in enumerate(zip(strings, paths, strict=True)):
        if not text:
            continue
        place = "parameter" if path[0] == "inputSchema" else "description" if path[0] == "description" else "label"
        if place == "parameter" and path[-1] == "description" and len(path) > 2:
            text = f"{path[-2].replace('_', ' ').lower()}: {text}"
        yield number, place, sentences(text)


def passages(strings: Sequence[str], paths: Sequence[tuple[str, ...]]) -> Iterator[Passage]:
    """Yield the passages of a reading."""
    for number, place, parts in places(strings, paths):
        for start, sentence in enumerate(parts):
            pair = parts[start : start + 2]
            if sentence.hits:
                yield Passage(number, place, [sentence])
            if len(pair) > 1 and (sentence.hits or pair[1].hits):
                yield Passage(number, place, pair)


def length_allowance(count: int) -> float:
    """Return what a definition of so many passages may score more: the highest of many scores is higher by chance."""
    return _LENGTH_WEIGHT * log(min(max(count, _FEW_PASSAGES), _MANY_PASSAGES))


@lru_cache(maxsize=4_096)
def _weigh_wording(sentence: str) -> Mapping[str, float]:
    """Return the weights of those features of a sentence that depend on nothing else. Tools of a server share many."""
    table = load_weights().features
    return {name: table[name] for name in wording_features(read_sentence(sentence)) if name in table}


def _weigh(sentence: Sentence, place: str, subject: frozenset[str]) -> dict[str, float]:
    table = load_weights().features
    weighed = dict(_weigh_wording(sentence.text))
    for name in concept_features(sentence, place, subject):
        if name in table:
            weighed[name] = table[name]
    return weighed


def find_order(
    strings: Sequence[str], paths: Sequence[tuple[str, ...]], subject: frozenset[str]
) -> OrderEvidence | None:
    """Return the passage of a reading with the highest score. None if there is none to weigh."""
    weights = load_weights()
    table = weights.features
    best: tuple[float, int, str, dict[str, float]] | None = None
    count = 0
    for number, place, parts in places(strings, paths):
        telling = [bool(sentence.hits) for sentence in parts]
        before: dict[str, float] = {}
        score_before = 0.0
        for start, sentence in enumerate(parts):
            if not any(telling[max(0, start - 1) : start + 2]):
                continue
            weighed = _weigh(sentence, place, subject)
            score = sum(weighed.values())
            if telling[start]:
                count += 1
                if best is None or score > best[0]:
                    best = score, number, sentence.text, weighed
            if start and (telling[start] or telling[start - 1]):
                count += 1
                first = parts[start - 1]
                joint = {name: table[name] for name in joint_features(first, sentence) if name in table}
                together = score_before + score + sum(joint.values())
                together -= sum([weighed[name] for name in before.keys() & weighed.keys()])
                if best is None or together > best[0]:
                    best = together, number, f"{first.text} {sentence.text}", before | weighed | joint
            before, score_before = weighed, score
    if best is None:
        return None
    score, number, text, names = best
    cues = sorted(names, key=lambda name: (-names[name], name))[:_CUES]
    return OrderEvidence(weights.bias + score - length_allowance(count), number, text, tuple(cues))
