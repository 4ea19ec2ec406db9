"""`--help` teaches: every verb has an example, and every option says what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

import toolscout as package
from toolscout.cli.app import app

Run = Callable[..., Any]

GROUP = typer.main.get_command(app)


def verbs(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Return every verb, those of a group under both names, as in `keys create`."""
    for name, command in group.commands.items():
        yield from verbs(command, f"{name} ") if hasattr(command, "commands") else [(before + name, command)]


VERBS: dict[str, Any] = dict(verbs(GROUP))
ACTING = {"enable", "disable", "serve", "approve", "keys revoke", "login", "logout"}
ACTING |= {"console", "token-key create", "token-key rotate"}


def test_the_verbs_are_those_of_the_design() -> None:
    wanted = {"index", "search", "list", "categories", "tags", "related", "describe", "enable", "disable"}
    operating = {"keys create", "keys list", "keys revoke", "policy check", "changes", "approve", "audit"}
    assert wanted | operating | {"eval", "bench", "doctor"} <= set(VERBS)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_help_of_a_verb_shows_an_example_that_the_verb_can_read(toolscout: Run, verb: str) -> None:
    ran = toolscout(*verb.split(), "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    examples = re.findall(rf"`(toolscout {verb}[^`]*)`", VERBS[verb].help)
    assert examples
    for example in examples:
        arguments = [part.strip('"') for part in re.findall(r'"[^"]*"|\S+', example)][1 + len(verb.split()) :]
        VERBS[verb].make_context(verb, arguments)


@pytest.mark.parametrize("verb", ["", *sorted(VERBS)])
def test_the_help_of_a_verb_says_nothing_twice_and_nothing_in_python(toolscout: Run, verb: str) -> None:
    output = " ".join(toolscout(*verb.split(), "--help").out.split())
    assert not re.search(r"<bool>|\.\.\.\}|\[\[|the local one. │? ?│? ?\[default", output)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_option_says_what_it_does(verb: str) -> None:
    for parameter in VERBS[verb].params:
        assert getattr(parameter, "help", None), f"{verb} {parameter.name}"


@pytest.mark.parametrize("verb", sorted(set(VERBS) - ACTING))
def test_every_reading_verb_can_print_json(verb: str) -> None:
    options = {name for parameter in VERBS[verb].params for name in parameter.opts}
    assert "--json" in options


def test_the_command_alone_teaches_and_exits_with_two(toolscout: Run) -> None:
    ran = toolscout()
    assert ran.code == 2
    assert all(verb.split()[0] in ran.out + ran.err for verb in VERBS)


def test_the_help_of_the_command_names_the_exit_codes(toolscout: Run) -> None:
    ran = toolscout("--help")
    assert ran.code == 0
    assert "Exit codes" in ran.out
    assert "toolscout index --sample" in ran.out


def test_the_version_is_the_packages(toolscout: Run) -> None:
    ran = toolscout("--version")
    assert (ran.code, ran.out) == (0, f"toolscout {package.__version__}\n")


def test_short_and_long_help_are_the_same(toolscout: Run) -> None:
    assert toolscout("search", "-h").out == toolscout("search", "--help").out


def test_an_unknown_verb_is_answered_with_the_nearest(toolscout: Run) -> None:
    ran = toolscout("serch")
    assert ran.code == 2
    assert "search" in ran.err
