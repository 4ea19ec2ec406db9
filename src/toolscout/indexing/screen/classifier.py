"""A linear classifier beside the rules: it weighs the features of each passage of a definition.

`training/screen_classifier.py` makes the weights. They are text, so that a change of them can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp

from toolscout.data import read_data
from toolscout.indexing.screen.features import Sentence, concepts_of, features, sentences

WEIGHT_FILE = "screen/weights.tsv"
LEARNED = "reads-like-an-order"
"""The id that findings of the classifier carry in place of a rule's."""

_CUES = 4
_DOUBT = 4.0
_SUBJECT_CHARS = 400


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
    opening = sentences(" ".join(description[:_SUBJECT_CHARS].lower().split()))[:1]
    return concepts_of(label).union(concept for sentence in opening for _, concept in sentence.hits)


def passages(strings: Sequence[str], paths: Sequence[tuple[str, ...]]) -> Iterator[Passage]:
    """Yield the passages of a reading. The name of a parameter belongs to its description."""
    for number, (text, path) in enumerate(zip(strings, paths, strict=True)):
        if not text:
            continue
        place = "parameter" if path[0] == "inputSchema" else "description" if path[0] == "description" else "label"
        if place == "parameter" and path[-1] == "description" and len(path) > 2:
            text = f"{path[-2].replace('_', ' ').lower()}: {text}"
        parts = sentences(text)
        for start, sentence in enumerate(parts):
            pair = parts[start : start + 2]
            if sentence.hits:
                yield Passage(number, place, [sentence])
            if len(pair) > 1 and (sentence.hits or pair[1].hits):
                yield Passage(number, place, pair)


def find_order(
    strings: Sequence[str], paths: Sequence[tuple[str, ...]], subject: frozenset[str]
) -> OrderEvidence | None:
    """Return the passage of a reading with the highest score. None if there is none to weigh."""
    weights = load_weights()
    table = weights.features
    best: tuple[float, Passage, set[str]] | None = None
    for passage in passages(strings, paths):
        names = features(passage.sentences, passage.place, subject)
        score = weights.bias + sum([table[name] for name in names if name in table])
        if best is None or score > best[0]:
            best = score, passage, names
    if best is None:
        return None
    score, passage, names = best
    cues = sorted(names & weights.features.keys(), key=lambda name: (-weights.features[name], name))[:_CUES]
    return OrderEvidence(score, passage.string, " ".join(part.text for part in passage.sentences), tuple(cues))
