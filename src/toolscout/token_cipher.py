"""Encryption of tokens at rest: each record has a data key of its own, which a key of the operator wraps.

The record's place (kind, tenant, user, name) is authenticated with it. So a row that is copied to another user or
server cannot be opened there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolscout.errors import SettingError, StoreError
from toolscout.settings import PREFIX, Settings, data_folder

_KEY_BYTES = 32
_NONCE_BYTES = 12
_SHARED_STORES = ("postgres://", "postgresql://")
_NEW_KEY = "`toolscout token-key create` prints one"


class TokenCipher:
    """Encrypts with the first key, and decrypts with any of them."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = {_key_id(key): key for key in keys}
        self._newest = _key_id(keys[0])

    def seal(self, value: Mapping[str, Any], place: str) -> dict[str, str]:
        """Encrypt a JSON object for one place."""
        data_key = secrets.token_bytes(_KEY_BYTES)
        wrapped = _encrypt(self._keys[self._newest], data_key, f"{self._newest} {place}")
        sealed = _encrypt(data_key, json.dumps(dict(value)).encode(), place)
        return {"key_id": self._newest, "wrapped": wrapped, "sealed": sealed}

    def open(self, body: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Decrypt what was sealed for this place. Raise StoreError when it cannot be."""
        key_id = str(body.get("key_id"))
        if key_id not in self._keys:
            raise StoreError(
                f"an account was encrypted with the key {key_id}, which is not here",
                hint=f"add that key to {PREFIX}TOKEN_KEY, or sign in again",
            )
        try:
            data_key = _decrypt(self._keys[key_id], str(body.get("wrapped")), f"{key_id} {place}")
            value = json.loads(_decrypt(data_key, str(body.get("sealed")), place))
        except (InvalidTag, ValueError) as error:
            raise StoreError("a stored account is damaged", hint="sign in again") from error
        return dict(value)

    def knows(self, body: Mapping[str, Any]) -> bool:
        """Return whether one of the keys wraps a sealed value."""
        return body.get("key_id") in self._keys

    def is_newest(self, body: Mapping[str, Any]) -> bool:
        """Return whether the newest key wraps a sealed value."""
        return body.get("key_id") == self._newest


def new_key() -> str:
    """Return a new random key as text."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)).decode().rstrip("=")


def key_file(settings: Settings) -> Path | None:
    """Return the file that holds the key, or None if the key is in the environment."""
    if settings.token_key:
        return None
    if settings.token_key_file:
        return Path(settings.token_key_file).expanduser()
    if settings.store_url.startswith(_SHARED_STORES):
        raise SettingError(
            f"{PREFIX}TOKEN_KEY is not set, and replicas cannot share a key in a data folder",
            hint=f"set it to the same key for every replica: {_NEW_KEY}",
        )
    return data_folder() / "token.key"


def open_cipher(settings: Settings) -> TokenCipher:
    """Return the cipher with the operator's keys. A key file of the data folder is created if there is none."""
    file = key_file(settings)
    if file is None:
        return TokenCipher(_parse(settings.token_key, f"{PREFIX}TOKEN_KEY"))
    if not settings.token_key_file and not file.exists():
        with suppress(FileExistsError):
            write_key_file(file, [new_key()])
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise SettingError(f"the key file {file} cannot be read", hint="check the path and its permissions") from error
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise SettingError(f"other users can read the key file {file}", hint=f"chmod 600 {file}")
    return TokenCipher(_parse(text, str(file)))


def write_key_file(file: Path, keys: Sequence[str], *, replace: bool = False) -> None:
    """Write a key file that only its owner can read, at once and whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write("".join(f"{key}\n" for key in keys))
    try:
        if replace:
            temporary.replace(file)
        else:
            file.hardlink_to(temporary)  # fails if another process was first
    finally:
        temporary.unlink(missing_ok=True)


def read_key_file(file: Path) -> list[str]:
    """Return the keys of a file as text, the newest first."""
    return file.read_text("utf-8").split()


def _parse(text: str, where: str) -> list[bytes]:
    keys = []
    for word in text.replace(",", " ").split():
        try:
            key = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != _KEY_BYTES:
            raise SettingError(f"{where} holds something that is not a key", hint=f"a key has 32 bytes: {_NEW_KEY}")
        keys.append(key)
    if not keys:
        raise SettingError(f"{where} holds no key", hint=_NEW_KEY)
    return keys


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"toolscout token key" + key).hexdigest()[:12]


def _encrypt(key: bytes, data: bytes, place: str) -> str:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, data, place.encode())).decode()


def _decrypt(key: bytes, text: str, place: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    return AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode())
