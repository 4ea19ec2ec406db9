"""Tools from a `tools.jsonl`: a bad line is reported with its number and skipped, or an error when strict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from toolscout import InputFileError, Scout
from toolscout.sources.rows import group_rows, read_jsonl

GOOD = json.dumps({"server": "mail", "name": "send", "description": "Send a letter."})
OTHER = json.dumps({"name": "read"})
BAD = {
    b'{"name": "a"': "not JSON",
    b"[1, 2]": "a row must be an object, not list",
    b'"text"': "a row must be an object, not str",
    b"null": "a row must be an object, not NoneType",
    b"{}": "a row needs a name",
    b'{"name": ""}': "a row needs a name",
    b'{"name": 5}': "a row needs a name",
    b'{"name": "\xff"}': "not UTF-8 at byte 10",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a file in which every second line is bad."""
    file = tmp_path / "tools.jsonl"
    lines = [line for bad in BAD for line in (GOOD.replace("send", f"send{hash_of(bad)}").encode(), bad)]
    file.write_bytes(b"\n".join(lines) + b"\n\n   \n" + OTHER.encode())
    return file


def hash_of(line: bytes) -> int:
    """Give a name of its own to the good line before a bad one."""
    return list(BAD).index(line)


def test_bad_lines_are_reported_with_their_numbers_and_the_rest_is_read(path: Path) -> None:
    rows, bad = read_jsonl(path)
    assert [row["name"] for row in rows] == [f"send{number}" for number in range(len(BAD))] + ["read"]
    assert [item.where for item in bad] == [f"{path}:{2 * number + 2}" for number in range(len(BAD))]
    for item, reason in zip(bad, BAD.values(), strict=True):
        assert item.reason.startswith(reason)


@pytest.mark.parametrize("line", list(BAD))
def test_a_bad_line_is_an_error_when_strict(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_bytes(GOOD.encode() + b"\n" + line + b"\n")
    with pytest.raises(InputFileError) as raised:
        read_jsonl(file, strict=True)
    assert raised.value.message.startswith(f"{file}:2: {BAD[line]}")
    assert "--strict" in raised.value.hint


async def test_a_strict_error_leaves_the_catalogue_as_it_was(open_scout: Callable[..., Scout], path: Path) -> None:
    async with open_scout([{"server": "mail", "name": "old"}]) as scout:
        with pytest.raises(InputFileError):
            await scout.index_tools(path, strict=True)
        assert [match.tool.key for match in await scout.list_tools()] == ["mail__old"]


async def test_the_summary_shows_bad_lines_before_bad_tools(open_scout: Callable[..., Scout], tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text(f'{GOOD}\n{{"name": "bad", "tags": 5}}\nnonsense\n')
    async with open_scout() as scout:
        report = await scout.index_tools(file)
    assert report.new == 1
    assert [item.where for item in report.dropped] == [f"{file}:3", "local: 'bad'"]


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b"\r\n" + OTHER.encode() + b"\r\n")
    rows, bad = read_jsonl(file)
    assert ([row["name"] for row in rows], bad) == (["send", "read"], [])


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text('{"name": "a", "description": "one\u2028two\u0085three"}\n', encoding="utf-8")
    rows, bad = read_jsonl(file)
    assert (rows[0]["description"], bad) == ("one\u2028two\u0085three", [])


@pytest.mark.parametrize("missing", ["nowhere.jsonl", "."])
def test_a_file_that_cannot_be_read_is_a_typed_error(tmp_path: Path, missing: str) -> None:
    with pytest.raises(InputFileError, match="cannot be read") as raised:
        read_jsonl(tmp_path / missing)
    assert raised.value.hint


async def test_a_scout_over_a_file_that_is_not_there_fails_cleanly(open_scout: Callable[..., Scout]) -> None:
    with pytest.raises(InputFileError):
        async with open_scout("/nowhere/tools.jsonl"):
            pass


def test_rows_are_grouped_by_server_and_no_server_means_local() -> None:
    rows = [{"name": "a"}, {"name": "b", "server": ""}, {"name": "c", "server": "  "}, {"name": "d", "server": "x"}]
    groups = {provider.server.title: [row["name"] for row in provider.rows] for provider in group_rows(rows)}
    assert groups == {"local": ["a", "b", "c"], "x": ["d"]}


def test_one_server_in_two_unicode_forms_is_one_server() -> None:
    assert len(group_rows([{"server": "caf\u00e9", "name": "a"}, {"server": "cafe\u0301", "name": "b"}])) == 1
