"""The architecture holds: who may import whom, how large a file may be, what is public, what an import costs."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import toolscout

SOURCE = Path(toolscout.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py"))

BASE = {"errors", "settings", "fields", "tool_keys", "text", "data", "jsonrpc_lines"}
BOTTOM = BASE | {"models", "suggestions", "arguments"}
SHARED = {"ports", "policy", "config", "telemetry"}
ADAPTERS = {"downstream", "sources", "storage", "embedding"}
PIPELINES = {"indexing", "discovery", "execution"}
ENTRY_POINTS = {"cli", "gateway", "registry"}
DATA = {"sample", "model"}

MAY_IMPORT = {
    **dict.fromkeys(BASE, BASE),
    "models": BASE,
    **dict.fromkeys(("suggestions", "arguments", "chat"), BASE | {"models"}),
    **dict.fromkeys(SHARED, BOTTOM | SHARED),
    **dict.fromkeys(ADAPTERS, BOTTOM | SHARED),
    **dict.fromkeys(PIPELINES, BOTTOM | SHARED),
    "discovery": BOTTOM | SHARED | {"chat"},
    "mcp_tools": BOTTOM,
    "scout": BOTTOM | SHARED | ADAPTERS | PIPELINES | {"chat"},
    "gateway": BOTTOM | SHARED | {"scout", "mcp_tools"},
    "registry": BOTTOM | SHARED | {"scout", "sources", "mcp_tools"},
    "cli": BOTTOM | SHARED | ADAPTERS | PIPELINES | DATA | {"scout", "gateway", ""},
    "testing": BOTTOM | SHARED,
    "sample": set(),
    "__main__": {"cli"},
    "": BOTTOM | SHARED | {"chat", "scout", "registry"},
}


def package_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "toolscout":
            below = node.module.split(".")[1:]
            yield from [below[0]] if below else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "toolscout":
                    yield alias.name.split(".")[1] if "." in alias.name else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_import_goes_downwards(path):
    package = package_of(path)
    assert package in MAY_IMPORT, f"{package} has no place in the architecture"
    wrong = set(imports_of(path)) - MAY_IMPORT[package] - {package}
    assert not wrong, f"{path.name} may not import {sorted(wrong)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_passes_400_lines(path):
    assert len(path.read_text("utf-8").splitlines()) <= 400


def test_a_publication_is_made_in_one_place():
    def makes_one(path):
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        return any(isinstance(call.func, ast.Name) and call.func.id == "Publication" for call in calls)

    assert [path.relative_to(SOURCE).as_posix() for path in MODULES if makes_one(path)] == ["indexing/publish.py"]


def test_only_adapters_and_edges_import_drivers_and_servers():
    heavy = {"sqlite3", "onnxruntime", "tokenizers", "faiss", "httpx2", "mcp", "psycopg"}
    for path in MODULES:
        if package_of(path) in ADAPTERS | ENTRY_POINTS | {"jsonrpc_lines"}:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            assert not heavy & {name.split(".")[0] for name in names}, path


def test_all_lists_exactly_what_is_public_and_in_order():
    assert toolscout.__all__ == sorted(toolscout.__all__)
    assert dir(toolscout) == toolscout.__all__
    for name in toolscout.__all__:
        assert getattr(toolscout, name) is not None
    visible = {name for names in toolscout._HOME.values() for name in names} | {"__version__"}
    assert visible == set(toolscout.__all__)


def test_every_public_error_is_exported():
    import toolscout.errors as errors

    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.ToolscoutError)
    }
    assert defined <= set(toolscout.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Scoot'"):
        _ = toolscout.Scoot


def test_importing_toolscout_loads_nothing_heavy():
    code = (
        "import sys, toolscout; from toolscout.cli import app;"
        "print([m for m in ('numpy', 'onnxruntime', 'mcp', 'tokenizers', 'rapidfuzz', 'sqlite3') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_library_user_never_loads_what_only_the_command_needs():
    code = (
        "import sys, toolscout; toolscout.Scout, toolscout.ToolRegistry, toolscout.Settings();"
        "print([m for m in ('typer', 'rich', 'platformdirs') if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_the_project_names_no_path_of_a_machine():
    root = SOURCE.parent.parent
    tracked = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        path = root / name
        if path.suffix in {".py", ".md", ".toml", ".json", ".jsonl", ""} and path.is_file() and path != Path(__file__):
            assert "/work/" not in path.read_text("utf-8", errors="ignore"), name
