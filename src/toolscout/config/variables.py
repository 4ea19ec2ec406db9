"""References in config files: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`, folders, files, the keyring.

Those of single hosts are read too: `$VAR` of Gemini, `${{ secrets.VAR }}` of Continue.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolscout.config.secrets import is_secret, read_secret
from toolscout.errors import ConfigError

INPUT_PREFIX = "TOOLSCOUT_INPUT_"
WORKSPACE = "TOOLSCOUT_WORKSPACE_FOLDER"

_REFERENCE = re.compile(r"\$\{([^{}]*)\}|\$\{\{\s*(?:secrets|inputs)\.([^{}\s]+)\s*\}\}")
"""The second form is Continue's."""
_NESTED = re.compile(r"\$\{[^{}]*\$\{")
_NAMED = re.compile(r"(?:env:(?P<env>[^:]+)|(?P<name>[A-Za-z_]\w*))(?::-(?P<default>.*))?", re.S | re.A)
_BARE = re.compile(r"\$([A-Z_][A-Z0-9_]*)\b")
_WITH_BARE = re.compile(f"{_REFERENCE.pattern}|{_BARE.pattern}")
_FOLDERS = ("workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """The values of references in one config file."""

    environ: Mapping[str, str] = field(repr=False)
    workspace: str
    """The value of `${workspaceFolder}`, unless the host passes its own in the environment."""
    inputs: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    """The inputs that the file declares, with their default values."""
    bare: bool = False
    """Whether `$VAR` is a reference too, as in Gemini's files."""

    def expand(self, text: str, where: str) -> str:
        """Fill in every reference. A missing variable is an error that names it, never an empty string."""

        def value_of(match: re.Match[str]) -> str:
            if match[1] is None:
                return self._environ(_variable(match[2]) if match[2] else match[3], None, where)
            return self._value(match[1], match[0], where)

        if _NESTED.search(text):
            raise ConfigError(f"{where}: a variable contains another", hint="use one variable with a plain default")
        # A single pass: the value of a variable is never expanded again.
        return (_WITH_BARE if self.bare else _REFERENCE).sub(value_of, text)

    def _value(self, inner: str, reference: str, where: str) -> str:
        if inner in _FOLDERS:
            return self._folder(inner)
        if inner.startswith("input:"):
            return self._input(inner.removeprefix("input:"), where)
        if is_secret(inner):
            return read_secret(inner, self.workspace, where)
        named = _NAMED.fullmatch(inner)
        if named is None:
            return reference
        return self._environ(named["env"] or named["name"], named["default"], where)

    def _environ(self, name: str, default: str | None, where: str) -> str:
        value = self._environment_value(name)
        if default is not None:
            return value or default
        if value is None:
            raise ConfigError(
                f"{where}: the variable {name} is not set",
                hint=f"set {name}, or give it a default: ${{{name}:-...}}",
            )
        return value

    def _input(self, name: str, where: str) -> str:
        variable = input_variable(name)
        value = self._environment_value(variable)
        if value is None:
            value = self.inputs.get(name)
        if value is None:
            raise ConfigError(f"{where}: the input {name} has no value", hint=f"set {variable}, or give it a default")
        return value

    def _environment_value(self, name: str) -> str | None:
        """Return the value in the environment, or None if it is a reference that the host did not fill in."""
        value = self.environ.get(name)
        return None if value is None or (name, value) in references(value, bare=True) else value

    def _folder(self, name: str) -> str:
        if name == "userHome":
            return self.environ.get("HOME") or self.environ.get("USERPROFILE") or os.path.expanduser("~")  # noqa: PTH111
        if name in ("pathSeparator", "/"):
            return os.sep
        workspace = self._environment_value(WORKSPACE) or self.workspace
        return workspace if name == "workspaceFolder" else os.path.basename(workspace)  # noqa: PTH119


def input_variable(name: str) -> str:
    """Return the environment variable that holds an input."""
    return INPUT_PREFIX + _variable(name).upper()


def _variable(name: str) -> str:
    """Return a name that an environment variable can have."""
    return re.sub(r"\W", "_", name, flags=re.A)


def references(text: str, *, bare: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (environment variable, reference) for every value that a text takes from the environment."""
    for match in _REFERENCE.finditer(text):
        inner = match[1] or ""
        named = _NAMED.fullmatch(inner)
        if match[2]:
            yield _variable(match[2]), match[0]
        elif inner.startswith("input:"):
            yield input_variable(inner.removeprefix("input:")), match[0]
        elif inner in ("workspaceFolder", "workspaceFolderBasename"):
            yield WORKSPACE, "${workspaceFolder}"
        elif inner not in _FOLDERS and named is not None:
            yield named["env"] or named["name"], match[0]
    if bare:
        yield from ((match[1], match[0]) for match in _BARE.finditer(_REFERENCE.sub("", text)))


def unknown_references(text: str) -> bool:
    """Return whether a text contains a `${...}` that is not a known reference."""
    return any(
        inner not in _FOLDERS
        and not inner.startswith("input:")
        and not is_secret(inner)
        and _NAMED.fullmatch(inner) is None
        for inner, secret in _REFERENCE.findall(text)
        if not secret
    )
