"""Replaces one table in a TOML file. Comments, order and spelling of everything else stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from toolscout.config.text_blocks import contain_comment, content_end, is_remark, replace_blocks
from toolscout.errors import ConfigError

_HEADER = re.compile(r"\s*\[.*\]\s*(?:#.*)?")


def replace_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Replace the entries of an existing table. Entries that stay the same keep their text."""
    from tomlkit.exceptions import TOMLKitError

    expected = tomllib.loads(text)
    (section,) = path
    before, expected[section] = expected[section], dict(values)
    old = [title for title in before if values.get(title) != before[title]]
    new = {title: values[title] for title in values if values[title] != before.get(title)}
    for replace in (_by_lines, _by_document):
        try:
            changed = replace(text, section, old, new)
            if tomllib.loads(changed) == expected:
                return changed
        except (TOMLKitError, tomllib.TOMLDecodeError, LookupError, TypeError):
            continue
    raise ConfigError(
        f"its [{section}] tables cannot be rewritten without changing the rest of the file",
        hint=f"put all [{section}.NAME] tables together, and write none of them inline",
    )


def _by_lines(text: str, section: str, old: Sequence[str], new: Mapping[str, Any]) -> str:
    """Replace entries that are tables with a header of their own. All other lines stay."""
    import tomlkit

    lines = text.splitlines(keepends=True)
    blocks = [(start, end) for title, start, end in _tables(lines, section) if title in old]
    at = blocks[0][0] if blocks else len(lines)
    added = tomlkit.dumps({section: new}) if new else ""
    if added and at and not is_remark(lines[at - 1]):
        added = f"\n{added}"
    following = next((number for number in range(at, len(lines)) if not _within(number, blocks)), len(lines))
    if added and following < len(lines) and lines[following].strip():
        added += "\n"
    return replace_blocks(lines, blocks, added.replace("\n", "\r\n") if "\r\n" in text else added, at)


def has_comments(text: str, path: Sequence[str]) -> bool:
    """Return whether there are comments inside the tables of a list, which a rewrite would lose."""
    lines = text.splitlines(keepends=True)
    return any(contain_comment(lines[start:end]) for _, start, end in _tables(lines, path[0]))


def _tables(lines: Sequence[str], section: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each entry that has a header, with its first line and the line after its last."""
    for (start, keys), (following, _) in pairwise([*_headers(lines), (len(lines), ())]):
        if keys[:1] == (section,) and keys[1:]:
            yield keys[1], start, content_end(lines, start, following)


def _within(number: int, blocks: Sequence[tuple[int, int]]) -> bool:
    return any(start <= number < end for start, end in blocks)


def _headers(lines: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """Return the line of each table's header, with its keys. A line inside a value only looks like one."""
    found = []
    for number, line in enumerate(lines):
        if _HEADER.fullmatch(line.rstrip("\r\n")) and _parses("".join(lines[:number])):
            found.append((number, _keys(tomllib.loads(line))))
    return found


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _keys(nested: Any) -> tuple[str, ...]:
    """Return the keys of a header, which TOML reads as empty tables inside one another."""
    while isinstance(nested, list):
        nested = nested[0]
    return tuple(key for name, value in nested.items() for key in (name, *_keys(value)))


def _by_document(text: str, section: str, old: Sequence[str], new: Mapping[str, Any]) -> str:
    """Replace entries in any other spelling, such as inline tables. Comments after a removed table go with it."""
    import tomlkit

    document = tomlkit.parse(text)
    # The table is looked up anew each time: if its parts are not together in the file, it is a view of them.
    for title in old:
        del document[section][title]
    for title in new:
        if section not in document:
            document[section] = tomlkit.table(is_super_table=True)
        document[section][title] = new[title]
    return tomlkit.dumps(document)
