"""The first hour of a new user: a clone, an empty home, and the README's commands in their order.

Nothing is prepared and no variable is set. What `make demo` installs comes from the cache of the set-up, where it is.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from guarantees import guarantee
from pages import COLUMNS, README, ROOT, blocks, check
from toolscout.config import ServerConfig
from waiting import eventually

pytestmark = [
    pytest.mark.process,
    pytest.mark.docs,
    pytest.mark.skipif(sys.platform == "win32", reason="the README's commands are those of a POSIX shell"),
]

HERE_ONLY = (".git", ".venv", ".tools", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
INSTALLING = re.compile(r"(?:PIP|UV|SSL|REQUESTS|NODE)_\w+|\w+_PROXY", re.I)
"""Variables that a machine may need to reach its package index."""

WAIT_S = 60.0


@dataclass(frozen=True)
class NewUser:
    """A clone of the repository and an empty home."""

    clone: Path
    home: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {"HOME": str(self.home), "PATH": path, "COLUMNS": COLUMNS, "PYTHONUTF8": "1"}

    def run(self, program: str, *arguments: str) -> str:
        """Run what the user types, and return what it prints."""
        if program == "make":
            printed = self.run_in([program, *arguments], self.clone, {**self.environment, **installing()})
            return printed[printed.index("128 tools") :]  # before that, it sets up
        command = [program, *arguments]
        if program == "python":
            (self.folder / "program.py").write_text(arguments[0], "utf-8")
            command = ["python", "-W", "error", "program.py"]
        return self.run_in(command, self.folder, self.environment)

    def run_in(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
        """Run a command in a folder, and return what it prints."""
        command = [shutil.which(command[0], path=environment["PATH"]) or command[0], *command[1:]]
        ran = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=300,
            cwd=folder,
            env=environment,
            encoding="utf-8",
        )
        nothing = "No agent host on this machine" in ran.stdout
        assert ran.returncode == (1 if nothing else 0), f"{command}: {ran.stdout}"
        return ran.stdout


def installing() -> dict[str, str]:
    """Return what the set-up of this checkout has: its variables, and the cache of its uv."""
    variables = {name: value for name, value in os.environ.items() if INSTALLING.fullmatch(name)}
    uv = ROOT / ".tools" / "bin" / "uv"
    if not uv.exists():
        return variables
    cache = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    return {**variables, "UV_CACHE_DIR": cache}


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> NewUser:
    """Give a new user, who has not typed anything yet."""
    base = tmp_path_factory.mktemp("first-hour")
    user = NewUser(base / "toolscout", base / "home", base / "work")
    shutil.copytree(ROOT, user.clone, ignore=shutil.ignore_patterns(*HERE_ONLY))
    if (ROOT / ".tools").exists():
        (user.clone / ".tools").symlink_to(ROOT / ".tools")
    user.home.mkdir()
    user.folder.mkdir()
    return user


@pytest.fixture(scope="module")
def reader(user: NewUser) -> NewUser:
    """Give a user who has typed everything that the README says, and has seen what it shows."""
    for block in blocks(README):
        check(block, user.run)
    return user


def test_the_readmes_commands_run_in_order_and_print_what_is_shown(reader: NewUser) -> None:
    seen = reader.run("toolscout", "list", "--as", "ann", "--group", "engineering", "--json")
    assert json.loads(seen)["metadata"]["total"] == 128, "the user of the README's key sees the tools"


def test_the_line_that_installs_it_puts_the_command_where_uv_puts_commands(user: NewUser, tmp_path: Path) -> None:
    (line,) = (line for line in README.read_text("utf-8").splitlines() if line.startswith("$ uv tool install "))
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    path = f"{ROOT / '.tools' / 'bin'}{os.pathsep}{user.environment['PATH']}"
    user.run_in(shlex.split(line)[1:], user.clone, {**user.environment, **installing(), **folders, "PATH": path})
    assert "search" in user.run_in([str(tmp_path / "bin" / "toolscout"), "--help"], tmp_path, user.environment)


@guarantee("private:offline")
def test_no_file_is_written_outside_of_toolscouts_own_folders(reader: NewUser) -> None:
    files = {path.relative_to(reader.home) for path in reader.home.rglob("*") if path.is_file()}
    assert {file.parts[:3] for file in files} == {(".local", "share", "toolscout")}


async def test_serve_after_index_finds_the_tools_of_the_default_store_and_says_what_is_missing(
    reader: NewUser,
) -> None:
    command = StdioServerParameters(
        command=str(reader.clone / ".venv" / "bin" / "toolscout"), args=["serve"], env=reader.environment
    )
    log = reader.folder / "serve.log"
    with log.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(command, errlog=errors)) as client:
            found = (await client.call_tool("search_tools", {"query": "refund a customer"})).structured_content
            assert found["tools"][0]["key"] == "stripe__create_refund"
            arguments = {"payment_intent": "pi_1"}
            called = await client.call_tool("call_tool", {"name": "stripe__create_refund", "arguments": arguments})
    assert "toolscout serve --config mcp.json" in called.structured_content["error"]["hint"]
    assert "tools can be found but not called" in log.read_text("utf-8")


TOKEN = "t0ken"
HOST_FILES = {
    "cursor": (
        ".cursor/mcp.json",
        '{"mcpServers": {"time": {"command": "sh", "args": ["-c", COMMAND], "env": {"TOKEN": "${env:TOKEN}"},'
        ' "disabledTools": ["convert_time"]}}}',
    ),
    "codex": (
        ".codex/config.toml",
        '[mcp_servers.time]\ncommand = "sh"\nargs = ["-c", COMMAND]\nenv_vars = ["TOKEN"]\n'
        'disabled_tools = ["convert_time"]\n# the end\n',
    ),
    "goose": (
        ".config/goose/config.yaml",
        "extensions:\n  time:\n    type: stdio\n    cmd: sh\n    args: [-c, COMMAND]\n    env_keys: [TOKEN]\n"
        "    available_tools: [get_current_time]\n  developer: {type: builtin}  # mine\n",
    ),
}
"""What three hosts keep: JSON, TOML and YAML. The server starts only if its host's variable reaches it."""


def what_it_starts(host: str, text: str) -> tuple[str, list[str], dict[str, str]]:
    """Return the command, arguments and variables of the one server that a host starts by its file."""
    if host == "goose":
        entry = yaml.safe_load(text)["extensions"]["toolscout"]
        return entry["cmd"], entry["args"], dict.fromkeys(entry["env_keys"], TOKEN)
    servers = tomllib.loads(text)["mcp_servers"] if host == "codex" else json.loads(text)["mcpServers"]
    (entry,) = servers.values()
    return entry["command"], entry["args"], dict.fromkeys(entry.get("env_vars") or entry["env"], TOKEN)


@guarantee("import:rights")
@pytest.mark.parametrize("host", HOST_FILES)
async def test_a_host_that_was_imported_calls_its_server_and_gets_it_back(
    reader: NewUser, time_server: ServerConfig, host: str
) -> None:
    name, content = HOST_FILES[host]
    command = shlex.join([time_server.command, *time_server.args])
    file = reader.home / name
    file.parent.mkdir(parents=True)
    file.write_text(content.replace("COMMAND", json.dumps(f'test "$TOKEN" = {TOKEN} && exec {command}')), "utf-8")
    before = file.read_bytes()
    assert host in reader.run("toolscout", "import").lower()
    assert file.read_bytes() == before
    reader.run("toolscout", "import", host, "--write")
    program, arguments, variables = what_it_starts(host, file.read_text("utf-8"))
    environment = {"HOME": str(reader.home), "PATH": os.defpath, **variables}
    async with Client(StdioServerParameters(command=program, args=arguments, env=environment)) as client:

        async def keys() -> set[str]:
            search = await client.call_tool("search_tools", {"query": "what time is it, convert time", "limit": 100})
            return {tool["key"] for tool in search.structured_content["tools"]}

        async def found() -> bool:
            return "time__get_current_time" in await keys()

        await eventually(found, WAIT_S)
        assert "time__convert_time" not in await keys()
        time = {"name": "time__get_current_time", "arguments": {"timezone": "Asia/Tokyo"}}
        assert "Asia/Tokyo" in str((await client.call_tool("call_tool", time)).content)
    reader.run("toolscout", "import", "--undo")
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
    file.unlink()
