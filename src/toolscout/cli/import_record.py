"""The record of an import: one file in toolscout's folder for each list of servers that was moved there."""

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
    """The servers of one place, and what undoing goes by."""

    path: Path
    values: Mapping[str, Any] = field(repr=False)

    @property
    def imported(self) -> Mapping[str, Any]:
        """Return where its servers came from."""
        own = self.values.get("toolscout")
        found = own.get("imported") if isinstance(own, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        """Return the host's file, and the keys that lead to the list."""
        return str(self.imported.get("file")), tuple(self.imported.get("path") or ())

    @property
    def entries(self) -> dict[str, Any]:
        """Return the servers."""
        found = self.values.get(self.place[1][-1]) if self.place[1] else None
        return dict(found) if isinstance(found, Mapping) else {}

    @property
    def edited(self) -> bool:
        """Whether somebody has changed it since it was written."""
        return self.imported.get("own") != own_digest(self.values)


def import_records(folder: Path) -> Iterator[ImportRecord]:
    """Return every file that an import has written."""
    for path in sorted(folder.glob("*.json")):
        with suppress(ConfigError):
            moved = ImportRecord(path=path, values=load(path))
            if moved.imported:
                yield moved


def own_digest(values: Mapping[str, Any]) -> str:
    """Digest what a moved file says, the digest itself aside."""
    own = dict(values["toolscout"])
    own["imported"] = {**own["imported"], "own": None}
    return digest(json.dumps({**values, "toolscout": own}, sort_keys=True).encode("ascii"))


def digest(data: bytes) -> str:
    """Digest bytes, to know them again."""
    return hashlib.sha256(data).hexdigest()


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Replace a file at once, or not at all, with the mode that is asked for; a link stays a link."""
    target = Path(os.path.realpath(path))
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
