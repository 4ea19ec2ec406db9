"""Every guarantee has a test or says why not, and every test in certain folders names the guarantee that it proves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from guarantees import GUARANTEES, Guarantee

TESTS = Path(__file__).parent
GUARDED = ("security", "faults", "storage", "gateway")
"""The folders in which every test must name the guarantee that it proves."""


@dataclass(frozen=True)
class MarkedTest:
    """A test function: where it is, and the guarantees that it or its module names."""

    where: str
    folder: str
    ids: tuple[str, ...]


def find_tests(root: Path) -> list[MarkedTest]:
    """Parse every test file without importing it, so that the result does not depend on which tests run."""
    tests = []
    for path in sorted(root.rglob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        relative = path.relative_to(root)
        for name, ids in _marked_tests(tree, _of_module(tree)):
            tests.append(MarkedTest(f"{relative.as_posix()}::{name}", relative.parts[0], ids))
    return tests


def _marked_tests(node: ast.Module | ast.ClassDef, inherited: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for item in node.body:
        if isinstance(item, ast.ClassDef) and item.name.startswith("Test"):
            yield from _marked_tests(item, (*inherited, *_named(item.decorator_list)))
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and item.name.startswith("test_"):
            yield item.name, (*inherited, *_named(item.decorator_list))


def _of_module(tree: ast.Module) -> tuple[str, ...]:
    assigned = (item for item in tree.body if isinstance(item, ast.Assign))
    return tuple(
        name
        for item in assigned
        if any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in item.targets)
        for name in _named([item.value])
    )


def _named(nodes: list[ast.expr]) -> tuple[str, ...]:
    calls = (call for node in nodes for call in ast.walk(node) if isinstance(call, ast.Call))
    return tuple(
        str(argument.value)
        for call in calls
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == "guarantee"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    )


def problems(manifest: tuple[Guarantee, ...], tests: list[MarkedTest]) -> list[str]:
    """Return all differences between the list of guarantees and the tests."""
    known = {guarantee.id: guarantee for guarantee in manifest}
    named = {name for test in tests for name in test.ids}
    return [
        *(f"{name} is listed twice" for name in known if sum(item.id == name for item in manifest) > 1),
        *(f"{item.id} has neither a test nor a gap" for item in manifest if item.id not in named and not item.gap),
        *(f"{item.id} has a test, but still a gap" for item in manifest if item.id in named and item.gap),
        *(f"{test.where} names no guarantee" for test in tests if test.folder in GUARDED and not test.ids),
        *(
            f"{test.where} names {name}, which is no guarantee"
            for test in tests
            for name in test.ids
            if name not in known
        ),
    ]


def test_every_guarantee_is_proven_or_says_why_not() -> None:
    assert problems(GUARANTEES, find_tests(TESTS)) == []


def test_every_guarantee_has_a_sentence_and_a_source() -> None:
    for item in GUARANTEES:
        assert item.sentence.endswith("."), item.id
        assert item.source, item.id
        assert not (item.gap and item.later), item.id


_KEPT = Guarantee("a:kept", "It is kept.")
_OPEN = Guarantee("a:open", "It is not kept yet.", gap="later")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("@guarantee('a:kept')\ndef test_it(): ...", []),
        ("pytestmark = guarantee('a:kept')\nasync def test_it(): ...", []),
        ("@guarantee('a:kept')\nclass TestIt:\n    def test_it(self): ...", []),
        ("pytestmark = [pytest.mark.guarantee('a:kept')]\ndef test_it(): ...", []),
        ("", ["a:kept has neither a test nor a gap"]),
        (
            "def test_it(): ...",
            ["a:kept has neither a test nor a gap", "storage/test_it.py::test_it names no guarantee"],
        ),
        (
            "@guarantee('a:kept', 'a:other')\ndef test_it(): ...",
            ["storage/test_it.py::test_it names a:other, which is no guarantee"],
        ),
        ("@guarantee('a:kept', 'a:open')\ndef test_it(): ...", ["a:open has a test, but still a gap"]),
    ],
)
def test_the_check_sees_what_is_wrong(tmp_path: Path, text: str, wrong: list[str]) -> None:
    folder = tmp_path / "storage"
    folder.mkdir()
    (folder / "test_it.py").write_text(text, "utf-8")
    assert problems((_KEPT, _OPEN), find_tests(tmp_path)) == wrong


def test_a_guarantee_may_not_be_listed_twice() -> None:
    tests = [MarkedTest("x", "cli", ("a:kept",))]
    assert problems((_KEPT, _KEPT), tests) == ["a:kept is listed twice"]
