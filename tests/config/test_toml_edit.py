"""One list of servers in a TOML file is replaced, and every other line stays as it is."""

from __future__ import annotations

import tomllib

import pytest

from toolscout.config.toml_edit import has_comments, replace_table
from toolscout.errors import ConfigError

PATH = ("mcp_servers",)
TOOLSCOUT = {"toolscout": {"command": "/x", "args": ["serve"], "env_vars": ["A"]}}


def test_comments_around_the_tables_stay_where_they_are() -> None:
    text = (
        'model = "x"\n\n# my servers\n[mcp_servers.a]\ncommand = "npx"\nargs = [\n  ["a"]\n]\n\n# the screen\n'
        '[tui]\ntheme = "dark"\n\n[mcp_servers."b c"]\nurl = "https://a.b"\n[mcp_servers."b c".env]\nX = "[y]"\n'
        "# the end\n"
    )
    assert replace_table(text, PATH, TOOLSCOUT) == (
        'model = "x"\n\n# my servers\n[mcp_servers.toolscout]\ncommand = "/x"\nargs = ["serve"]\nenv_vars = ["A"]\n\n'
        '# the screen\n[tui]\ntheme = "dark"\n\n# the end\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers.a]\ncommand = "x"\n[z]\ny = 1',
        '[mcp_servers]\na = {command = "x"}\n# mine\n[z]\ny = 1\n',
        'mcp_servers = {a = {command = "x"}}\n',
        'mcp_servers.a.command = "x"\n[z]\ny = 1\n',
        '[mcp_servers.a]\r\ncommand = "x"\r\n\r\n[z]\r\ny = 1\r\n',
        '[z]\ny = """\n[mcp_servers.a]\n"""\n[mcp_servers.a]\ncommand = "x"\n',
    ],
)
def test_whatever_the_layout_nothing_but_the_servers_changes(text: str) -> None:
    before = tomllib.loads(text)
    changed = replace_table(text, PATH, TOOLSCOUT)
    assert tomllib.loads(changed) == {**before, "mcp_servers": TOOLSCOUT}
    assert changed.count("\r\n") in (0, changed.count("\n"))
    assert tomllib.loads(replace_table(changed, PATH, before["mcp_servers"])) == before


def test_an_entry_that_stays_keeps_its_text() -> None:
    text = "[mcp_servers.a]\ncommand = 'x' # mine\n[mcp_servers.b]\ncommand = \"y\"\n"
    kept = {"a": {"command": "x"}, **TOOLSCOUT}
    assert replace_table(text, PATH, kept).startswith(
        "[mcp_servers.a]\ncommand = 'x' # mine\n\n[mcp_servers.toolscout]\n"
    )


def test_comments_inside_an_entry_are_seen() -> None:
    assert has_comments('[mcp_servers.a]\ncommand = "x" # mine\n', PATH)
    assert not has_comments('[mcp_servers.a]\ncommand = "x # y"\n\n# the screen\n[tui]\n', PATH)


def test_an_entry_that_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be rewritten without changing the rest"):
        replace_table('[mcp_servers.a]\ncommand = "x"\n', PATH, {"a": {"command": None}})
