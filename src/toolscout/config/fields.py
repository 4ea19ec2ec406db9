"""Fields of a config entry, read with the kind that each must have; every complaint names file, server and field."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from toolscout.errors import ConfigError


class Fields:
    """One object of a config file; what has been asked for by name is known, the rest is `unread`."""

    def __init__(self, values: Any, where: str) -> None:
        """Take an object, or refuse what is none."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where} must be an object, not {_kind(values)}", hint="see docs/config.md")
        self.values = values
        self.where = where
        self._asked: set[str] = set()

    def at(self, *names: str) -> str:
        """Say where a field stands."""
        return f"{self.where}: {'.'.join(names)}"

    def bad(self, name: str, expected: str) -> ConfigError:
        """Return the error for a field of the wrong kind; it names the kind that was found, not the value."""
        return ConfigError(
            f"{self.at(name)} must be {expected}, not {_kind(self.values.get(name))}", hint="see docs/config.md"
        )

    def get(self, name: str) -> Any:
        """Return a field as it is, None when it is absent."""
        self._asked.add(name)
        return self.values.get(name)

    def text(self, *names: str) -> str | None:
        """Return the first of these fields that is there; it must be a string."""
        for name in names:
            value = self.get(name)
            if value is not None:
                if not isinstance(value, str):
                    raise self.bad(name, "a string")
                return value
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; numbers in it are written out."""
        value = self.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.bad(name, "a list of strings")
        return tuple(self._scalar(item, f"{name}[{number}]") for number, item in enumerate(value))

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object of strings; numbers and booleans are written out, and null means not set."""
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.bad(name, "an object of strings")
        return {
            str(key): self._scalar(item, f"{name}.{key}", flags=True) for key, item in value.items() if item is not None
        }

    def flag(self, name: str) -> bool | None:
        """Return true, false, or None when it is absent."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.bad(name, "true or false")
        return value

    def number(self, name: str) -> float | None:
        """Return a positive number, None when it is absent."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.bad(name, "a number")
        if not 0 < value < float("inf"):
            raise ConfigError(f"{self.at(name)} must be a number above 0", hint="see docs/config.md")
        return float(value)

    def items(self, name: str) -> tuple[Any, ...]:
        """Return a list of anything."""
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise self.bad(name, "a list")
        return tuple(value or ())

    def child(self, name: str) -> Fields:
        """Return an object inside this one, empty when it is absent."""
        value = self.get(name)
        return Fields({} if value is None else value, self.at(name))

    def unread(self) -> dict[str, Any]:
        """Return the fields that nobody has asked for."""
        return {name: value for name, value in self.values.items() if name not in self._asked}

    def finish(self) -> None:
        """Refuse fields that nobody has asked for: in toolscout's own part they are misspelt."""
        for name in self.unread():
            near = difflib.get_close_matches(name, sorted(self._asked), n=3)
            raise ConfigError(f"{self.at(name)} is not a field that toolscout knows", suggestions=near)

    def _scalar(self, value: Any, name: str, *, flags: bool = False) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool) and flags:
            return "true" if value else "false"
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        raise ConfigError(f"{self.at(name)} must be a string, not {_kind(value)}", hint="see docs/config.md")


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if value is None:
        return "absent"
    return {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}.get(
        type(value), type(value).__name__
    )
