"""Replaces one table in a TOML file. Comments, order and spelling of everything else stay as they are."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from toolscout.errors import ConfigError


def replace_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """Replace the entries of an existing table. Entries that stay the same keep their text."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    expected = tomllib.loads(text)
    (section,) = path
    before, expected[section] = expected[section], dict(values)
    try:
        document = tomlkit.parse(text)
        # The table is looked up anew each time: if its parts are not together in the file, it is a view of them.
        for title in [title for title in before if values.get(title) != before[title]]:
            del document[section][title]
        for title in [title for title in values if values[title] != before.get(title)]:
            if section not in document:
                document[section] = tomlkit.table(is_super_table=True)
            document[section][title] = values[title]
        changed = tomlkit.dumps(document)
        if tomllib.loads(changed) == expected:
            return changed
    except (TOMLKitError, tomllib.TOMLDecodeError, LookupError, TypeError):
        pass
    raise ConfigError(
        f"its [{section}] tables cannot be rewritten without changing the rest of the file",
        hint=f"put all [{section}.NAME] tables together, and write none of them inline",
    )
