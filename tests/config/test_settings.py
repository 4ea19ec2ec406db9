"""Settings come from the environment, and the user's folders from the platform."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolscout.errors import SettingError
from toolscout.settings import Settings, config_folder, data_folder, unknown_variables


def test_the_folders_follow_the_xdg_variables_or_else_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert data_folder() == tmp_path / ".local" / "share" / "toolscout"
    assert config_folder() == tmp_path / ".config" / "toolscout"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    assert (data_folder(), config_folder()) == (Path("/data/toolscout"), Path("/config/toolscout"))


@pytest.mark.process
def test_macos_uses_its_own_folders_unless_an_earlier_version_or_an_xdg_variable_chose_others(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.platform = 'darwin'\n"
        "from toolscout.settings import config_folder, data_folder\n"
        "print(data_folder(), config_folder(), sep=',')\n"
        "os.makedirs(os.environ['HOME'] + '/.local/share/toolscout'); print(data_folder(), config_folder(), sep=',')\n"
        "os.environ['XDG_DATA_HOME'] = '/data'; print(data_folder(), config_folder(), sep=',')\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    native = tmp_path / "Library" / "Application Support" / "toolscout"
    assert process.stdout.splitlines() == [
        f"{native},{native}",
        f"{tmp_path}/.local/share/toolscout,{native}",
        f"/data/toolscout,{native}",
    ]


def test_without_a_store_the_catalogue_is_a_file_in_the_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert Settings().store_url == "sqlite:////data/toolscout/catalogue.db"
    assert Settings(store="memory:").store_url == "memory:"


def test_a_value_that_is_not_one_of_the_choices_is_refused_with_the_choices() -> None:
    assert Settings.from_env({"TOOLSCOUT_DISCOVERY": "shadow"}).discovery == "shadow"
    with pytest.raises(SettingError, match="must be one of on, off, shadow"):
        Settings.from_env({"TOOLSCOUT_DISCOVERY": "maybe"})


def test_an_unknown_variable_is_named_with_the_most_similar_setting_and_without_its_value() -> None:
    others = {"TOOLSCOUT_INPUT_TOKEN": "s3cret", "TOOLSCOUT_CHILD": "1", "TOOLSCOUT_WORKSPACE_FOLDER": "/x", "PATH": ""}
    others |= {"TOOLSCOUT_BENCH": "1", "TOOLSCOUT_TEST_SLOW": "1"}
    assert unknown_variables({**others, "TOOLSCOUT_AUDIT": ""}) == []
    assert unknown_variables({"TOOLSCOUT_POLCY": "s3cret", "TOOLSCOUT_HELLO_WORLD": "s3cret"}) == [
        "TOOLSCOUT_HELLO_WORLD is not a setting",
        "TOOLSCOUT_POLCY is not a setting, did you mean TOOLSCOUT_POLICY?",
    ]
