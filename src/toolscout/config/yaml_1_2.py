"""Reads YAML as the hosts do, which follow version 1.2: `no`, `8:30` and `2026-01-01` are texts."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from toolscout.errors import ConfigError

_SCALARS = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+.0123456789"),
    ("merge", r"<<", "<"),
)


def read_yaml(text: str, file: str) -> dict[str, Any]:
    """Read an object from YAML. An error names the line."""
    import yaml

    try:
        values = yaml.load(text, yaml_loader()) or {}  # noqa: S506 - a kind of SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{file}{at}: invalid YAML", hint="correct the file") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: must contain an object", hint="see docs/config.md")
    return values


@cache
def yaml_loader() -> Any:
    """Return the safe loader of PyYAML, with the plain scalars of YAML 1.2."""
    import yaml

    loader: Any = type("Yaml12Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": {}})
    for name, pattern, first in _SCALARS:
        starts = ["" if letter == "\0" else letter for letter in first]
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(f"(?:{pattern})\\Z"), starts)
    loader.add_constructor("tag:yaml.org,2002:int", lambda self, node: _whole_number(self.construct_scalar(node)))
    return loader


def _whole_number(text: str) -> int:
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
