"""Every rule of the screen is documented, with its severity and its sentence, and no other."""

import re
from pathlib import Path

import pytest

from toolscout.indexing.screen import load_rules

PAGE = (Path(__file__).parent.parent.parent / "docs" / "trust.md").read_text("utf-8")


@pytest.mark.parametrize("rule", load_rules().rules, ids=lambda rule: rule.id)
def test_every_rule_is_documented(rule):
    assert f"| `{rule.id}` | {rule.severity} | {rule.sentence} |" in PAGE


def test_no_rule_is_documented_that_does_not_exist():
    named = re.findall(r"^\| `([a-z-]+)` \| (?:quarantine|notice) \|", PAGE, re.M)
    assert named == [rule.id for rule in load_rules().rules]
