"""Variables are filled in. A missing one is an error, never an empty string."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolscout import ConfigError
from toolscout.config import Config, read_config

ENVIRON = {"KEY": "k", "EMPTY": "", "HOME": "/home/u", "ProgramFiles(x86)": "P", "SELF": "${SELF}", "TRICK": "${KEY}"}


def read(path: Path, values: dict[str, Any], environ: dict[str, str] = ENVIRON) -> Config:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), "utf-8")
    return read_config(path, environ)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${KEY}", "k"),
        ("a-${KEY}-${KEY}b", "a-k-kb"),
        ("${env:KEY}", "k"),
        ("${env:ProgramFiles(x86)}", "P"),
        ("${KEY:-d}", "k"),
        ("${ABSENT:-d:-e$}", "d:-e$"),
        ("${ABSENT:-}", ""),
        ("${env:ABSENT:-d}", "d"),
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", "d"),
        ("${SELF:-d}", "d"),
        ("${TRICK}", "${KEY}"),
        ("${userHome}/x", "/home/u/x"),
        ("$KEY $${KEY}", "$KEY $k"),
        ("${workspaceFolderBasename}", "project"),
        ("{KEY} ${command:x} ${}", "{KEY} ${command:x} ${}"),
    ],
)
def test_a_reference_is_filled_in_once(tmp_path: Path, text: str, value: str) -> None:
    (server,) = read(tmp_path / "project" / "mcp.json", {"mcpServers": {"s": {"command": "x", "args": [text]}}}).servers
    assert server.args == (value,)


def test_every_field_that_reaches_a_server_is_filled_in(tmp_path: Path) -> None:
    entries = {
        "local": {"command": "${KEY}", "args": ["${KEY}"], "env": {"${KEY}": "${KEY}"}, "cwd": "/${KEY}"},
        "remote": {"url": "https://${KEY}.b/", "headers": {"X": "Bearer ${KEY}"}, "note": "${KEY}"},
    }
    local, remote = read(tmp_path / "mcp.json", {"mcpServers": entries}).servers
    assert (local.command, local.args, local.env, local.cwd) == ("k", ("k",), {"${KEY}": "k"}, "/k")
    assert (remote.url, remote.headers, remote.extra) == ("https://k.b/", {"X": "Bearer k"}, {"note": "${KEY}"})


@pytest.mark.parametrize("folder", [".vscode", ".cursor", ".kiro/settings", ".gemini", "."])
def test_the_workspace_is_the_folder_around_an_editors_own(tmp_path: Path, folder: str) -> None:
    values = {"servers": {"s": {"command": "${workspaceFolder}/x"}}}
    (server,) = read(tmp_path / folder / "mcp.json", values).servers
    assert server.command == f"{tmp_path}/x"
    (server,) = read(tmp_path / folder / "mcp.json", values, {"TOOLSCOUT_WORKSPACE_FOLDER": "/w"}).servers
    assert server.command == "/w/x"


@pytest.mark.parametrize("text", ["${ABSENT}", "${env:ABSENT}", "x${ABSENT}y", "${SELF}"])
@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"command": "TEXT"}, "command"),
        ({"command": "x", "args": ["a", "TEXT"]}, "args[1]"),
        ({"command": "x", "env": {"A": "TEXT"}}, "env.A"),
        ({"command": "x", "cwd": "TEXT"}, "cwd"),
        ({"url": "TEXT"}, "url"),
        ({"url": "http://a.b", "headers": {"X-Key": "TEXT"}}, "headers.X-Key"),
        (
            {"url": "http://a.b", "toolscout": {"oauth": {"client_id": "i", "client_secret": "TEXT"}}},
            "toolscout.oauth.client_secret",
        ),
    ],
)
def test_a_missing_variable_names_itself_its_server_its_field_and_its_file(
    tmp_path: Path, text: str, entry: dict[str, Any], field: str
) -> None:
    written = json.loads(json.dumps(entry).replace("TEXT", text))
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "mcp.json", {"mcpServers": {"my server": written}})
    name = "SELF" if "SELF" in text else "ABSENT"
    assert caught.value.message == (f"{tmp_path}/mcp.json: server 'my server': {field}: the variable {name} is not set")


def test_a_server_that_is_switched_off_needs_no_variable(tmp_path: Path) -> None:
    (server,) = read(tmp_path / "mcp.json", {"mcpServers": {"s": {"command": "${ABSENT}", "disabled": True}}}).servers
    assert (server.enabled, server.command) == (False, "${ABSENT}")


def test_one_variable_inside_another_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a variable contains another"):
        read(tmp_path / "mcp.json", {"mcpServers": {"s": {"command": "${A:-${B}}"}}})


def test_what_looks_like_a_variable_and_is_none_is_noted(tmp_path: Path) -> None:
    config = read(tmp_path / "mcp.json", {"servers": {"s": {"command": "x", "args": ["${command:pick}"]}}})
    assert config.notes == (
        f"{tmp_path}/mcp.json: server 's': args[0] contains a ${{...}} that is not a variable and is left unchanged",
    )


def test_a_bare_dollar_counts_in_geminis_files_alone(tmp_path: Path) -> None:
    values = {"mcpServers": {"s": {"command": "x", "args": ["$KEY/$lower/${KEY}", "a$5"]}}}
    (gemini,) = read(tmp_path / ".gemini" / "settings.json", values).servers
    (other,) = read(tmp_path / "mcp.json", values).servers
    assert gemini.args == ("k/$lower/k", "a$5")
    assert other.args == ("$KEY/$lower/k", "a$5")
    with pytest.raises(ConfigError, match="the variable ABSENT is not set"):
        read(tmp_path / ".gemini" / "settings.json", {"mcpServers": {"s": {"command": "$ABSENT"}}})


INPUTS = {
    "inputs": [
        {"id": "api-key", "type": "promptString", "password": True},
        {"id": "region", "type": "pickString", "default": "eu"},
    ],
    "servers": {"s": {"command": "x", "env": {"K": "${input:api-key}", "R": "${input:region}"}}},
}


def test_an_input_comes_from_the_environment_or_its_default(tmp_path: Path) -> None:
    (server,) = read(tmp_path / "mcp.json", INPUTS, {"TOOLSCOUT_INPUT_API_KEY": "k"}).servers
    assert server.env == {"K": "k", "R": "eu"}


@pytest.mark.parametrize("environ", [{}, {"TOOLSCOUT_INPUT_API_KEY": "${input:api-key}"}])
def test_an_input_without_a_value_names_itself_and_the_variable_to_set(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "mcp.json", INPUTS, environ)
    assert caught.value.message == f"{tmp_path}/mcp.json: server 's': env.K: the input api-key has no value"
    assert caught.value.hint == "set TOOLSCOUT_INPUT_API_KEY, or give it a default"
