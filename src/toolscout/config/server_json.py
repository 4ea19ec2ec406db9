"""`server.json`, the MCP registry's description of a server, converted to an entry of a host's config."""

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
    """Return whether a file is a `server.json`."""
    return isinstance(values.get("name"), str) and ("packages" in values or "remotes" in values)


def read_server_json(values: Mapping[str, Any], file: str) -> tuple[str, dict[str, Any]]:
    """Return the server's name and entry: a package that toolscout can run, or else a remote server."""
    name = str(values["name"])
    where = f"{file}: server {name!r}"
    fields = Fields(values, where)
    packages = [Fields(item, fields.at("packages")) for item in fields.items("packages")]
    remotes = [Fields(item, fields.at("remotes")) for item in fields.items("remotes")]
    for package in packages:
        if package.text("registryType") in _LAUNCH and _transport(package) == "stdio":
            return name, _run(package)
    for kind in ("streamable-http", "sse"):
        for remote in remotes:
            if remote.text("type") == kind:
                url = _with_variables(remote.text("url") or "", remote)
                return name, {"type": kind, "url": url, "headers": _name_values(remote, "headers")}
    types = ", ".join(_LAUNCH)
    raise ConfigError(
        f"{where} has neither a package that toolscout can run nor a remote", hint=f"package types: {types}"
    )


def _transport(package: Fields) -> str:
    return package.child("transport").text("type") or "stdio"


def _run(package: Fields) -> dict[str, Any]:
    kind, identifier = str(package.text("registryType")), package.text("identifier") or ""
    version = package.text("version")
    env = _name_values(package, "environmentVariables")
    launch = list(_LAUNCH[kind])
    if kind == "oci":
        launch += [word for name in env for word in ("-e", name)]
        package_name = identifier if not version or ":" in identifier else f"{identifier}:{version}"
    else:
        package_name = f"{identifier}@{version}" if version else identifier
    launch += [*_words(package, "runtimeArguments"), package_name]
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
            words.append(_with_variables(value, argument))
        elif argument.text("type") != "named":
            hint = argument.text("valueHint") or "an argument"
            raise ConfigError(f"{argument.where}: {hint} has no value", hint="add a `value` for it in the file")
    return words


def _name_values(parent: Fields, name: str) -> dict[str, str]:
    """Return headers or variables. One without a value comes from the environment, or is omitted if it is optional."""
    values: dict[str, str] = {}
    for item in parent.items(name):
        fields = Fields(item, parent.at(name))
        key, value, default = fields.text("name") or "", fields.text("value"), fields.text("default")
        variable = re.sub(r"\W", "_", key)
        if value is not None:
            values[key] = _with_variables(value, fields)
        elif default is not None:
            values[key] = f"${{{variable}:-{default}}}"
        elif fields.flag("isRequired"):
            values[key] = f"${{{variable}}}"
    return values


def _with_variables(text: str, fields: Fields) -> str:
    """Fill in `{name}` from the `variables` of the same object, or else from the environment."""
    variables = fields.child("variables")

    def value(match: re.Match[str]) -> str:
        if match[1] not in variables.values:
            return match[0]
        variable = variables.child(match[1])
        return variable.text("value", "default") or f"${{{match[1]}}}"

    return _PLACEHOLDER.sub(value, text)
