"""Texts of servers are printed as data: escape sequences and markup have no effect."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from toolscout.printable import SafeFormatter

Run = Callable[..., Any]

ESCAPE = "\x1b[31mred\x1b]0;title\x07\x9b2J\x7f"
MARKUP = "[bold red]loud[/bold red] [link=file:///etc/passwd]click[/link] [/nothing]"
BIDI = "\u202edesrever\u202c"


def _row(name: str) -> dict[str, Any]:
    text = f"{ESCAPE} {MARKUP} {BIDI}"
    return {
        "server": f"evil {text}",
        "name": name,
        "description": f"Send a letter. {text}",
        "category": f"post {text}",
        "tags": ["post", text],
        "keywords": [text],
        "input_schema": {
            "properties": {text: {"type": text, "description": text}, "kind": {"enum": [text]}},
            "required": [text],
        },
        "examples": [text],
        "related": [text],
    }


@pytest.fixture
def store(toolscout: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a catalogue of hostile tools that the operator has approved."""
    monkeypatch.setenv("TOOLSCOUT_QUARANTINE", "off")
    file = tmp_path / "tools.jsonl"
    rows = [_row("send_letter"), _row("read_letter"), _row(f"bad {ESCAPE}"), {**_row("worse"), "tags": 5}]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    _harmless(toolscout("index", "--tools", str(file), "--store", url), code=0)
    return url


def _harmless(ran: Any, code: int) -> Any:
    assert ran.code == code
    for stream in (ran.out, ran.err):
        assert not [char for char in stream if char in "\x1b\x07\x9b\x7f\u202e\u202c"]
        assert "Traceback" not in stream
    return ran


def _key(toolscout: Run, store: str) -> str:
    keys = [tool["key"] for tool in toolscout("list", "--store", store, "--json").json["tools"]]
    assert len(keys) == 2
    return str(next(key for key in keys if key.endswith("__send_letter")))


def test_tables_show_escapes_and_markup_as_plain_text(toolscout: Run, store: str) -> None:
    key = _key(toolscout, store)
    ran = _harmless(toolscout("describe", key, "--store", store), code=0)
    assert "[bold red]loud[/bold red]" in ran.out
    assert "\\x9b2J" in ran.out
    _harmless(toolscout("search", "send a letter", "--threshold", "0", "--store", store), code=0)
    _harmless(
        toolscout("search", "letter", "--explain", "--detail", "full", "--threshold", "0", "--store", store), code=0
    )
    _harmless(toolscout("list", "--store", store), code=0)
    _harmless(toolscout("categories", "--store", store), code=0)
    _harmless(toolscout("tags", "--store", store), code=0)
    _harmless(toolscout("related", key, "--store", store), code=0)


def test_errors_show_them_as_plain_text_too(toolscout: Run, store: str) -> None:
    ran = _harmless(toolscout("describe", f"nothing {ESCAPE}", "--store", store), code=1)
    assert "\\x1b[31mred" in ran.err
    ran = _harmless(toolscout("search", "letter", "--category", f"none {MARKUP}", "--store", store), code=2)
    assert "[bold red]loud[/bold red]" in ran.err


def test_a_query_is_no_markup(toolscout: Run, store: str) -> None:
    hostile = f"letter {MARKUP}"
    ran = _harmless(toolscout("search", hostile, "--also", ESCAPE, "--threshold", "0", "--store", store), code=0)
    assert "[bold red]loud[/bold red]" in ran.out
    _harmless(
        toolscout("search", f"zqxj{ESCAPE}", "--ranker", "keyword", "--threshold", "90", "--store", store), code=1
    )


def test_json_escapes_what_a_terminal_would_obey(toolscout: Run, store: str) -> None:
    ran = toolscout("describe", _key(toolscout, store), "--store", store, "--json")
    assert "\x1b" not in ran.out
    assert "\x07" not in ran.out
    (tool,) = ran.json["tools"]
    assert f"{ESCAPE} {MARKUP} {BIDI}" in tool["tags"]


def test_half_a_surrogate_pair_in_an_argument_is_no_crash(toolscout: Run, store: str) -> None:
    for arguments in (("search", "letter \udcff", "--also", "\udcff"), ("describe", "\udcff"), ("related", "\udcff")):
        ran = toolscout(*arguments, "--store", store)
        assert ran.code in (0, 1)
        (ran.out + ran.err).encode("utf-8")
        toolscout(*arguments, "--store", store, "--json").out.encode("utf-8")


@guarantee("term:safe")
def test_json_escapes_what_a_terminal_would_act_on_and_keeps_the_value(toolscout: Run, store: str) -> None:
    ran = _harmless(toolscout("describe", _key(toolscout, store), "--store", store, "--json"), code=0)
    assert BIDI in ran.json["tools"][0]["description"]


@guarantee("term:safe")
@pytest.mark.process
def test_doctor_shows_the_output_of_a_server_as_plain_text(toolscout: Run, tmp_path: Path) -> None:
    program = f"import sys; sys.stderr.write({ESCAPE!r} + '\\nok   store: forged\\n'); sys.exit(3)"
    entry = {"command": sys.executable, "args": ["-c", program]}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {f"evil {ESCAPE}": entry}}))
    ran = _harmless(toolscout("doctor", "--config", str(path), "--store", "memory:"), code=1)
    assert "forged" in ran.out
    assert not [line for line in ran.out.splitlines() if line.startswith("ok   store: forged")]


@guarantee("term:safe")
def test_a_log_line_is_one_line_whatever_it_quotes() -> None:
    text = f"{ESCAPE}{BIDI}\n2026-01-01 ERROR forged"
    record = logging.LogRecord("toolscout", logging.WARNING, "", 1, "server %s is down", (text,), None)
    line = SafeFormatter("%(levelname)s %(message)s").format(record)
    assert line.isprintable()
    assert line.startswith("WARNING server \\x1b[31mred")
