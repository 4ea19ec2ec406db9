"""Fixtures for the tests of `toolscout import`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from toolscout.cli.host_permissions import MANAGED_FOLDERS


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home, with a project in it where the command is run."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(MANAGED_FOLDERS, "linux", (tmp_path / "managed",))
    return tmp_path
