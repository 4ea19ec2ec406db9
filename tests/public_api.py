"""The public API, read from the source: every exported name, its signatures, and the types that they mention.

`python tests/public_api.py` rewrites tests/data/public_api.txt after an intended change.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import toolscout

SNAPSHOT = Path(__file__).parent / "data" / "public_api.txt"


def snapshot() -> str:
    """Write one line for each public name, method, property and field."""
    return "".join(f"{line}\n" for name in toolscout.__all__ for line in _lines(name, getattr(toolscout, name)))


def unexported() -> set[str]:
    """Return the types of `toolscout` that a public signature mentions and the package does not export."""
    missing = set()
    for name in toolscout.__all__:
        value = getattr(toolscout, name)
        for owner, annotation in _annotations(value):
            module = import_module(owner)
            for part in _names(annotation):
                home = _home(module, part)
                if home and home.split(".")[0] == "toolscout" and part not in toolscout.__all__:
                    missing.add(f"{home}.{part} (in {name})")
    return missing


def _lines(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})"
        for member, kind, annotation in _members(value):
            yield f"    {kind} {member}{annotation}"
    elif callable(value):
        yield f"def {name}{inspect.signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _members(value: type) -> Iterator[tuple[str, str, str]]:
    fields = getattr(value, "__dataclass_fields__", {})
    for name in sorted(vars(value)):
        member = inspect.getattr_static(value, name)
        if name == "__init__" and not fields and inspect.isfunction(member):
            yield name, "def", str(inspect.signature(member))
        elif name.startswith("_"):
            continue
        elif isinstance(member, property):
            yield name, "property", f" -> {inspect.signature(member.fget).return_annotation}" if member.fget else ""
        elif isinstance(member, (classmethod, staticmethod)):
            yield name, type(member).__name__, str(inspect.signature(member.__func__))
        elif inspect.isfunction(member):
            yield name, "async def" if inspect.iscoroutinefunction(member) else "def", str(inspect.signature(member))
    for field in sorted(fields):
        if not field.startswith("_"):
            yield field, "field", f": {fields[field].type}"


def _annotations(value: Any) -> Iterator[tuple[str, str]]:
    """Give every annotation of a public class or function, with the module that it was written in."""
    if not inspect.isclass(value):
        if callable(value):
            yield from _of_signature(value)
        return
    for base in value.__mro__:
        if base.__module__.split(".")[0] != "toolscout":
            continue
        for field in getattr(base, "__dataclass_fields__", {}).values():
            if not field.name.startswith("_"):
                yield base.__module__, str(field.type)
        for name, member in vars(base).items():
            if name.startswith("_") and name not in ("__init__", "__call__"):
                continue
            if name == "__init__" and hasattr(base, "__dataclass_fields__"):
                continue
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function):
                yield from _of_signature(function)


def _of_signature(function: Any) -> Iterator[tuple[str, str]]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    for annotation in (*(item.annotation for item in signature.parameters.values()), signature.return_annotation):
        if isinstance(annotation, str):
            yield function.__module__, annotation


def _names(annotation: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(annotation, mode="eval")):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def _home(module: ModuleType, name: str) -> str | None:
    """Return the module that a name of a file comes from: where it is imported from, or the file itself."""
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            return node.module
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module.__name__
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return module.__name__
    return None


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
