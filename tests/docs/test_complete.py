"""Every setting, flag, error and logged event is documented, and the documents name no other."""

import ast
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

import toolscout.errors as errors
import toolscout.settings as settings_module
from guarantees import GUARANTEES
from toolscout.cli.app import app
from toolscout.settings import Settings

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def verbs(group, before=""):
    """Return every verb, those of a group under both names, as in `keys create`."""
    for name, command in group.commands.items():
        yield from verbs(command, f"{name} ") if hasattr(command, "commands") else [(before + name, command)]


COMMANDS = dict(verbs(typer.main.get_command(app)))


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_every_setting_is_documented_with_its_default_and_its_docstring(field):
    page = (DOCS / "settings.md").read_text("utf-8")
    row = next((line for line in page.splitlines() if f"`TOOLSCOUT_{field.name.upper()}`" in line), None)
    assert row, f"TOOLSCOUT_{field.name.upper()} is missing from docs/settings.md"
    assert f"`{field.default}`" in row or field.default == ""
    assert settings_docstrings()[field.name] in row


def test_the_settings_page_names_no_setting_that_does_not_exist():
    named = set(re.findall(r"`TOOLSCOUT_([A-Z_]+)`", (DOCS / "settings.md").read_text("utf-8")))
    assert named - {"BENCH"} == {field.name.upper() for field in fields(Settings)}


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_every_verb_and_flag_is_documented(verb):
    page = (DOCS / "cli.md").read_text("utf-8")
    section = re.search(rf"^## [^\n]*`{verb}`.*?(?=^## |\Z)", page, re.S | re.M)
    assert section, f"`toolscout {verb}` has no section in docs/cli.md"
    for parameter in COMMANDS[verb].params:
        for flag in parameter.opts:
            if flag.startswith("-"):
                assert f"`{flag}" in section[0], f"{verb} {flag} is missing from docs/cli.md"


@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_no_flag_is_documented_that_does_not_exist(verb):
    page = (DOCS / "cli.md").read_text("utf-8")
    section = re.findall(rf"^## [^\n]*`{verb}`.*?(?=^## |\Z)", page, re.S | re.M)[0]
    verbs = [name for name in COMMANDS if f"`{name}`" in section.splitlines()[0]]
    flags = {flag for name in verbs for parameter in COMMANDS[name].params for flag in parameter.opts}
    assert set(re.findall(r"`(--[a-z-]+)", section)) <= flags | {"--help"}


def test_the_readme_says_how_to_get_the_command_before_it_uses_it():
    readme = (ROOT / "README.md").read_text("utf-8")
    used = next(re.finditer(r"`toolscout |\$ toolscout ", readme)).start()
    assert re.search(r"tool install \.|pip install \.", readme[:used])
    assert ".venv/bin/toolscout" in readme[:used]


def test_the_security_page_names_only_guarantees_that_are_kept():
    named = set(re.findall(r"`([a-z]+:[a-z0-9-]+)`", (ROOT / "SECURITY.md").read_text("utf-8")))
    assert len(named) > 20
    assert named <= {item.id for item in GUARANTEES if not item.gap}


def error_classes():
    return [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_is_documented_with_its_code(error):
    page = (DOCS / "errors.md").read_text("utf-8")
    row = next((line for line in page.splitlines() if line.startswith(f"| `{error.__name__}`")), None)
    assert row, f"{error.__name__} is missing from docs/errors.md"
    assert f"`{error.code}`" in row
    assert f"| {error.exit_code} |" in row


def test_every_error_is_in_the_tree_of_its_docstring():
    for error in error_classes():
        assert error.__name__ in (errors.__doc__ or "")


def emitted():
    """Return the events of the source, each with the names of its fields."""
    events: dict[Any, Any] = {}
    for path in sorted(Path(errors.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "emit":
                events.setdefault(ast.literal_eval(node.args[0]), set()).update(item.arg for item in node.keywords)
    return events


def documented_events():
    """Return the events that have a heading of their own in a page, each with the fields of its table."""
    pages = "\n".join(page.read_text("utf-8") for page in sorted(DOCS.glob("*.md")))
    sections = re.findall(r"^### `([a-z_]+\.[a-z_]+)`\n(.*?)(?=^#|\Z)", pages, re.S | re.M)
    rows = {event: re.findall(r"^\| (`[^|]*?) \|", text, re.M) for event, text in sections}
    return {event: set(re.findall(r"`(\w+)`", " ".join(cells))) for event, cells in rows.items()}


def test_every_logged_event_is_documented_with_every_field():
    assert "tools.selected" in emitted()
    assert documented_events() == {event: fields for event, fields in emitted().items() if event != "audit"}
    assert "event `audit`" in (DOCS / "audit.md").read_text("utf-8")  # its fields have a test of their own


def settings_docstrings():
    tree = ast.parse(Path(settings_module.__file__).read_text("utf-8"))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body
    events: dict[Any, Any] = {}
    for field, said in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(said, ast.Expr):
            events[ast.unparse(field.target)] = ast.literal_eval(said.value)
    return events


def test_every_picture_of_the_pages_exists_and_is_small_and_no_other_is_kept():
    pictures = DOCS / "images"
    named = {
        name
        for page in DOCS.glob("*.md")
        for name in re.findall(r"!\[[^]]+\]\(images/([^)]+)\)", page.read_text("utf-8"))
    }
    assert named == {picture.name for picture in pictures.iterdir()}
    assert len(named) > 3
    assert all(picture.stat().st_size < 80_000 for picture in pictures.iterdir())
