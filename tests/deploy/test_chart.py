"""The Helm chart, rendered by Helm itself, gives manifests that Kubernetes accepts, without needless rights."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from container_image import ROOT, stages, values
from toolscout import Settings, __version__
from toolscout.config import read_config
from toolscout.policy.policy_file import parse_policy

CHART = ROOT / "deploy" / "helm" / "toolscout"
VERSIONS = ("1.25", kubernetes_validate.latest_version())
TEAM = {
    "replicas": 3,
    "store": {"secretName": "database"},
    "secrets": ["tokens"],
    "env": {"TOOLSCOUT_AUTH_ISSUER": "https://login.example.com", "TOOLSCOUT_DRAIN_S": 5, "TOOLSCOUT_QUARANTINE": True},
    "config": {"mcpServers": {"github": {"url": "https://github.example.com/mcp"}}},
    "policy": '[[allow]]\nwho = ["group:staff"]\n\n[[deny]]\nwho = ["anyone"]\ntools = ["*__delete_*"]\n',
    "ingress": {"enabled": True, "className": "nginx", "tlsSecretName": "tls", "annotations": {"a": "b"}},
    "serviceMonitor": {"enabled": True, "labels": {"team": "tools"}},
    "volume": {"storageClass": "fast"},
    "imagePullSecrets": [{"name": "pull"}],
    "podAnnotations": {"note": "1"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "tools", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
ALONE: dict[str, Any] = {}


@pytest.fixture(scope="module")
def chart() -> Iterator[helm_python.Chart]:
    with helm_python.Chart.load(CHART) as loaded:
        yield loaded


def manifests(chart: helm_python.Chart, given: dict[str, Any]) -> dict[str, Any]:
    """Render the chart, and return the manifests by kind and name."""
    rendered = chart.render(given, name="tools", namespace="agents")
    texts = [text for name, text in rendered.items() if name.endswith(".yaml")]
    documents = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return {f"{document['kind']}/{document['metadata']['name']}": document for document in documents}


def pod(chart: helm_python.Chart, given: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifests(chart, given)["StatefulSet/tools-toolscout"]["spec"]["template"]["spec"]
    return spec


def test_the_linter_of_helm_finds_nothing_but_that_there_is_no_icon() -> None:
    report = helm_python.lint(CHART, strict=True)
    assert [message["error"] for message in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("given", [ALONE, TEAM], ids=["one replica", "a team"])
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_every_manifest(chart: helm_python.Chart, given: dict[str, Any], version: str) -> None:
    for name, manifest in manifests(chart, given).items():
        if not name.startswith("ServiceMonitor/"):  # the operator's own kind
            kubernetes_validate.validate(manifest, version, strict=True)


def test_the_chart_has_the_version_of_the_package(chart: helm_python.Chart) -> None:
    assert (chart.metadata["version"], chart.metadata["appVersion"]) == (__version__, __version__)
    assert pod(chart, ALONE)["containers"][0]["image"] == f"toolscout:{__version__}"


@pytest.mark.parametrize("given", [ALONE, TEAM], ids=["one replica", "a team"])
def test_no_container_has_rights_that_it_does_not_need(chart: helm_python.Chart, given: dict[str, Any]) -> None:
    spec = pod(chart, given)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    user = f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}"
    assert values(stages()[-1], "USER") == [user]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
            *values(stages()[-1], "VOLUME"),
            "/etc/toolscout",
            "/tmp",
        }


def test_the_config_and_the_policy_arrive_as_they_were_given(chart: helm_python.Chart, tmp_path: Path) -> None:
    data = manifests(chart, TEAM)["ConfigMap/tools-toolscout"]["data"]
    (tmp_path / "mcp.json").write_text(data["mcp.json"], "utf-8")
    assert [server.title for server in read_config([tmp_path / "mcp.json"]).servers] == ["github"]
    assert parse_policy(data["policy.toml"]) == parse_policy(str(TEAM["policy"]))
    environment = {item["name"]: item.get("value") for item in pod(chart, TEAM)["containers"][0]["env"]}
    assert environment["TOOLSCOUT_POLICY"] == "/etc/toolscout/policy.toml"
    given = {name: value for name, value in environment.items() if value is not None}
    assert Settings.from_env(given).drain_s == 5
    assert Settings.from_env(given).quarantine
    assert Settings.from_env(given).public_url == "https://tools.example.com"


def test_the_example_of_the_page_can_be_installed(chart: helm_python.Chart) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    (example,) = re.findall(r"```text\n(replicas: .*?)```", page, re.S)
    values = yaml.safe_load(example)
    for name, manifest in manifests(chart, values).items():
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)
        assert "PASSWORD" not in str(manifest), name
    assert pod(chart, values)["containers"][0]["envFrom"] == [{"secretRef": {"name": "toolscout-tokens"}}]


def test_a_password_is_in_no_manifest_but_comes_from_a_secret(chart: helm_python.Chart) -> None:
    (gateway,) = pod(chart, TEAM)["containers"]
    (store,) = [item for item in gateway["env"] if item["name"] == "TOOLSCOUT_STORE"]
    assert store["valueFrom"]["secretKeyRef"] == {"name": "database", "key": "url"}
    assert gateway["envFrom"] == [{"secretRef": {"name": "tokens"}}]


def test_the_diagnostics_are_probed_and_scraped_but_not_in_the_service_of_clients(chart: helm_python.Chart) -> None:
    everything = manifests(chart, TEAM)
    clients, replicas = everything["Service/tools-toolscout"], everything["Service/tools-toolscout-replicas"]
    assert [port["targetPort"] for port in clients["spec"]["ports"]] == ["http"]
    assert [port["name"] for port in replicas["spec"]["ports"]] == ["diagnostics"]
    monitor = everything["ServiceMonitor/tools-toolscout"]["spec"]
    labels = replicas["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert not monitor["selector"]["matchLabels"].items() <= clients["metadata"]["labels"].items()
    assert [(end["port"], end["path"]) for end in monitor["endpoints"]] == [("diagnostics", "/metrics")]
    (gateway,) = pod(chart, TEAM)["containers"]
    ports = {port["name"]: port["containerPort"] for port in gateway["ports"]}
    (command,) = values(stages()[-1], "CMD")
    assert json.loads(command)[1:] == [
        "--http",
        f"0.0.0.0:{ports['http']}",
        "--diagnostics",
        f"0.0.0.0:{ports['diagnostics']}",
    ]
    probes = {name: gateway[name]["httpGet"] for name in gateway if name.endswith("Probe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/readyz",
        "readinessProbe": "/livez",
        "livenessProbe": "/livez",
    }
    assert {probe["port"] for probe in probes.values()} == {"diagnostics"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"replicas": 2}, "needs PostgreSQL"),
        ({"replicas": "2"}, "/replicas"),
        ({"replica": 2}, "replica"),
        ({"env": {"drain": "5"}}, "drain"),
        ({"service": {"sessionAffinity": "Cookie"}}, "sessionAffinity"),
    ],
)
def test_values_that_cannot_work_are_refused(chart: helm_python.Chart, given: dict[str, Any], said: str) -> None:
    with pytest.raises(helm_python.HelmError, match=said):
        chart.render(given)


def test_every_value_of_the_chart_is_in_its_schema(chart: helm_python.Chart) -> None:
    schema = chart.schema
    assert schema is not None
    assert set(schema["properties"]) - {"global"} == set(chart.values)


@pytest.mark.process
def test_the_pod_waits_for_the_first_key_and_starts_when_there_is_one(
    chart: helm_python.Chart, toolscout: Callable[..., Any], tmp_path: Path
) -> None:
    (first,) = pod(chart, ALONE)["initContainers"]
    *shell, script = first["command"]
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
    waiting = subprocess.Popen(
        [*shell, script.replace("sleep 5", "sleep 0.1")],
        env={**os.environ, "PATH": path, "TOOLSCOUT_STORE": store},
        stdout=subprocess.PIPE,
        text=True,
    )
    with waiting, ExitStack() as stack:
        stack.callback(waiting.kill)
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waiting for the first API key\n"
        revoked = toolscout("keys", "create", "--tenant", "local", "--store", store, "--json").json
        toolscout("keys", "revoke", revoked["id"], "--store", store)
        assert waiting.stdout.readline() == "waiting for the first API key\n"
        assert waiting.poll() is None
        toolscout("keys", "create", "--tenant", "local", "--store", store)
        assert waiting.wait(60) == 0
    assert "initContainers" not in pod(chart, TEAM)


def test_the_chart_can_be_packaged(tmp_path: Path) -> None:
    copy = shutil.copytree(CHART, tmp_path / "toolscout")
    archive = helm_python.package(copy, destination=tmp_path)
    with helm_python.Chart.load(archive) as packed:
        assert packed.version == __version__
