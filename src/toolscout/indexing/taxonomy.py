"""Infer category, tags and capabilities for tools whose servers send none, from the table `data/taxonomy.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from toolscout.data import digest_texts, read_data, read_toml

GENERAL = "general"

_FILE = "taxonomy.toml"
_PRODUCT, _NOUN, _HINT = 0, 1, 2
_IN_NAME, _IN_SERVER, _IN_DESCRIPTION = (12, 8, 4), (12, 6, 3), (2, 2, 1)
"""What a product, a noun and a hint weigh in each place."""
_MIN_SCORE, _MIN_TAG_SCORE = 6, 4
_DESCRIPTION_WORDS, _OPENING_WORDS = 40, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredLabels:
    """What the words of a tool say about it: one category, tags within that category, and what the tool can do."""

    category: str
    tags: tuple[str, ...]
    capabilities: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyCategory:
    """One category: the words for each of its tags, and hints, which decide nothing alone."""

    description: str
    hints: tuple[str, ...]
    tags: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """The table, and the lookups that inference needs."""

    categories: Mapping[str, TaxonomyCategory]
    capabilities: Mapping[str, tuple[str, ...]]
    """Verbs by capability."""
    evidence: Mapping[str, Sequence[tuple[str, str, int]]]
    """Word to the category, the tag ("" for a hint) and the kind of word that it stands for."""
    singulars: Mapping[str, str]
    """Each word of the evidence and its plural, to the word."""
    name_verbs: Mapping[str, str]
    """Verb to capability."""
    description_verbs: Mapping[str, str]
    """The same with the third person ("returns")."""


@cache
def load_taxonomy() -> Taxonomy:
    """Read the table."""
    table = read_toml(_FILE)
    categories = {
        name: TaxonomyCategory(
            description=row["description"],
            hints=tuple(row.get("hints", "").split()),
            tags={tag: tuple(words.split()) for tag, words in row.get("tags", {}).items()},
        )
        for name, row in table["category"].items()
    }
    capabilities = {name: tuple(verbs.split()) for name, verbs in table["capability"].items()}
    evidence: dict[str, list[tuple[str, str, int]]] = {}
    for name, category in categories.items():
        for tag, words in (*category.tags.items(), ("", category.hints)):
            for word in words:
                kind = _PRODUCT if word[0].isupper() else _NOUN if tag else _HINT
                evidence.setdefault(word.lower(), []).append((name, tag, kind))
    verbs = {verb: name for name, items in capabilities.items() for verb in items}
    return Taxonomy(
        categories=categories,
        capabilities=capabilities,
        evidence=evidence,
        singulars={_plural(word): word for word in evidence} | {word: word for word in evidence},
        name_verbs=verbs,
        description_verbs={_plural(verb): name for verb, name in verbs.items()} | verbs,
    )


@cache
def taxonomy_version() -> str:
    """Return a hash of the table. It is part of a tool's stamp, so that an edit of the table labels tools anew."""
    return digest_texts(read_data(_FILE))


def infer_labels(*, name: Sequence[str], server: Sequence[str], description: Sequence[str]) -> InferredLabels:
    """Infer labels from the lower-case words of a tool's name, server and description."""
    taxonomy = load_taxonomy()
    singulars, evidence = taxonomy.singulars, taxonomy.evidence
    scores: dict[tuple[str, str], int] = {}
    opening = description[:_DESCRIPTION_WORDS]
    for weights, words in (
        (_IN_NAME, _with_pairs(name)),
        (_IN_SERVER, _with_pairs(server)),
        (_IN_DESCRIPTION, opening),
    ):
        for word in {singulars[word] for word in words if word in singulars}:
            for category, tag, kind in evidence[word]:
                scores[category, ""] = scores.get((category, ""), 0) + weights[kind]
                if tag:
                    scores[category, tag] = scores.get((category, tag), 0) + weights[kind]
    ranked = ((-score, category) for (category, tag), score in scores.items() if not tag and score >= _MIN_SCORE)
    _, best = min(ranked, default=(0, GENERAL))
    tags = sorted(tag for (owner, tag), score in scores.items() if owner == best and tag and score >= _MIN_TAG_SCORE)
    return InferredLabels(category=best, tags=tuple(tags), capabilities=_capabilities(taxonomy, name, description))


def describe_category(name: str) -> str:
    """Describe a category in one sentence, also one that is not in the table."""
    category = load_taxonomy().categories.get(name)
    return category.description if category else f"Tools that their authors or the config put under {name}."


def _capabilities(taxonomy: Taxonomy, name: Sequence[str], description: Sequence[str]) -> tuple[str, ...]:
    """Return those of the first verb of the name and of verbs after "and" or "or", else of the description."""
    verbs = taxonomy.name_verbs
    places = [place for place, word in enumerate(name) if word in verbs]
    if places:
        return tuple(
            sorted({verbs[name[place]] for place in places if place == places[0] or name[place - 1] in ("and", "or")})
        )
    opening = description[:_OPENING_WORDS]
    return tuple(taxonomy.description_verbs[word] for word in opening if word in taxonomy.description_verbs)[:1]


def _with_pairs(words: Sequence[str]) -> tuple[str, ...]:
    return (*words, *(f"{left}-{right}" for left, right in pairwise(words)))


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeo":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
