"""Replaces the servers in a YAML file of Goose or Continue. All other lines stay as they are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from toolscout.config.other_hosts import item_title, listed_servers
from toolscout.config.text_blocks import contain_comment, content_end, replace_blocks
from toolscout.config.yaml_1_2 import yaml_loader
from toolscout.errors import ConfigError


def replace_servers(text: str, path: Sequence[str], servers: Mapping[str, Any]) -> str:
    """Replace the servers in an existing list. Those that stay the same keep their text, as does what is no server."""
    import yaml

    (section,) = path
    before = listed_servers(_load(text), path) or {}
    old = [title for title in before if servers.get(title) != before[title]]
    new = {title: servers[title] for title in servers if servers[title] != before.get(title)}
    try:
        part = _Part.find(text, section)
        changed = part.rewritten(old, new) if part.block else part.rewritten_inline(old, new)
        if _apart(changed, path) == (_apart(text, path)[0], dict(servers)):
            return changed
    except (yaml.YAMLError, LookupError, ValueError):
        pass
    raise ConfigError(
        f"its {section} cannot be rewritten without changing the rest of the file",
        hint=f"write each entry of {section} on lines of its own, without anchors that others use",
    )


def has_comments(text: str, path: Sequence[str]) -> bool:
    """Return whether there are comments inside the entries of a list, which a rewrite would lose."""
    part = _Part.find(text, path[0])
    if not part.block:
        return contain_comment([text[part.node.start_mark.index : part.node.end_mark.index]])
    return any(contain_comment(part.lines[start:end]) for title, start, end in part.entries() if title)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The part of a YAML file that lists servers: a mapping by name, or a list of items with names."""

    text: str
    lines: list[str]
    section: str
    node: Any

    @classmethod
    def find(cls, text: str, section: str) -> _Part:
        """Find it by the key at the top level of the file."""
        import yaml

        document = yaml.compose(text, yaml_loader())
        node = next(value for key, value in document.value if key.value == section)
        return cls(text=text, lines=text.splitlines(keepends=True), section=section, node=node)

    @property
    def block(self) -> bool:
        """Whether every entry is on lines of its own."""
        return not self.node.flow_style and bool(self.node.value)

    def entries(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each entry ("" for what is no server) with its first line and the line after its last."""
        end = self.node.end_mark.line + (self.node.end_mark.column > 0)
        starts = [self._start(item) for item in self.node.value]
        for number, (start, following) in enumerate(pairwise([*starts, min(end, len(self.lines))])):
            yield self._title(number), start, content_end(self.lines, start, following)

    def rewritten(self, old: Sequence[str], new: Mapping[str, Any]) -> str:
        """Return the text with other entries, each on lines of its own."""
        entries = list(self.entries())
        blocks = [(start, end) for title, start, end in entries if title in old]
        margin = self.lines[entries[0][1]]
        margin = margin[: len(margin) - len(margin.lstrip(" "))]
        added = textwrap.indent(_dump(self._shaped(new)), margin) if new else ""
        added = added.replace("\n", "\r\n") if "\r\n" in self.text else added
        return replace_blocks(self.lines, blocks, added, blocks[0][0] if blocks else entries[-1][2])

    def rewritten_inline(self, old: Sequence[str], new: Mapping[str, Any]) -> str:
        """Return the text with the whole part written anew, on one line."""
        value = _load(self.text)[self.section] or {}
        if isinstance(value, list):
            kept = [item for number, item in enumerate(value) if item_title(item, number) not in old]
            written = _dump([*kept, *self._shaped(new)], inline=True)
        else:
            kept_entries = {title: entry for title, entry in value.items() if title not in old}
            written = _dump({**kept_entries, **new}, inline=True)
        start, end = self.node.start_mark.index, self.node.end_mark.index
        return self.text[:start] + written.rstrip("\n") + self.text[end:]

    def _start(self, item: Any) -> int:
        """Return the first line of an entry. The dash of a list may be on a line before."""
        line = int((item[0] if isinstance(item, tuple) else item).start_mark.line)
        while not isinstance(item, tuple) and not self.lines[line].lstrip().startswith("-"):
            line -= 1
        return line

    def _title(self, number: int) -> str:
        item = self.node.value[number]
        if isinstance(item, tuple):
            return str(item[0].value)
        return item_title({key.value: value.value for key, value in item.value}, number)

    def _shaped(self, entries: Mapping[str, Any]) -> Any:
        """Return entries as this part lists them."""
        if self.node.id == "mapping":
            return dict(entries)
        return [{"name": title, **entry} for title, entry in entries.items()]


def _apart(text: str, path: Sequence[str]) -> tuple[Any, dict[str, Any] | None]:
    """Return everything in a file but its servers, and the servers."""
    values = _load(text)
    servers = listed_servers(values, path)
    part = values[path[0]]
    if isinstance(part, list):
        others: Any = [item for number, item in enumerate(part) if not item_title(item, number)]
    else:
        others = {title: entry for title, entry in (part or {}).items() if title not in (servers or {})}
    return {**values, path[0]: others}, servers


def _load(text: str) -> Any:
    import yaml

    return yaml.load(text, yaml_loader())  # noqa: S506 - a kind of SafeLoader


def _dump(value: Any, *, inline: bool = False) -> str:
    import yaml

    written = yaml.safe_dump(
        value, sort_keys=False, allow_unicode=True, default_flow_style=inline, width=float("inf"), line_break="\n"
    )
    return str(written)
