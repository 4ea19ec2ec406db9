"""The architecture as data: each package of `toolscout`, what it is for, and which packages it may import.

`tests/test_architecture.py` compares the code with this table. `python tests/architecture.py` writes the drawing and
the table into docs/architecture.md, and a test compares them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "toolscout"
MODULES = sorted(SOURCE.rglob("*.py"))
PAGE = SOURCE.parent.parent / "docs" / "architecture.md"
PIPELINES = ("Index", "Discover", "Execute")
STOP = re.compile(r"`([\w/]+\.py):([\w.]+)`")


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
        Package("text", "words, stems, scripts, stop words, token counts"),
        Package("verbs", "what a request asks to be done, and what a tool's name says that it does", "text"),
        Package("printable", "texts of servers made safe for a terminal or a log"),
        Package("loopback", "whether a host is this machine"),
        Package("tool_keys", "`<server>__<tool>`: slugs, keys, collisions"),
        Package("data", "rules and word lists that are shipped as files"),
        Package("sample", "a small bundled catalogue"),
        Package("jsonrpc_lines", "JSON-RPC messages, one a line, over a pipe"),
        Package("compact_json", "values as compact JSON, and how many bytes that has"),
        Package("parameter_names", "what other systems call a parameter"),
        Package("settings", "every limit and default, one environment variable each", "errors"),
        Package("token_cipher", "encryption of tokens at rest", "errors settings"),
        Package("token_keys", "where the keys of that encryption are", "errors settings token_cipher"),
        Package("fields", "values read from JSON and TOML, with the path of a wrong one", "errors"),
        Package("models", "frozen values that travel between the stages", "errors text"),
        Package("suggestions", "did you mean ...?", "errors models tool_keys"),
        Package("definition_diff", "two definitions compared, and a change as JSON", "models"),
        Package("retrieval_metrics", "retrieval quality on labelled requests", "errors models"),
        Package("schema_cost", "how long a check by a schema may take, at most"),
        Package("arguments", "arguments checked against a schema, and repaired", "errors models text"),
    ),
    "Shared": (
        Package("ports", "the Protocols that adapters implement", "models"),
        Package("policy", "who may see and call what; limits; claims; API keys", "errors models"),
        Package("config", "the operator's files, read into values", "errors fields models tool_keys"),
        Package("telemetry", "audit log, events, metrics, spans, redaction", "errors models"),
        Package("chat", "the formats of the chat APIs", "errors models text"),
        Package(
            "mcp_tools",
            "an MCP tool made of a typed function",
            "arguments errors models parameter_names suggestions text",
        ),
        Package("sources", "tools from rows and from authors' providers", "errors models ports tool_keys"),
    ),
    "Adapters": (
        Package(
            "downstream",
            "connections to MCP servers",
            "config errors jsonrpc_lines models ports settings telemetry token_cipher tool_keys",
        ),
        Package("storage", "SQLite, PostgreSQL and the index in memory", "errors models ports settings telemetry text"),
        Package("embedding", "text to vectors", "errors models ports settings telemetry"),
        Package("worker", "processes for work on strangers' text, which can be stopped", "ports"),
    ),
    "Pipelines": (
        Package(
            "indexing",
            "definitions to one published generation",
            "data errors models ports settings text tool_keys",
        ),
        Package(
            "discovery",
            "a request to ranked tools",
            "chat data errors models ports settings suggestions telemetry text verbs",
        ),
        Package(
            "execution",
            "a key and arguments to a result",
            "arguments compact_json errors models policy ports schema_cost suggestions telemetry",
        ),
    ),
    "Centre": (
        Package(
            "scout",
            "the facade; the only place where adapters meet pipelines",
            "chat config discovery downstream embedding errors execution indexing models parameter_names policy ports "
            "settings sources "
            "storage suggestions telemetry text token_keys tool_keys worker retrieval_metrics",
        ),
    ),
    "Entry points": (
        Package(
            "gateway",
            "the MCP server for agents",
            "compact_json config errors jsonrpc_lines loopback mcp_tools models policy ports scout settings telemetry "
            "text tool_keys",
        ),
        Package(
            "registry",
            "`ToolRegistry` for authors of servers",
            "arguments errors mcp_tools models parameter_names ports scout settings sources suggestions",
        ),
        Package("testing", "a live server in memory, for tests of programs", "errors models ports tool_keys"),
    ),
    "Web": (
        Package(
            "api",
            "the REST API for programs and the console",
            "config definition_diff errors gateway models retrieval_metrics scout settings suggestions telemetry "
            "tool_keys",
        ),
        Package(
            "console",
            "the web page for people, and its sessions",
            "api config errors gateway models scout settings token_keys",
        ),
    ),
    "Top": (
        Package("__init__", "the public API", "chat config errors models policy ports registry scout settings sources"),
        Package(
            "cli",
            "the `toolscout` command",
            "api config console definition_diff errors gateway loopback models policy ports printable "
            "retrieval_metrics sample scout settings telemetry text token_cipher tool_keys __init__",
        ),
        Package("sync", "`Scout` without asyncio", "errors scout"),
        Package("__main__", "`python -m toolscout`", "cli"),
    ),
}
PACKAGES = {package.name: package for layer in LAYERS.values() for package in layer}

DRIVERS = {
    "fastapi": "api",
    "h11": "gateway",
    "httpcore2": "downstream",
    "httpx2": "downstream embedding gateway",
    "jwt": "gateway",
    "mcp": "downstream gateway jsonrpc_lines registry sources",
    "onnxruntime": "embedding",
    "opentelemetry": "telemetry",
    "psycopg": "storage",
    "rich": "cli",
    "sqlite3": "storage",
    "starlette": "api console gateway registry",
    "tokenizers": "embedding",
    "tomlkit": "config",
    "typer": "cli",
    "uvicorn": "gateway",
    "yaml": "config",
}
"""Libraries that do I/O or are slow to load, and the packages that import them."""


def package_of(module: str) -> str:
    """Return the package of a dotted module name; `toolscout` itself, the public API, is `__init__`."""
    return [*module.split("."), "__init__"][1]


def module_of(path: Path) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse a file, once."""
    return ast.parse(path.read_text("utf-8"))


MODULE_NAMES = frozenset(map(module_of, MODULES))


def imports_of(path: Path) -> set[str]:
    """Return the modules of `toolscout` that a file imports, wherever in the file."""
    imports: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "toolscout":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imports |= {name if name in MODULE_NAMES else node.module for name in names}
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names if alias.name.split(".")[0] == "toolscout"}
    return imports


def libraries_of(path: Path) -> set[str]:
    """Return the top-level names of all that a file imports, and of what it loads with `import_module`."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names |= {str(item.value) for item in node.args if isinstance(item, ast.Constant)}
    return {name.split(".")[0] for name in names}


def find_cycle(graph: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return nodes that lead back to the first of them, or nothing."""
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def drawing() -> str:
    """Draw the layers and the imports between packages; one that others lead to anyway is not drawn."""
    reach: dict[str, set[str]] = {}
    for name in TopologicalSorter({name: item.may_import for name, item in PACKAGES.items()}).static_order():
        reach[name] = set(PACKAGES[name].may_import).union(*(reach[item] for item in PACKAGES[name].may_import))
    lines = ["```mermaid", "flowchart TD"]
    for layer, packages in reversed(LAYERS.items()):
        lines += [f'    subgraph "{layer}"', *(f"        {package.name}" for package in packages), "    end"]
    for package in PACKAGES.values():
        indirect = set().union(*(reach[item] for item in package.may_import))
        lines += [f"    {package.name} --> {item}" for item in sorted(package.may_import - indirect)]
    return "\n".join([*lines, "```"])


def table() -> str:
    """Write what each package is and imports, the highest layer first."""
    lines = ["| layer | package | what it is | imports |", "|---|---|---|---|"]
    for layer, packages in reversed(LAYERS.items()):
        for package in packages:
            imports = ", ".join(sorted(package.may_import)) or "nothing of toolscout"
            lines.append(f"| {layer} | `{package.name}` | {package.purpose} | {imports} |")
    return "\n".join(lines)


def stops_of(pipeline: str) -> list[tuple[str, str]]:
    """Return the stops of a pipeline on the page: file and name."""
    section = re.split(r"^(?:##+ |\| pipeline)", PAGE.read_text("utf-8").partition(f"### {pipeline}\n")[2], flags=re.M)[
        0
    ]
    return STOP.findall(section)


def counts() -> str:
    """Write for each pipeline how many stops, files and packages it has, and how often it returns to a package."""
    lines = ["| pipeline | stops | files | packages | returns to a package |", "|---|---|---|---|---|"]
    for pipeline in PIPELINES:
        files = [file for file, _ in stops_of(pipeline)]
        packages = [package for package, _ in groupby(file.split("/")[0].removesuffix(".py") for file in files)]
        distinct = len(set(packages))
        row = (pipeline.lower(), len(files), len(set(files)), distinct, len(packages) - distinct)
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def defines(file: str, name: str) -> bool:
    """Return whether a file defines a function, a class, a method (`Class.method`) or a value."""
    body: list[ast.stmt] = tree_of(SOURCE / file).body
    for part in name.split("."):
        nodes = [node for node in body if part in _names_of(node)]
        if not nodes:
            return False
        body = getattr(nodes[0], "body", [])
    return True


def _names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return [ast.unparse(node.target)]
    return [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    page = re.sub(r"```mermaid\n.*?```", lambda _: drawing(), page, count=1, flags=re.S)
    page = re.sub(r"^\| layer \|.*?(?=\n\n)", lambda _: table(), page, count=1, flags=re.S | re.M)
    page = re.sub(r"^\| pipeline \|.*?(?=\n\n)", lambda _: counts(), page, count=1, flags=re.S | re.M)
    PAGE.write_text(page, "utf-8")
