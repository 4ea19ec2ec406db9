"""CONTRIBUTING.md lists every environment variable that changes what the tests do, and no other."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_variable_of_the_tests_is_in_the_table() -> None:
    page = (TESTS.parent / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^\| `(TOOLSCOUT_TEST_\w+)` \|", page, re.M)
    read = re.findall(r'environ\.get\("(\w+)"', (TESTS / "knobs.py").read_text("utf-8"))
    assert sorted(rows) == sorted(read)


def test_variables_are_read_in_one_module() -> None:
    readers = [
        path.name
        for path in TESTS.rglob("*.py")
        if path != Path(__file__) and re.search(r'environ.*"TOOLSCOUT_TEST_', path.read_text("utf-8"))
    ]
    assert readers == ["knobs.py"]
