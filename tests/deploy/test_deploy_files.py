"""The compose file, the systemd unit and the workflows fit their schemas and linters, and name what exists."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from container_image import ROOT, UNIT, stages, unit_lines, values
from toolscout import Settings, __version__
from toolscout.config import read_config

COMPOSE = ROOT / "deploy" / "compose.yaml"
WORKFLOWS = ROOT / ".github" / "workflows"
SETTINGS = {f"TOOLSCOUT_{field.name.upper()}" for field in fields(Settings)}

MODERN = "2026-07-28"

process = pytest.mark.process


def linted(*command: str) -> tuple[int, str]:
    """Run a linter of this environment, and return its exit code and what it prints."""
    path = Path(sys.executable).with_name(command[0])
    done = subprocess.run([str(path), *command[1:]], capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    return services


@process
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.compose-spec", [COMPOSE]),
        ("vendor.github-workflows", sorted(WORKFLOWS.glob("*.yml"))),
    ],
    ids=["compose", "workflows"],
)
def test_the_file_fits_its_schema(schema: str, files: list[Path]) -> None:
    assert linted("check-jsonschema", "--builtin-schema", schema, *map(str, files))[0] == 0


@process
def test_the_linter_of_workflows_finds_nothing() -> None:
    code, printed = linted("zizmor", "--offline", "--no-progress", str(WORKFLOWS))
    assert (code, "No findings" in printed) == (0, True), printed


@process
def test_the_linter_of_units_finds_nothing() -> None:
    _, printed = linted("systemdlint", "--norootfs", "--nodropins", str(UNIT))
    found = {line.partition("[")[2].partition("]")[0] for line in printed.splitlines()}
    assert found <= {
        "Security.Delegate",  # no control groups are delegated, which is the default
        "Security.UMaskOW",  # reported for every mask
    }, printed


def test_the_gateway_of_the_compose_file_has_no_rights_that_it_does_not_need() -> None:
    gateway = compose()["gateway"]
    assert gateway["read_only"] is True
    assert gateway["cap_drop"] == ["ALL"]
    assert gateway["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in gateway["ports"])
    assert "user" not in gateway
    assert values(stages()[-1], "USER") == ["10001:10001"]


def test_the_compose_file_keeps_what_is_written_and_waits_for_the_database() -> None:
    gateway, database = compose()["gateway"], compose()["database"]
    (data,) = values(stages()[-1], "VOLUME")
    assert [volume for volume in gateway["volumes"] if volume.endswith(f":{data}")]
    assert gateway["depends_on"]["database"]["condition"] == "service_healthy"
    assert database["environment"]["POSTGRES_DB"] == gateway["environment"]["TOOLSCOUT_STORE"].rpartition("/")[2]
    assert database["environment"]["POSTGRES_PASSWORD"] == gateway["environment"]["PGPASSWORD"]
    assert database["image"].startswith("pgvector/pgvector:0.8")
    assert "deploy/.env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def test_every_variable_of_the_deployment_is_a_setting() -> None:
    named = set(compose()["gateway"]["environment"])
    named |= {part.split("=")[0] for name, value in unit_lines() if name == "Environment" for part in value.split()}
    assert {name for name in named if name.startswith("TOOLSCOUT_")} <= SETTINGS


def test_the_config_of_the_compose_file_can_be_read() -> None:
    assert read_config([ROOT / "deploy" / "config" / "mcp.json"]).servers == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ProtectSystem", "strict"),
        ("StateDirectory", "toolscout"),
        ("User", "toolscout"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("KillMode", "mixed"),
    ],
)
def test_the_service_writes_to_its_state_directory_alone(name: str, expected: str) -> None:
    assert [value for given, value in unit_lines() if given == name] == [expected]


def test_the_service_may_stop_for_as_long_as_the_gateway_takes() -> None:
    (limit,) = [float(value) for name, value in unit_lines() if name == "TimeoutStopSec"]
    assert limit > Settings().drain_s + 10
    grace = compose()["gateway"]["stop_grace_period"]
    assert float(grace.removesuffix("s")) > Settings().drain_s + 10


@process
@pytest.mark.parametrize(("tag", "code"), [(f"v{__version__}", 0), ("v9.9.9", 1), (__version__ + "0", 1)])
def test_a_release_fails_if_the_tag_is_not_the_version(tag: str, code: int, tmp_path: Path) -> None:
    steps = yaml.safe_load((WORKFLOWS / "release.yml").read_text("utf-8"))["jobs"]["build"]["steps"]
    (step,) = [step["run"] for step in steps if step.get("name") == "the tag is the version"]
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / f"toolscout-{__version__}.tar.gz").touch()
    done = subprocess.run(
        ["bash", "-e", "-c", step], cwd=tmp_path, env={"GITHUB_REF_NAME": tag, "PATH": "/bin:/usr/bin"}
    )
    assert done.returncode == code


def test_a_release_is_made_for_tags_alone_and_has_wheel_sdist_and_image() -> None:
    workflow = yaml.safe_load((WORKFLOWS / "release.yml").read_text("utf-8"))
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    text = json.dumps(workflow["jobs"])
    assert "make dist" in text
    assert "docker build" in text
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "\t$(UV) build --out-dir dist\n" in makefile


def test_the_sizes_on_the_page_are_those_that_were_measured() -> None:
    results = {path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "benchmarks/results").glob("*.json")}
    speed, gateway = results["speed"], results["gateway"]
    page = (ROOT / "docs" / "deploy.md").read_text("utf-8").partition("## Size")[2]
    for said in (
        f"| memory of a gateway with {speed['tools']:,} tools | {speed['serving_memory_mb']:.0f} MB |",
        f"| {speed['index_cold_memory_mb']:.0f} MB |",
        f"| {speed['index_cold_tools_per_s']:.0f} tools a second; {speed['index_unchanged_s']:.1f} s for all |",
        f"| {speed['search_p50_ms']:.1f} and {speed['search_p95_ms']:.1f} ms |",
        f"| {gateway['clients'][MODERN]['calls_per_s']}, median {gateway['clients'][MODERN]['p50_ms']:.0f} ms |",
        f"{gateway['ready']['servers']} servers | {gateway['ready']['median_s']} s |",
    ):
        assert said in page
    scaling = (ROOT / "docs" / "scaling.md").read_text("utf-8")
    for size in ("5.5 kB", "2.2 kB"):
        assert size in page
        assert size in scaling
    files = Settings().audit_bytes * 11
    assert f"{files / 1e6:.0f} MB" in page
