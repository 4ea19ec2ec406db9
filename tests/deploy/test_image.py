"""What the Dockerfile builds is installed and started, by the commands of the image and of the systemd unit."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import Client

from container_image import DOCKERFILE, ROOT, Installed, health_command, install, read_only, stages, values, variables
from downstreams import FAKE, until
from raw_client import text_of
from servers import free_port
from toolscout import Scout, Settings, __version__
from waiting import eventually
from web import client_as

pytestmark = pytest.mark.process

WAIT_S = 60.0
HADOLINT = str(Path(sys.executable).with_name("hadolint"))
WAYS = {"image": Installed.as_image, "unit": Installed.as_unit}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Return what the Dockerfile installs, of which only the data folder can be written."""
    made = install(tmp_path_factory.mktemp("image") / "root")
    etc = made.root / "etc" / "toolscout"
    with ExitStack() as stack:
        stack.enter_context(contextmanager(read_only)(made.root / "opt"))
        # As Kubernetes mounts a ConfigMap: files are links into a folder, which is replaced as a whole.
        (etc / "mcp.json").symlink_to("..data/mcp.json")
        (etc / "environment").write_text("TOOLSCOUT_PUBLIC_URL=https://tools.example.com\n", "utf-8")
        yield made


def publish(etc: Path, version: str, servers: Mapping[str, object]) -> None:
    """Let the next version of a ConfigMap take the place of the last."""
    (etc / version).mkdir()
    (etc / version / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    (etc / "next").symlink_to(version)
    (etc / "next").replace(etc / "..data")


@dataclass
class Running:
    """A gateway that was started as the image or the unit starts it, on other ports."""

    process: subprocess.Popen[bytes]
    port: int
    diagnostics: int
    environment: Mapping[str, str]
    log: Path

    def is_healthy(self) -> bool:
        """Run the health check of the image."""
        command = [word.replace("9090", str(self.diagnostics)) for word in health_command()]
        return subprocess.run(command, env=dict(self.environment), capture_output=True).returncode == 0

    async def until_it_serves(self) -> None:
        """Wait until it says so, or ends."""
        await eventually(self._serves_or_ended, WAIT_S)
        assert self.process.poll() is None, self.log.read_text()

    async def _serves_or_ended(self) -> bool:
        return "MCP is served" in self.log.read_text() or self.process.poll() is not None

    def status(self, path: str, *, port: int = 0, **headers: str) -> int:
        """Send a GET request and return the status of the answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=5)) as connection:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status


@contextmanager
def running(installed: Installed, way: str, folder: Path) -> Iterator[Running]:
    command, environment = WAYS[way](installed)
    port, diagnostics = free_port(), free_port()
    command = [word.replace("8080", str(port)).replace("9090", str(diagnostics)) for word in command]
    environment = {**environment, "TMPDIR": str(folder), "TOOLSCOUT_DRAIN_S": "0"}
    health = {**environment, "PATH": f"{installed.root}/opt/toolscout/bin:{os.defpath}"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=installed.root, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield Running(process, port, diagnostics, health, folder / "log")
    finally:
        process.kill()
        process.wait()


async def create_key(installed: Installed) -> str:
    """Create a key in the catalogue of the data folder, which is found without any setting."""
    store = f"sqlite:///{installed.root}/var/lib/toolscout/catalogue.db"
    async with Scout.open(settings=Settings(store=store, embedder="none")) as scout:
        return (await scout.api_keys.create(tenant="local", user="ann"))[0]


@pytest.mark.parametrize("way", WAYS)
async def test_the_gateway_runs_as_it_is_started_there_and_writes_only_to_its_data_folder(
    installed: Installed, way: str, tmp_path: Path
) -> None:
    key, etc = await create_key(installed), installed.root / "etc" / "toolscout"
    publish(etc, f"empty for {way}", {})
    fake = {"command": sys.executable, "args": [FAKE, str(tmp_path / "fake.log"), "--names", "echo"]}
    before = installed.files()
    with running(installed, way, tmp_path) as gateway:
        assert not gateway.is_healthy()
        await gateway.until_it_serves()
        assert gateway.is_healthy()
        assert gateway.status("/mcp") == 401
        assert gateway.status("/mcp", Host="tools.example.com") == 401
        # Browsers send an Origin for the scripts of the console. The unit names its public address, the image does not.
        assert gateway.status("/", Host="tools.example.com", Origin="https://tools.example.com") == 200
        assert gateway.status("/", Origin=f"http://127.0.0.1:{gateway.port}") == 200
        assert gateway.status("/", Origin="https://evil.example") == 403
        # An orchestrator asks by the address of the container. Elsewhere only this machine asks.
        found = gateway.status("/metrics", port=gateway.diagnostics, Host="10.1.2.3:9090")
        assert found == (200 if way == "image" else 403)
        publish(etc, f"one server for {way}", {"fake": fake})
        await until(lambda: "the config has changed: 1 servers" in gateway.log.read_text())
        async with client_as(f"http://127.0.0.1:{gateway.port}", Authorization=f"Bearer {key}") as (client, _):
            await eventually(lambda: echoes(client), WAIT_S)
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WAIT_S) == 0
    assert {name for name, _ in installed.files() - before} == {f"etc/toolscout/one server for {way}/mcp.json"}
    assert names(tmp_path) == {"log", "fake.log"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def echoes(client: Client) -> bool:
    """Tell whether a call reaches the server, which the gateway may not have indexed yet."""
    result = await client.call_tool("call_tool", {"name": "fake__echo", "arguments": {"text": "hello"}})
    return not result.is_error and text_of(result) == "hello"


def test_the_image_has_the_wheel_of_this_version_and_no_editable_link(installed: Installed) -> None:
    (information,) = installed.root.glob("opt/toolscout/lib/python*/site-packages/toolscout-*.dist-info")
    assert information.name == f"toolscout-{__version__}.dist-info"
    record = (information / "RECORD").read_text("utf-8")
    assert "toolscout/model/model.onnx" in record
    assert ".pth" not in record
    assert not list(installed.root.glob("opt/toolscout/lib/python*/site-packages/pytest"))


def test_the_linter_finds_nothing_in_the_dockerfile() -> None:
    done = subprocess.run([HADOLINT, "--failure-threshold", "style", str(DOCKERFILE)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_no_root_and_builds_with_the_uv_of_the_makefile_from_what_is_not_ignored() -> None:
    build, final = stages()
    assert values(final, "USER") == ["10001:10001"]
    (version,) = [
        line.split()[-1] for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if "UV_VERSION :=" in line
    ]
    assert any(f"uv=={version}" in value for value in values(build, "RUN"))
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = {name for value in values(build, "COPY") for name in value.split()[:-1]}
    assert {line[1:] for line in ignored if line.startswith("!")} == copied
    assert "*" in ignored
    assert variables(final)["XDG_DATA_HOME"] + "/toolscout" == values(final, "VOLUME")[0]
