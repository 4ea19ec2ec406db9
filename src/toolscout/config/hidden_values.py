"""Entries of config files as an operator sees them elsewhere: without secrets, and with them again when sent back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from toolscout.errors import ConfigError

HIDDEN = "***"
"""What stands in the place of a hidden value."""

_SECRET_NAME = re.compile(
    r"(?!.*(url|uri|file|path|dir|sock|host|name|type|mode|method|provider|scopes?|(?<!secret_)id)$)"
    r".*(secret|token|pass(w|phrase|(?![a-z]))|pwd|key(?![a-z])|(?<![a-z])pat(?![a-z])|"
    r"auth(?!or(?!iz))|credential|cookie|dsn)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"(?:\w+ )?\$\{[^}]*\}")
_PASSWORD = re.compile(r"(://[^:/@?#]*:)[^@/?#]*(?=@)")
_PARAMETER = re.compile(r"(?<=[?&])([^=&#]+)=([^&#]*)")
_MAPS_OF_SECRETS = frozenset({"env", "headers"})


def is_secret_name(name: str) -> bool:
    """Tell whether an option, a variable or a header of this name has a secret as its value."""
    return _SECRET_NAME.match(name) is not None


def hide_values(entry: Any, name: str = "") -> Any:
    """Return an entry without secrets: values of variables and headers, and what is named like a secret.

    A reference such as `${env:TOKEN}` is shown.
    """
    if isinstance(entry, Mapping):
        if name in _MAPS_OF_SECRETS:
            return {key: _hide(value) for key, value in entry.items()}
        return {key: hide_values(value, key) for key, value in entry.items()}
    if isinstance(entry, list):
        return [_hide_argument(before, value) for before, value in zip(["", *entry], entry, strict=False)]
    return _hide(entry) if is_secret_name(name) else _hide_in_url(entry)


def restore_values(entry: Any, stored: Any) -> Any:
    """Return an entry with the stored value in each place where it was sent back as it was shown.

    Raise ConfigError for a hidden value in any other place.
    """
    return _restore(entry, hide_values(stored), stored)


def _restore(entry: Any, shown: Any, stored: Any) -> Any:
    if entry == shown:
        return stored
    if isinstance(entry, Mapping):
        shown, stored = (item if isinstance(item, Mapping) else {} for item in (shown, stored))
        return {key: _restore(value, shown.get(key), stored.get(key)) for key, value in entry.items()}
    if isinstance(entry, list):
        shown, stored = (item if isinstance(item, list) else [] for item in (shown, stored))
        return [_restore(*values) for values in zip_longest(entry, shown[: len(entry)], stored[: len(entry)])]
    if isinstance(entry, str) and HIDDEN in entry:
        raise ConfigError("the entry contains a hidden value that is not known", hint="write the value itself")
    return entry


def _hide(value: Any) -> Any:
    return value if isinstance(value, str) and _REFERENCE.fullmatch(value) else HIDDEN


def _hide_argument(before: Any, value: Any) -> Any:
    """Hide the value of an argument such as `--api-key=...`, `--header "Authorization: ..."` or `--token ...`."""
    if not isinstance(value, str):
        return hide_values(value)
    for separator in ("=", ": "):
        option, found, secret = value.partition(separator)
        if found and is_secret_name(option):
            return f"{option}{separator}{_hide(secret)}"
    follows = isinstance(before, str) and before.startswith("-") and "=" not in before
    return _hide(value) if follows and is_secret_name(before) else _hide_in_url(value)


def _hide_in_url(value: Any) -> Any:
    """Hide the password and the secret parameters of an address."""
    if not isinstance(value, str) or "://" not in value:
        return value
    text = _PASSWORD.sub(rf"\g<1>{HIDDEN}", value)
    return _PARAMETER.sub(lambda found: f"{found[1]}={_hide(found[2])}" if is_secret_name(found[1]) else found[0], text)
