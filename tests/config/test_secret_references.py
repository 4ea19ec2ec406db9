"""Secrets from files and from the keyring. No error shows a value."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from toolscout import ConfigError
from toolscout.config import ServerConfig, read_config


class Memory(KeyringBackend):
    """A keyring that lasts as long as the test."""

    priority = 1
    locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("canary")
        return {("git/hub", "ann"): "from-the-keyring"}.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError


@pytest.fixture
def memory() -> Iterator[Memory]:
    before, own = keyring.get_keyring(), Memory()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


def read(folder: Path, text: str, **more: Any) -> ServerConfig:
    entry = {"command": "x", "env": {"TOKEN": text}, **more}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry}}), "utf-8")
    (server,) = read_config(folder / "mcp.json", {"HOME": str(folder), "NAME": "${file:token}"}).servers
    return server


@pytest.mark.parametrize("held", ["secret", "secret\n", "secret\r\n"])
def test_a_file_is_read_without_the_line_break_at_its_end(tmp_path: Path, held: str) -> None:
    (tmp_path / "token").write_bytes(held.encode())
    assert read(tmp_path, "Bearer ${file:token}").env == {"TOKEN": "Bearer secret"}
    assert read(tmp_path, f"${{file:{tmp_path / 'token'}}}").env == {"TOKEN": "secret"}


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text("secret")
    assert read(tmp_path, "${file:~/token}").env == {"TOKEN": "secret"}


def test_what_a_secret_or_a_variable_holds_is_no_reference(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("${NAME}")
    assert read(tmp_path, "${file:token}").env == {"TOKEN": "${NAME}"}
    assert read(tmp_path, "${NAME}").env == {"TOKEN": "${file:token}"}


@pytest.mark.parametrize(
    ("held", "said"),
    [(None, "cannot be read"), (b"\xff\xfe", "is not UTF-8 text"), (b"canary" * 20_000, "too large for a secret")],
)
def test_a_file_that_holds_no_secret_is_named(tmp_path: Path, held: bytes | None, said: str) -> None:
    if held is not None:
        (tmp_path / "token").write_bytes(held)
    with pytest.raises(ConfigError, match=said) as caught:
        read(tmp_path, "${file:token}")
    assert "server 'a': env.TOKEN" in caught.value.message
    assert "canary" not in str(caught.value)


def test_a_header_with_a_line_break_from_a_file_is_refused_without_its_value(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\ncanary")
    entry = {"command": None, "url": "https://example.com", "headers": {"X": "${file:token}"}, "env": {}}
    with pytest.raises(ConfigError, match="line break") as caught:
        read(tmp_path, "", **entry)
    assert "canary" not in str(caught.value)


def test_the_keyring_is_read_by_service_and_user(tmp_path: Path, memory: Memory) -> None:
    server = read(tmp_path, "${keyring:git/hub/ann}")
    assert server.env == {"TOKEN": "from-the-keyring"}
    assert "from-the-keyring" not in repr(server)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hub/bob", "no secret hub/bob"),
        ("ann", "is not a keyring entry"),
        ("hub/", "is not a keyring entry"),
        ("/", "is not a keyring entry"),
    ],
)
def test_a_secret_that_the_keyring_does_not_have_is_named(tmp_path: Path, memory: Memory, name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(tmp_path, f"${{keyring:{name}}}")


def test_a_locked_keyring_is_a_clear_error(tmp_path: Path, memory: Memory) -> None:
    memory.locked = True
    with pytest.raises(ConfigError, match="KeyringLocked") as caught:
        read(tmp_path, "${keyring:git/hub/ann}")
    assert "canary" not in str(caught.value)


def test_without_the_extra_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match="needs an extra package") as caught:
        read(tmp_path, "${keyring:hub/ann}")
    assert "toolscout[keyring]" in caught.value.hint


def test_the_secrets_of_a_server_that_is_off_are_not_read(tmp_path: Path) -> None:
    assert read(tmp_path, "${file:nowhere}", disabled=True).env == {"TOKEN": "${file:nowhere}"}


def test_the_credentials_of_users_are_read_like_all_others(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("canary")
    users = {"acme/ann": {"headers": {"X": "${file:token}"}, "env": {"A": "b"}}}
    server = read(tmp_path, "t", toolscout={"users": users})
    assert server.users["acme/ann"].headers == {"X": "canary"}
    assert "canary" not in repr(server) + repr(server.users)


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ({"ann": {"header": {}}}, "users.ann: header is not a field"),
        ({"ann": []}, "users.ann must be an object"),
        ({"ann": {"headers": {"a b": "x"}}}, "invalid header name"),
        ({"ann": {"env": {"a=b": "x"}}}, "invalid variable name"),
        ({"ann": {"headers": {"X": "${file:nowhere}"}}}, "toolscout.users.ann.headers.X"),
    ],
)
def test_an_error_names_the_place_of_the_reference(tmp_path: Path, users: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "t", toolscout={"users": users})
    assert said in caught.value.message
