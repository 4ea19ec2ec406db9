"""A keyring in a file, as keyring's own interface for backends has it: several processes of a test share it.

A process uses it with `PYTHON_KEYRING_BACKEND=file_keyring.FileKeyring`, and `FILE_KEYRING` as the path of the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError


class FileKeyring(KeyringBackend):
    """Keeps secrets by service and name. If the file is not JSON, it is locked."""

    priority = 5

    @property
    def file(self) -> Path:
        """Return the file."""
        return Path(os.environ["FILE_KEYRING"])

    def secrets(self) -> dict[str, str]:
        """Return all secrets, by `SERVICE/NAME`."""
        try:
            return dict(json.loads(self.file.read_text("utf-8"))) if self.file.exists() else {}
        except ValueError:
            raise KeyringLocked from None

    def get_password(self, service: str, username: str) -> str | None:
        return self.secrets().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self.file.write_text(json.dumps({**self.secrets(), f"{service}/{username}": password}), "utf-8")

    def delete_password(self, service: str, username: str) -> None:
        kept = self.secrets()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError
        self.file.write_text(json.dumps(kept), "utf-8")
