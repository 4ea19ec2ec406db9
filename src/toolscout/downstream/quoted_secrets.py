"""Secrets of a server's config that the server quotes in an answer or an error: they are hidden from callers and logs.

Only values that the config names like a secret are hidden. A value such as `production` may stand in any result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pydantic_core

from toolscout.config import ServerConfig, UserCredentials
from toolscout.config.hidden_values import HIDDEN, is_secret_name

_LEAST_CHARS = 8


class QuotedSecrets:
    """The secrets of one server, and how to hide them."""

    def __init__(self, config: ServerConfig | None, tokens: Iterable[str] = ()) -> None:
        """Take the secrets of a config, and tokens of people who signed in."""
        found = {*(_secrets(config) if config else ()), *tokens}
        # Texts of servers are often JSON themselves.
        found |= {json.dumps(text)[1:-1] for text in found}
        self._secrets = sorted(found, key=len, reverse=True)
        self._as_json = [pydantic_core.to_json(text)[1:-1] for text in self._secrets]

    def hide_in_text(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def hide(self, value: Any) -> Any:
        """Return a JSON value without the secrets. Without any it is the same object."""
        return self._hide(value) if self._secrets and self._may_hold_one(value) else value

    def _may_hold_one(self, value: Any) -> bool:
        try:
            text = pydantic_core.to_json(value, inf_nan_mode="null", serialize_unknown=True)
        except ValueError:  # for instance half of a surrogate pair
            return True
        return any(secret in text for secret in self._as_json)

    def _hide(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide_in_text(value)
        if isinstance(value, Mapping):
            return {self._hide(name): self._hide(item) for name, item in value.items()}
        return [self._hide(item) for item in value] if isinstance(value, list) else value


def _secrets(config: ServerConfig) -> Iterator[str]:
    if config.oauth is not None:
        yield from _long(config.oauth.client_secret)
    own = UserCredentials(headers=config.headers, env=config.env)
    for credentials in (own, *config.users.values()):
        for name, text in (*credentials.headers.items(), *credentials.env.items()):
            yield from _in_value(name, text)
    for name, text in zip(("", *config.args), config.args, strict=False):
        option, _, value = text.partition("=")
        yield from _in_value(option, value)
        if name.startswith("-") and not text.startswith("-"):
            yield from _in_value(name, text)
        yield from _in_url(text)
    yield from _in_url(config.url)


def _in_value(name: str, text: str) -> Iterator[str]:
    yield from _in_url(text)
    if is_secret_name(name):
        yield from _long(text, text.rpartition(" ")[2])  # also without `Bearer`


def _in_url(text: str) -> Iterator[str]:
    """Yield the password of an address, as it stands in it, and the secret parameters."""
    if "://" not in text:
        return
    try:
        url = urlsplit(text)
    except ValueError:
        return
    if url.password:
        yield f":{url.password}@"
    for name, value in parse_qsl(url.query):
        if is_secret_name(name):
            yield from _long(value)


def _long(*texts: str) -> Iterator[str]:
    """Yield the texts that are long enough not to stand in other text by chance."""
    return (text for text in texts if len(text) >= _LEAST_CHARS)
