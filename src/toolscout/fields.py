"""Reading fields of a config or policy file: each with the type it must have, each error naming file and field."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from toolscout.errors import ConfigError, UsageError


class Fields:
    """One object of a file. It remembers which fields were read, so that misspelt ones can be refused.

    Errors name the type that was found and never the value, which may be a secret.
    """

    def __init__(
        self, values: Any, where: str, *, error: type[UsageError] = ConfigError, hint: str = "see docs/config.md"
    ) -> None:
        self.where = where
        self.error = error
        self.hint = hint
        self.names_read: set[str] = set()
        if not isinstance(values, Mapping):
            raise error(f"{where} must be an object, not {_type_name(values)}", hint=hint)
        self.values = values

    def at(self, *names: str) -> str:
        """Return the location of a field, for messages."""
        return f"{self.where}: {'.'.join(names)}"

    def wrong_type(self, name: str, expected: str) -> UsageError:
        """Return the error for a field of the wrong type."""
        return self.error(
            f"{self.at(name)} must be {expected}, not {_type_name(self.values.get(name))}", hint=self.hint
        )

    def get(self, name: str) -> Any:
        """Return a field of any type, None when it is absent."""
        self.names_read.add(name)
        return self.values.get(name)

    def text(self, *names: str) -> str | None:
        """Return the first of these fields that is present. It must be a string."""
        for name in names:
            value = self.get(name)
            if value is not None:
                if not isinstance(value, str):
                    raise self.wrong_type(name, "a string")
                return value
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings. Numbers in it become strings."""
        value = self.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.wrong_type(name, "a list of strings")
        return tuple(self._scalar(item, f"{name}[{number}]") for number, item in enumerate(value))

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object of strings. Numbers and booleans become strings, and null means not set."""
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong_type(name, "an object of strings")
        return {
            str(key): self._scalar(item, f"{name}.{key}", flags=True) for key, item in value.items() if item is not None
        }

    def flag(self, name: str) -> bool | None:
        """Return true, false, or None when it is absent."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong_type(name, "true or false")
        return value

    def number(self, name: str) -> float | None:
        """Return a positive number, None when it is absent."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong_type(name, "a number")
        if not 0 < value < float("inf"):
            raise self.error(f"{self.at(name)} must be a number above 0", hint=self.hint)
        return float(value)

    def items(self, name: str) -> tuple[Any, ...]:
        """Return a list of anything."""
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise self.wrong_type(name, "a list")
        return tuple(value or ())

    def child(self, name: str) -> Fields:
        """Return an object inside this one, empty when it is absent."""
        value = self.get(name)
        return Fields({} if value is None else value, self.at(name), error=self.error, hint=self.hint)

    def unread(self) -> dict[str, Any]:
        """Return the fields that were not read."""
        return {name: value for name, value in self.values.items() if name not in self.names_read}

    def finish(self) -> None:
        """Refuse fields that were not read: where every field is toolscout's own, an unknown one is misspelt."""
        for name in self.unread():
            similar = difflib.get_close_matches(name, sorted(self.names_read), n=3)
            raise self.error(f"{self.at(name)} is not a field that toolscout knows", suggestions=similar)

    def _scalar(self, value: Any, name: str, *, flags: bool = False) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool) and flags:
            return "true" if value else "false"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        raise self.error(f"{self.at(name)} must be a string, not {_type_name(value)}", hint=self.hint)


def _type_name(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if value is None:
        return "absent"
    return {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}.get(
        type(value), type(value).__name__
    )
