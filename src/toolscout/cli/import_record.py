"""The files that an import writes: each contains one list of servers of a host, and the data to undo the import."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolscout.config.files import load
from toolscout.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """One such file."""

    path: Path
    values: Mapping[str, Any] = field(repr=False)

    @property
    def imported(self) -> Mapping[str, Any]:
        """Where the servers came from."""
        options = self.values.get("toolscout")
        imported = options.get("imported") if isinstance(options, Mapping) else None
        return imported if isinstance(imported, Mapping) else {}

    @property
    def host_file(self) -> str:
        """The host's config file."""
        return str(self.imported.get("file"))

    @property
    def key_path(self) -> tuple[str, ...]:
        """The keys that lead to the list of servers in the host's file."""
        return tuple(self.imported.get("path") or ())

    @property
    def entries(self) -> dict[str, Any]:
        """The servers, as the host had them."""
        servers = self.values.get(self.key_path[-1]) if self.key_path else None
        return dict(servers) if isinstance(servers, Mapping) else {}

    @property
    def edited(self) -> bool:
        """Whether the file was edited after the import wrote it."""
        return self.imported.get("own") != content_digest(self.values)


def import_records(folder: Path) -> Iterator[ImportRecord]:
    """Yield every file in a folder that an import has written."""
    for path in sorted(folder.glob("*.json")):
        with suppress(ConfigError):
            record = ImportRecord(path=path, values=load(path))
            if record.imported:
                yield record


def content_digest(values: Mapping[str, Any]) -> str:
    """Return the digest of a record's content, without the digest that it contains."""
    options = dict(values["toolscout"])
    options["imported"] = {**options["imported"], "own": None}
    return digest(json.dumps({**values, "toolscout": options}, sort_keys=True).encode("ascii"))


def digest(data: bytes) -> str:
    """Return the SHA-256 digest of bytes, to detect changes."""
    return hashlib.sha256(data).hexdigest()


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Replace a file atomically and set its mode. A symbolic link is replaced itself, never what it points to."""
    target = path
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(number, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            Path(name).chmod(mode & 0o7777)
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", hint="check its permissions") from error
