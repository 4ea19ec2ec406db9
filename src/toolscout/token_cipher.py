"""Encryption of tokens at rest: each record has a data key of its own, which a key of the operator wraps.

The record's place (kind, tenant, user, name) is authenticated with it. So a row that is copied to another user or
server cannot be opened there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolscout.errors import SettingError, UnreadableAccountError
from toolscout.settings import PREFIX

NEW_KEY_HINT: Final = "`toolscout token-key create` prints one"
_KEY_BYTES = 32
_NONCE_BYTES = 12


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
        """Decrypt what was sealed for this place. Raise UnreadableAccountError when it cannot be."""
        key_id = str(body.get("key_id"))
        if key_id not in self._keys:
            raise UnreadableAccountError(
                f"an account was encrypted with the key {key_id}, which is not here",
                hint=f"add that key to {PREFIX}TOKEN_KEY, or sign in again",
            )
        try:
            data_key = _decrypt(self._keys[key_id], str(body.get("wrapped")), f"{key_id} {place}")
            value = json.loads(_decrypt(data_key, str(body.get("sealed")), place))
        except (InvalidTag, ValueError) as error:
            raise UnreadableAccountError("a stored account is damaged", hint="sign in again") from error
        return dict(value)

    def derive_key(self, purpose: str) -> bytes:
        """Return a key for another purpose, which follows from the newest key."""
        return hmac.digest(self._keys[self._newest], purpose.encode(), "sha256")

    def knows(self, body: Mapping[str, Any]) -> bool:
        """Return whether one of the keys wraps a sealed value."""
        return body.get("key_id") in self._keys

    def is_newest(self, body: Mapping[str, Any]) -> bool:
        """Return whether the newest key wraps a sealed value."""
        return body.get("key_id") == self._newest


def new_key() -> str:
    """Return a new random key as text."""
    return base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)).decode().rstrip("=")


def parse_keys(text: str, where: str) -> list[bytes]:
    """Read keys from text, separated by spaces, commas or line breaks. `where` names the text in errors."""
    keys = []
    for word in text.replace(",", " ").split():
        try:
            key = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != _KEY_BYTES:
            raise SettingError(f"{where} holds something that is not a key", hint=f"a key has 32 bytes: {NEW_KEY_HINT}")
        keys.append(key)
    if not keys:
        raise SettingError(f"{where} holds no key", hint=NEW_KEY_HINT)
    return keys


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"toolscout token key" + key).hexdigest()[:12]


def _encrypt(key: bytes, data: bytes, place: str) -> str:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, data, place.encode())).decode()


def _decrypt(key: bytes, text: str, place: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    return AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode())
