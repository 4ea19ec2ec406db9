"""References in config files: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`, folders, files, the keyring."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolscout.config.secrets import is_secret, read_secret
from toolscout.errors import ConfigError

INPUT_PREFIX = "TOOLSCOUT_INPUT_"
WORKSPACE = "TOOLSCOUT_WORKSPACE_FOLDER"

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_NESTED = re.compile(r"\$\{[^{}]*\$\{")
_NAMED = re.compile(r"(?:env:(?P<env>[^:]+)|(?P<name>[A-Za-z_]\w*))(?::-(?P<default>.*))?", re.S | re.A)
_BARE = re.compile(r"\$([A-Z_][A-Z0-9_]*)\b")
_WITH_BARE = re.compile(f"{_REFERENCE.pattern}|{_BARE.pattern}")
_FOLDERS = ("workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """What references in one file may stand for."""

    environ: Mapping[str, str] = field(repr=False)
    workspace: str
    """What `${workspaceFolder}` means unless the host hands its own meaning on."""
    inputs: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    """The inputs that the file declares, with their defaults."""
    bare: bool = False
    """Whether `$VAR` counts too, as it does in Gemini's files."""

    def expand(self, text: str, where: str) -> str:
        """Fill in every reference; one without a value is an error that names it, never an empty string."""

        def filled(found: re.Match[str]) -> str:
            if found[1] is None:
                return self._environ(found[2], None, where)
            return self._value(found[1], found[0], where)

        if _NESTED.search(text):
            raise ConfigError(
                f"{where}: a variable stands inside another", hint="use one variable with a plain default"
            )
        # One pass: what a variable holds is never read as a reference again.
        return (_WITH_BARE if self.bare else _REFERENCE).sub(filled, text)

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
        value = self._given(name)
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
        value = self._given(variable)
        if value is None:
            value = self.inputs.get(name)
        if value is None:
            raise ConfigError(f"{where}: the input {name} has no value", hint=f"set {variable}, or give it a default")
        return value

    def _given(self, name: str) -> str | None:
        """Return what the environment says; a host that could not fill a reference in hands on the reference."""
        value = self.environ.get(name)
        return None if value is None or (name, value) in references(value, bare=True) else value

    def _folder(self, name: str) -> str:
        if name == "userHome":
            return self.environ.get("HOME") or self.environ.get("USERPROFILE") or os.path.expanduser("~")  # noqa: PTH111
        if name in ("pathSeparator", "/"):
            return os.sep
        workspace = self._given(WORKSPACE) or self.workspace
        return workspace if name == "workspaceFolder" else os.path.basename(workspace)  # noqa: PTH119


def input_variable(name: str) -> str:
    """Return the environment variable that holds an input."""
    return INPUT_PREFIX + re.sub(r"\W", "_", name, flags=re.A).upper()


def references(text: str, *, bare: bool = False) -> Iterator[tuple[str, str]]:
    """Return (environment variable, reference) for whatever a text needs from outside its file."""
    for found in _REFERENCE.finditer(text):
        inner = found[1]
        named = _NAMED.fullmatch(inner)
        if inner.startswith("input:"):
            yield input_variable(inner.removeprefix("input:")), found[0]
        elif inner in ("workspaceFolder", "workspaceFolderBasename"):
            yield WORKSPACE, "${workspaceFolder}"
        elif inner not in _FOLDERS and named is not None:
            yield named["env"] or named["name"], found[0]
    if bare:
        yield from ((found[1], found[0]) for found in _BARE.finditer(_REFERENCE.sub("", text)))


def unknown_references(text: str) -> bool:
    """Say whether a text holds a `${...}` that stands for nothing known; it is left as it is."""
    return any(
        inner not in _FOLDERS
        and not inner.startswith("input:")
        and not is_secret(inner)
        and _NAMED.fullmatch(inner) is None
        for inner in _REFERENCE.findall(text)
    )
