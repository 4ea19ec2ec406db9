"""The architecture holds: who may import whom, how large a file may be, what is public, what an import costs."""

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import toolscout
from architecture import (
    DRIVERS,
    LAYERS,
    MODULES,
    PACKAGES,
    PAGE,
    PIPELINES,
    SOURCE,
    STOP,
    counts,
    defines,
    drawing,
    find_cycle,
    imports_of,
    libraries_of,
    module_of,
    package_of,
    stops_of,
    table,
    tree_of,
)
from public_api import PUBLIC_MODULES, SNAPSHOT, public_names, snapshot, unexported
from toolscout.discovery.checks import RANKERS
from toolscout.gateway.tool_lists import SURFACES

ROOT = SOURCE.parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
NAMES = {layer: {package.name for package in packages} for layer, packages in LAYERS.items()}


def test_every_package_imports_exactly_what_the_table_lists() -> None:
    imports: dict[str, set[str]] = {package_of(module_of(path)): set() for path in MODULES}
    for path in MODULES:
        package = package_of(module_of(path))
        imports[package] |= {package_of(module) for module in imports_of(path)} - {package}
    assert imports == {name: set(package.may_import) for name, package in PACKAGES.items()}


def test_no_layer_imports_a_higher_one() -> None:
    below: set[str] = set()
    for layer, packages in LAYERS.items():
        below |= NAMES[layer]
        assert all(package.may_import <= below for package in packages)
    assert not find_cycle({name: package.may_import for name, package in PACKAGES.items()})


@pytest.mark.parametrize("layer", ["Adapters", "Pipelines", "Entry points"])
def test_packages_of_one_layer_do_not_know_one_another(layer: str) -> None:
    assert not any(package.may_import & NAMES[layer] for package in LAYERS[layer])


def test_adapters_and_pipelines_meet_in_the_centre_alone() -> None:
    adapters, pipelines = NAMES["Adapters"], NAMES["Pipelines"]
    assert not any(package.may_import & adapters for package in LAYERS["Pipelines"])
    for package in (*LAYERS["Entry points"], *LAYERS["Top"]):
        assert not package.may_import & (adapters | pipelines), package.name


def test_no_modules_import_one_another_in_a_circle() -> None:
    assert not find_cycle({module_of(path): imports_of(path) for path in MODULES})


def test_the_page_draws_the_packages_and_counts_the_stops_as_they_are() -> None:
    page = PAGE.read_text("utf-8")
    for part in (drawing(), table(), counts()):
        assert part in page, "run `python tests/architecture.py`"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_stop_of_a_pipeline_exists(pipeline: str) -> None:
    stops = stops_of(pipeline)
    assert len(stops) > 30
    assert [stop for stop in stops if not defines(*stop)] == []


def test_every_place_that_the_page_names_exists() -> None:
    page = PAGE.read_text("utf-8")
    assert [place for place in STOP.findall(page) if not defines(*place)] == []
    paths = re.findall(r"`((?:cli|config|data|discovery|gateway|tests)/[\w/.]*)`", page)
    assert [path for path in paths if not (SOURCE / path).exists() and not (ROOT / path).exists()] == []


def test_every_word_of_the_glossary_that_is_code_names_a_class_or_a_module() -> None:
    glossary = PAGE.read_text("utf-8").partition("## Words")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!word|-)([^|]+) \| ([^|]+) \|$", glossary, re.M)
    nodes = [node for path in MODULES for node in tree_of(path).body]
    definitions = {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    names = definitions | PACKAGES.keys() | {*RANKERS, *SURFACES, "tools.jsonl", "<server>__<tool>"}
    assert len(rows) >= 25
    assert {word for _, meaning in rows for word in re.findall(r"`([^`]+)`", meaning)} <= names


def test_class_names_are_unique() -> None:
    nodes = (node for path in MODULES for node in ast.walk(tree_of(path)))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_module_passes_400_lines() -> None:
    lines = {module_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert [module for module, count in lines.items() if count > 400] == []


def test_a_publication_is_made_in_one_place() -> None:
    def makes_one(path: Path) -> bool:
        calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
        return any(isinstance(call.func, ast.Name) and call.func.id == "Publication" for call in calls)

    assert [path.relative_to(SOURCE).as_posix() for path in MODULES if makes_one(path)] == ["indexing/publish.py"]


@pytest.mark.parametrize("library", DRIVERS)
def test_a_driver_is_imported_by_its_own_packages_alone(library: str) -> None:
    packages = {package_of(module_of(path)) for path in MODULES if library in libraries_of(path)}
    assert packages == set(DRIVERS[library].split())


def test_all_lists_exactly_what_is_public_and_in_order() -> None:
    assert toolscout.__all__ == sorted(toolscout.__all__)
    assert dir(toolscout) == toolscout.__all__
    for name in toolscout.__all__:
        assert getattr(toolscout, name) is not None


def test_type_checkers_see_the_public_names_that_exist() -> None:
    nodes = ast.walk(tree_of(SOURCE / "__init__.py"))
    imports = [(node.module, alias) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    declared = {alias.asname: module for module, alias in imports if alias.name == alias.asname}
    assert declared == {name: f"toolscout.{module}" for name, module in toolscout._MODULE_OF.items()}


def test_every_type_in_a_public_signature_is_public() -> None:
    assert unexported() == set()


def test_the_public_api_is_what_the_snapshot_shows() -> None:
    assert snapshot() == SNAPSHOT.read_text("utf-8"), "run `python tests/public_api.py` if the change is intended"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_import_public_names_alone(path: Path) -> None:
    text = path.read_text("utf-8")
    sources = [text] if path.suffix == ".py" else re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "toolscout":
            names = {alias.name for alias in node.names}
            assert names <= public_names().get(node.module or "", {}).keys(), ast.unparse(node)
        elif isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names if alias.name.split(".")[0] == "toolscout"}
            assert modules <= set(PUBLIC_MODULES), ast.unparse(node)


def test_every_public_error_is_exported() -> None:
    import toolscout.errors as errors

    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.ToolscoutError)
    }
    assert defined <= set(toolscout.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Scoot'"):
        _ = toolscout.Scoot


@pytest.mark.process
def test_importing_toolscout_loads_nothing_heavy() -> None:
    code = (
        "import sys, toolscout; from toolscout.cli import app;"
        "print([m for m in ('numpy', 'onnxruntime', 'mcp', 'tokenizers', 'rapidfuzz', 'sqlite3') if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.mark.process
def test_a_library_user_never_loads_what_only_the_command_needs() -> None:
    code = (
        "import sys, toolscout; toolscout.Scout, toolscout.ToolRegistry, toolscout.Settings();"
        "print([m for m in ('typer', 'rich', 'platformdirs') if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.mark.process
def test_the_project_names_no_path_of_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".json", ".jsonl", ""} and path.is_file() and path != Path(__file__):
            assert "/work/" not in path.read_text("utf-8", errors="ignore"), name
