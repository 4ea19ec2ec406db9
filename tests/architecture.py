"""The architecture as data: each package of `toolscout`, what it is for, and which packages it may import.

`tests/test_architecture.py` compares the code with this table. `python tests/architecture.py` prints the table of
docs/architecture.md, and a test compares the two.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "toolscout"
MODULES = sorted(SOURCE.rglob("*.py"))


@dataclass(frozen=True, slots=True)
class Package:
    """A package, or a module at the top level: what it is for, and what it may import beside itself."""

    name: str
    purpose: str
    imports: str = ""

    @property
    def may_import(self) -> frozenset[str]:
        """Return the names that it may import."""
        return frozenset(self.imports.split())


LAYERS: dict[str, tuple[Package, ...]] = {
    "Foundation": (
        Package("errors", "every error, as one tree"),
        Package("settings", "every limit and default, one environment variable each", "errors"),
        Package("models", "frozen data that travels between the stages", "errors"),
        Package("tool_keys", "`<server>__<tool>`: slugs, keys, collisions"),
        Package("text", "words, stems, scripts, stop words, token counts"),
        Package("sample", "a small bundled catalogue"),
    ),
    "Shared": (
        Package("ports", "the Protocols that adapters implement", "models"),
        Package("policy", "who may see and call what; limits; API keys", "errors models ports"),
        Package("config", "the operator's files, read into data", "errors models tool_keys"),
        Package("telemetry", "audit log, events, redaction", "errors models"),
        Package("chat", "the formats of the chat APIs", "errors models"),
    ),
    "Adapters": (
        Package("sources", "tools from rows and from authors' providers", "errors models ports tool_keys"),
        Package("downstream", "connections to MCP servers", "config errors models ports settings tool_keys"),
        Package("storage", "SQLite, PostgreSQL and the index in memory", "errors models ports settings telemetry text"),
        Package("embedding", "text to vectors", "errors models ports settings"),
    ),
    "Pipelines": (
        Package("indexing", "a server's tools to one published generation", "errors models ports settings text"),
        Package("discovery", "a request to ranked tools", "errors models ports settings telemetry text"),
        Package("execution", "a key and arguments to a result", "errors models policy ports telemetry"),
    ),
    "Centre": (
        Package(
            "scout",
            "the facade; the only place where adapters meet pipelines",
            "chat config discovery downstream embedding errors execution indexing models policy ports settings sources "
            "storage telemetry tool_keys",
        ),
    ),
    "Entry points": (
        Package("gateway", "the MCP server for agents", "config errors models policy ports scout settings tool_keys"),
        Package("registry", "`ToolRegistry` for authors of servers", "errors models ports scout settings"),
        Package(
            "cli",
            "the `toolscout` command",
            "config errors gateway models policy ports sample scout settings storage telemetry tool_keys",
        ),
        Package("__main__", "`python -m toolscout`", "cli"),
        Package("", "the public API", "errors models ports registry scout settings"),
    ),
}
PACKAGES = {package.name: package for layer in LAYERS.values() for package in layer}


def package_of(path: Path) -> str:
    """Return the package that a file belongs to; the public API in `toolscout/__init__.py` is the empty name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def module_of(path: Path) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, modules: frozenset[str]) -> Iterator[str]:
    """Return the modules of `toolscout` that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "toolscout":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "toolscout")


def drawing() -> str:
    """Write the layers, bottom last, and what each package may import."""
    lines = ["| layer | package | what it is | imports |", "|---|---|---|---|"]
    for layer, packages in reversed(LAYERS.items()):
        for package in packages:
            name = package.name or "__init__"
            imports = ", ".join(sorted(package.may_import)) or "nothing of toolscout"
            lines.append(f"| {layer} | `{name}` | {package.purpose} | {imports} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(drawing())  # noqa: T201
