"""`server.json`, the registry's description of one server, as the entry that a host's config would have for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolscout.errors import ConfigError
from toolscout.fields import Fields

_LAUNCH: Mapping[str, tuple[str, ...]] = {
    "npm": ("npx", "-y"),
    "pypi": ("uvx",),
    "oci": ("docker", "run", "-i", "--rm"),
    "nuget": ("dnx", "--yes"),
}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def is_server_json(values: Mapping[str, Any]) -> bool:
    """Say whether a file describes one server of the registry."""
    return isinstance(values.get("name"), str) and ("packages" in values or "remotes" in values)


def read_server_json(values: Mapping[str, Any], file: str) -> tuple[str, dict[str, Any]]:
    """Return the server's name and entry: a package that runs here where there is one, else a remote."""
    name = str(values["name"])
    where = f"{file}: server {name!r}"
    whole = Fields(values, where)
    packages = [Fields(item, whole.at("packages")) for item in whole.items("packages")]
    remotes = [Fields(item, whole.at("remotes")) for item in whole.items("remotes")]
    for package in packages:
        if package.text("registryType") in _LAUNCH and _transport(package) == "stdio":
            return name, _run(package)
    for kind in ("streamable-http", "sse"):
        for remote in remotes:
            if remote.text("type") == kind:
                url = _filled(remote.text("url") or "", remote)
                return name, {"type": kind, "url": url, "headers": _named(remote, "headers")}
    known = ", ".join(_LAUNCH)
    raise ConfigError(f"{where} has neither a package that can be run here nor a remote", hint=f"packages: {known}")


def _transport(package: Fields) -> str:
    return package.child("transport").text("type") or "stdio"


def _run(package: Fields) -> dict[str, Any]:
    kind, identifier = str(package.text("registryType")), package.text("identifier") or ""
    version = package.text("version")
    env = _named(package, "environmentVariables")
    launch = list(_LAUNCH[kind])
    if kind == "oci":
        launch += [word for name in env for word in ("-e", name)]
        named = identifier if not version or ":" in identifier else f"{identifier}:{version}"
    else:
        named = f"{identifier}@{version}" if version else identifier
    launch += [*_words(package, "runtimeArguments"), named]
    args = _words(package, "packageArguments")
    if kind == "nuget" and args:
        launch.append("--")
    return {"type": "stdio", "command": launch[0], "args": [*launch[1:], *args], "env": env}


def _words(package: Fields, name: str) -> list[str]:
    words: list[str] = []
    for item in package.items(name):
        argument = Fields(item, package.at(name))
        value = argument.text("value", "default")
        if value is None and not argument.flag("isRequired"):
            continue
        if argument.text("type") == "named":
            words.append(argument.text("name") or "")
        if value is not None:
            words.append(_filled(value, argument))
        elif argument.text("type") != "named":
            hint = argument.text("valueHint") or "an argument"
            raise ConfigError(f"{argument.where}: {hint} has no value", hint="give it a `value` in the file")
    return words


def _named(place: Fields, name: str) -> dict[str, str]:
    """Return what the description asks for by name: fixed, from the environment, or left out when optional."""
    found: dict[str, str] = {}
    for item in place.items(name):
        wanted = Fields(item, place.at(name))
        key, value, default = wanted.text("name") or "", wanted.text("value"), wanted.text("default")
        variable = re.sub(r"\W", "_", key)
        if value is not None:
            found[key] = _filled(value, wanted)
        elif default is not None:
            found[key] = f"${{{variable}:-{default}}}"
        elif wanted.flag("isRequired"):
            found[key] = f"${{{variable}}}"
    return found


def _filled(text: str, place: Fields) -> str:
    """Fill `{name}` in from the variables that stand beside the text, or else from the environment."""
    variables = place.child("variables")

    def value(found: re.Match[str]) -> str:
        if found[1] not in variables.values:
            return found[0]
        variable = variables.child(found[1])
        return variable.text("value", "default") or f"${{{found[1]}}}"

    return _PLACEHOLDER.sub(value, text)
