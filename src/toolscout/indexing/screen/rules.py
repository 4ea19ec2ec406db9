"""The rules of the screen, read from `toolscout/data/screen`. The README of that folder describes the files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal, get_args

from toolscout.data import digest_texts, read_data, read_toml
from toolscout.indexing.screen.characters import CHARACTER_FILE, CHECKS, Span
from toolscout.indexing.screen.classifier import WEIGHT_FILE
from toolscout.indexing.screen.features import CONCEPT_FILE

Severity = Literal["quarantine", "notice"]

STEM = 5
"""How many letters of a word are compared with a cue."""

_RULE_FILES = ("screen/orders.toml", "screen/steering.toml", "screen/disguise.toml", CHARACTER_FILE)
_LANGUAGE_FILE = "screen/languages.toml"
_RULE_FIELDS = {"id", "sentence", "severity", "pattern", "raw_pattern", "check"}
_PATTERN_FIELDS = {"regex", "cues", "languages", "beyond_ascii"}
_NAME = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Cue:
    """What a text must hold before a pattern is tried: a word with one of these stems, or one of these strings."""

    stems: frozenset[str]
    signs: tuple[str, ...]

    def is_in(self, stems: frozenset[str], text: str) -> bool:
        """Tell whether the text holds the cue. `stems` are those of its words."""
        return not self.stems.isdisjoint(stems) or any(sign in text for sign in self.signs)


@dataclass(frozen=True)
class Pattern:
    """A regular expression that is tried only where all of its cues occur. It is compiled when it is first tried."""

    source: str
    cues: tuple[Cue, ...] = ()
    languages: tuple[str, ...] = ("en",)
    beyond_ascii: bool = False

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self.source)

    def find(self, stems: frozenset[str], text: str) -> Span | None:
        """Return where the pattern matches first."""
        for cue in self.cues:
            if not cue.is_in(stems, text):
                return None
        match = self.regex.search(text)
        return match.span() if match else None

    def find_raw(self, text: str) -> Span | None:
        """Return where the pattern matches first in a text as it was sent."""
        return None if self.beyond_ascii and text.isascii() else self.find(frozenset(), text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRule:
    """One rule: `patterns` are searched in every reading of a text, `raw` once in the text as it was sent."""

    id: str
    sentence: str
    severity: Severity
    patterns: tuple[Pattern, ...] = ()
    raw: Callable[[str], Span | None] | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules in the order of docs/trust.md, with an index of the patterns by their first cue."""

    rules: tuple[ScreenRule, ...]
    patterns: tuple[tuple[ScreenRule, Pattern], ...]
    by_stem: Mapping[str, Sequence[int]]
    by_sign: Sequence[tuple[str, int]]
    by_ascii_sign: Sequence[tuple[str, int]]
    stems: frozenset[str]

    def candidates(self, stems: frozenset[str], text: str) -> list[int]:
        """Return the numbers of the patterns whose first cue is in the text. For most texts these are few."""
        numbers = {number for stem in self.stems & stems for number in self.by_stem[stem]}
        signs = self.by_ascii_sign if text.isascii() else self.by_sign
        numbers.update(number for sign, number in signs if sign in text)
        return sorted(numbers)


@cache
def load_rules() -> RuleSet:
    """Read the rules and index their patterns. Raise ValueError with the name of the rule for one that is wrong."""
    extra: dict[str, list[Pattern]] = {}
    table = read_toml(_LANGUAGE_FILE)
    for row in table["pattern"]:
        rule_id = row.pop("rule")
        extra.setdefault(rule_id, []).append(_read_pattern(row, table, rule_id))
    rules = [
        _read_rule(row, table, extra.pop(row.get("id", ""), []))
        for name in _RULE_FILES
        for table in [read_toml(name)]
        for row in table["rule"]
    ]
    if extra or len({rule.id for rule in rules}) != len(rules):
        raise ValueError(f"a rule comes twice, or does not exist: {', '.join(extra) or 'see the ids'}")
    patterns = tuple((rule, pattern) for rule in rules for pattern in rule.patterns)
    by_stem: dict[str, list[int]] = {}
    by_sign: list[tuple[str, int]] = []
    for number, (_, pattern) in enumerate(patterns):
        for stem in pattern.cues[0].stems:
            by_stem.setdefault(stem, []).append(number)
        by_sign.extend((sign, number) for sign in pattern.cues[0].signs)
    return RuleSet(
        rules=tuple(rules),
        patterns=patterns,
        by_stem=by_stem,
        by_sign=by_sign,
        by_ascii_sign=[item for item in by_sign if item[0].isascii()],
        stems=frozenset(by_stem),
    )


@cache
def screen_version() -> str:
    """Return a hash of the rules and of the code of this package. Where it changes, tools are screened again.

    The code counts because it decides how a text is read. Screening takes a fraction of a millisecond per tool, so
    a needless round after an upgrade costs less than a version number that someone forgot to raise.
    """
    names = sorted(item.name for item in files(__package__).iterdir() if item.name.endswith(".py"))
    code = [files(__package__).joinpath(name).read_text("utf-8") for name in names]
    return digest_texts(*map(read_data, (*_RULE_FILES, _LANGUAGE_FILE, CONCEPT_FILE, WEIGHT_FILE)), *code)


def _read_rule(row: Mapping[str, Any], table: Mapping[str, Any], extra: Sequence[Pattern]) -> ScreenRule:
    rule_id = str(row.get("id"))
    _refuse_unknown(row, _RULE_FIELDS, rule_id)
    patterns = tuple(_read_pattern(item, table, rule_id) for item in row.get("pattern", ()))
    raw_patterns = [_read_pattern(item, table, rule_id) for item in row.get("raw_pattern", ())]
    check = row.get("check")
    if sum(map(bool, (patterns, raw_patterns, check))) != 1 or len(raw_patterns) > 1:
        raise ValueError(f"rule {rule_id} needs patterns, or one raw pattern, or a check")
    if not all(pattern.cues for pattern in patterns):
        raise ValueError(f"rule {rule_id} has a pattern without cues")
    if not row.get("sentence") or row.get("severity") not in get_args(Severity) or (check and check not in CHECKS):
        raise ValueError(f"rule {rule_id} has no sentence, or an unknown severity or check")
    return ScreenRule(
        id=rule_id,
        sentence=row["sentence"],
        severity=row["severity"],
        patterns=(*patterns, *extra),
        raw=raw_patterns[0].find_raw if raw_patterns else CHECKS[check] if check else None,
    )


def _read_pattern(row: Mapping[str, Any], table: Mapping[str, Any], rule_id: str) -> Pattern:
    _refuse_unknown(row, _PATTERN_FIELDS, rule_id)
    fragments, words = table.get("fragment", {}), table.get("words", {})
    try:
        regex = _NAME.sub(lambda match: _joined(fragments[match[1]]), _joined(row["regex"]))
        cues = tuple(_read_cue(group, words) for group in row.get("cues", ()))
    except KeyError as error:
        raise ValueError(f"rule {rule_id} names {error}, which does not exist") from None
    regex = re.sub(r"~~(\d+)", r"[^\\0]{0,\1}?", regex)
    regex = re.sub(r"~(\d+)", r"[^\\0.!?;:]{0,\1}?", regex)
    return Pattern(regex, cues, tuple(row.get("languages", ("en",))), row.get("beyond_ascii", False))


def _read_cue(group: Sequence[str], words: Mapping[str, Sequence[str]]) -> Cue:
    items = [item for name in group for item in (words[name[1:-1]] if _NAME.fullmatch(name) else [name])]
    plain = [item for item in items if item.isascii() and item.isalnum()]
    return Cue(frozenset(item[:STEM] for item in plain), tuple(item for item in items if item not in plain))


def _joined(text: str) -> str:
    return "".join(line.strip() for line in text.splitlines()) if "\n" in text else text


def _refuse_unknown(row: Mapping[str, Any], fields: set[str], rule_id: str) -> None:
    unknown = row.keys() - fields
    if unknown:
        raise ValueError(f"rule {rule_id} has unknown fields: {', '.join(sorted(unknown))}")
