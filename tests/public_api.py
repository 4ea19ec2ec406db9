"""The public API, read from the source: every public name, its signatures, and the types that they mention.

`python tests/public_api.py` rewrites tests/data/public_api.txt after an intended change.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_overloads

SNAPSHOT = Path(__file__).parent / "data" / "public_api.txt"
PUBLIC_MODULES = (
    "toolscout",
    "toolscout.api",
    "toolscout.config",
    "toolscout.policy",
    "toolscout.sample",
    "toolscout.sync",
    "toolscout.testing",
)
MADE_BY_SCOUT = {"Access", "ApiKeys", "CatalogueSync", "Decisions", "LiveServers"}
"""Classes whose objects a Scout makes: their methods are public, and their constructors are not."""


def public_names() -> dict[str, dict[str, Any]]:
    """Return the values of each public module by name."""
    modules = {name: import_module(name) for name in PUBLIC_MODULES}
    return {name: {item: getattr(module, item) for item in module.__all__} for name, module in modules.items()}


def snapshot() -> str:
    """Write one line for each public name, method, property and field."""
    lines = []
    for module, values in public_names().items():
        lines += ["", f"# {module}", *(line for name, value in values.items() for line in _lines(name, value))]
    return "\n".join([*lines[1:], ""])


def unexported() -> set[str]:
    """Return the types of `toolscout` that a public signature mentions and no public module exports."""
    exported = {name for values in public_names().values() for name in values}
    missing = set()
    for module, values in public_names().items():
        for name, value in values.items():
            for owner, annotation in _annotations(value):
                for part in set(_names(annotation)) - exported:
                    home = _home(import_module(owner), part)
                    if home and home.split(".")[0] == "toolscout":
                        missing.add(f"{home}.{part}, which {module}.{name} mentions")
    return missing


def _lines(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})"
        for member, kind, annotation in sorted(_members(value)):
            yield f"    {kind} {member}{annotation}"
    elif inspect.isfunction(value):
        yield f"def {name}{_signature(value)}"
    elif get_origin(value) is Literal:
        yield f"{name} = {' | '.join(map(repr, get_args(value)))}"
    else:
        yield name


def _members(value: type) -> Iterator[tuple[str, str, str]]:
    fields = getattr(value, "__dataclass_fields__", {})
    for name, member in vars(value).items():
        if name == "__init__" and not fields and inspect.isfunction(member) and value.__name__ not in MADE_BY_SCOUT:
            yield name, "def", _signature(member)
        elif name.startswith("_"):
            continue
        elif isinstance(member, property) and member.fget:
            yield name, "property", f" -> {inspect.signature(member.fget).return_annotation}"
        elif isinstance(member, (classmethod, staticmethod)):
            yield name, type(member).__name__, _signature(member.__func__)
        elif inspect.isfunction(member):
            yield name, "async def" if inspect.iscoroutinefunction(member) else "def", _signature(member)
    for field in fields.values():
        if not field.name.startswith("_"):
            yield field.name, "field", f": {field.type}"
    for name, annotation in _attributes(value):
        yield name, "attribute", f": {annotation}"


def _signature(function: Any) -> str:
    """Write a signature without the address of a default value."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(function)))


def _attributes(value: type) -> Iterator[tuple[str, str]]:
    """Give the public attributes that a class of ours sets in `__init__`, with their types."""
    initialiser = vars(value).get("__init__")
    if not inspect.isfunction(initialiser) or hasattr(value, "__dataclass_fields__"):
        return
    if initialiser.__module__.split(".")[0] != "toolscout":
        return
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(initialiser)))):
        annotation = ""
        target: ast.expr
        if isinstance(node, ast.AnnAssign):
            target, annotation = node.target, ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
                annotation = node.value.func.id
        else:
            continue
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and target.attr[0] != "_":
            yield target.attr, annotation


def _annotations(value: Any) -> Iterator[tuple[str, str]]:
    """Give every annotation of a public class or function, with the module that it was written in."""
    if inspect.isfunction(value):
        yield from _of_signature(value)
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if base.__module__.split(".")[0] != "toolscout":
            continue
        for field in getattr(base, "__dataclass_fields__", {}).values():
            if not field.name.startswith("_"):
                yield base.__module__, str(field.type)
        yield from ((base.__module__, annotation) for _, annotation in _attributes(base) if annotation)
        for name, member in vars(base).items():
            if name.startswith("_") and name not in ("__init__", "__call__"):
                continue
            if name == "__init__" and (hasattr(base, "__dataclass_fields__") or base.__name__ in MADE_BY_SCOUT):
                continue
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function):
                yield from _of_signature(function)


def _of_signature(function: Any) -> Iterator[tuple[str, str]]:
    for form in (function, *get_overloads(function)):
        signature = inspect.signature(form)
        for annotation in (*(item.annotation for item in signature.parameters.values()), signature.return_annotation):
            if isinstance(annotation, str):
                yield function.__module__, annotation


def _names(annotation: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(annotation, mode="eval")):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _home(module: ModuleType, name: str) -> str | None:
    """Return the module that a name of a file comes from: where it is imported from, or the file itself."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            return node.module
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module.__name__
        is_type_variable = isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("TypeVar(")
        if (
            isinstance(node, ast.Assign)
            and not is_type_variable
            and any(ast.unparse(target) == name for target in node.targets)
        ):
            return module.__name__
    return None


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
