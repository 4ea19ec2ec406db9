"""Changes of the operator's config files: servers are added, replaced, removed and switched, and used at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolscout.config import ServerConfig
from toolscout.config.edit import add_servers, change_server, entry_of, is_editable, remove_server
from toolscout.config.hidden_values import hide_values, restore_values
from toolscout.errors import ConflictError, ToolscoutError
from toolscout.scout import Scout
from toolscout.tool_keys import server_slug

Entry = Mapping[str, Any]


class ServerEditor:
    """Edits the config files of a gateway, one edit at a time. What is written survives a restart of the gateway.

    A server is not trusted unless its entry says so: only what the operator wrote into a file is trusted without it.
    """

    def __init__(
        self, scout: Scout, files: Callable[[], Sequence[Path]], new_file: Path, reload: Callable[[], Awaitable[None]]
    ) -> None:
        """Take the files, the one that is created if none can be edited, and what reads them all again."""
        self._scout = scout
        self._files = files
        self._new_file = new_file
        self._reload = reload
        self._lock = asyncio.Lock()

    async def add(self, entries: Mapping[str, Entry]) -> list[str]:
        """Add servers to the first file that can be edited. Return their slugs."""
        async with self._lock:
            statuses = self._scout.servers.statuses()
            taken = {name for status in statuses for name in (status.title, status.server)}
            for title in entries:
                if title in taken or server_slug(title) in taken:
                    raise ConflictError(
                        f"there is a server {title!r} already; nothing was changed", hint="change that one"
                    )
            file = next(filter(is_editable, self._files()), self._new_file)
            await asyncio.to_thread(add_servers, file, {title: _with_trust(entry) for title, entry in entries.items()})
            await self._apply()
            slugs = {status.title: status.server for status in self._scout.servers.statuses()}
            added = [slugs.get(title, server_slug(title)) for title in entries]
            for slug in added:
                self._scout.access.record_act("servers.add", slug)
            return added

    async def entry(self, config: ServerConfig) -> Entry | None:
        """Return the entry of a server without its secrets. None if its file cannot be edited."""
        if not is_editable(Path(config.source)):
            return None
        entry = await self._read(config)
        return _with_trust(hide_values(entry), trusted=config.trusted)

    async def replace(self, slug: str, config: ServerConfig, entry: Entry) -> None:
        """Replace the entry of a server. A secret that is sent back hidden stays as it is."""
        async with self._lock:
            stored = await self._read(config)
            await self._change(config, _with_trust(restore_values(entry, stored)))
            self._scout.access.record_act("servers.change", slug)

    async def switch(self, slug: str, config: ServerConfig, *, enabled: bool) -> None:
        """Use a server again, or stop using it. It stays in the file."""
        async with self._lock:
            entry = {
                name: value for name, value in (await self._read(config)).items() if name not in ("disabled", "enabled")
            }
            options = entry.get("toolscout")
            entry["toolscout"] = {**(options if isinstance(options, Mapping) else {}), "enabled": enabled}
            await self._change(config, entry)
            self._scout.access.record_act("servers.enable" if enabled else "servers.disable", slug)

    async def remove(self, slug: str, config: ServerConfig) -> None:
        """Remove a server from its file. Its tools, and the accounts of people at it, are removed too."""
        async with self._lock:
            await asyncio.to_thread(remove_server, Path(config.source), config.title)
            await self._apply()
            self._scout.access.record_act("servers.remove", slug)

    async def _read(self, config: ServerConfig) -> dict[str, Any]:
        return await asyncio.to_thread(entry_of, Path(config.source), config.title)

    async def _change(self, config: ServerConfig, entry: Entry) -> None:
        await asyncio.to_thread(change_server, Path(config.source), config.title, entry)
        await self._apply()

    async def _apply(self) -> None:
        try:
            await self._reload()
        except ToolscoutError as error:
            raise ConflictError(
                f"the file was changed, but the config cannot be used: {error.message}", hint=error.hint
            ) from error


def _with_trust(entry: Entry, *, trusted: bool = False) -> Entry:
    """Return an entry that says whether the server is trusted."""
    options = entry.get("toolscout")
    if options is not None and not isinstance(options, Mapping):
        return entry  # reading the file refuses it
    return {**entry, "toolscout": {"trusted": trusted, **(options or {})}}
