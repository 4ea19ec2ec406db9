"""No shell reads the command of a server, and its process gets only the listed environment."""

import json
import os
from dataclasses import replace

import pytest

from downstreams import QUICK, fake, opened
from guarantees import guarantee
from toolscout.config import ServerConfig, read_config
from toolscout.downstream.process import INHERITED, StderrBuffer, child_environment
from toolscout.downstream.reaper import MARK

METACHARACTERS = [
    "$(touch owned)",
    "`id`",
    "; rm -rf x",
    "a && b",
    "| cat",
    "> out",
    "*",
    "~",
    "'\"",
    "\\",
    "a b",
    "",
    "\n",
]


async def text_of(here, tool, **arguments):
    return (await here.call("fake", tool, arguments))["content"][0]["text"]


@pytest.mark.process
@guarantee("proc:argv")
async def test_metacharacters_arrive_literally(tmp_path):
    server = fake(tmp_path, "fake", *METACHARACTERS, cwd=str(tmp_path))
    async with opened(server.config) as here:
        arguments = json.loads(await text_of(here, "arguments"))
        assert arguments[2:] == METACHARACTERS
        assert await text_of(here, "where") == str(tmp_path.resolve())
    assert not (tmp_path / "owned").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.process
@guarantee("proc:argv")
async def test_a_command_is_a_program_and_never_a_shell_line(tmp_path):
    config = ServerConfig(title="line", transport="stdio", command=f"touch {tmp_path}/owned; echo")
    async with opened(config, ready=False) as here:
        assert "was not found" in (await here.state("line", "failed")).status.detail
    assert not (tmp_path / "owned").exists()


@pytest.mark.process
@guarantee("proc:env")
async def test_a_child_sees_only_the_listed_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER_KEY", "canary-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-2")
    monkeypatch.setenv("HANDED_ON", "for the server")
    file = tmp_path / "mcp.json"
    server = fake(tmp_path).config
    entry = {"command": server.command, "args": list(server.args), "env": {"OWN": "${HANDED_ON}"}}
    file.write_text(json.dumps({"mcpServers": {"fake": entry}}), "utf-8")
    async with opened(*read_config(file).servers) as here:
        environment = json.loads(await text_of(here, "environment"))
    assert environment["OWN"] == "for the server"
    assert not [value for value in environment.values() if "canary" in value]
    # LC_CTYPE is what Python itself sets where no locale is given.
    assert set(environment) <= {*INHERITED, "OWN", MARK, "LC_CTYPE"}
    assert environment["PATH"] == os.environ["PATH"]


@guarantee("proc:env")
def test_a_config_may_replace_what_is_inherited_but_not_the_mark(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    config = ServerConfig(title="x", transport="stdio", env={"HOME": "/elsewhere", MARK: "forged"})
    environment = child_environment(config, "mark")
    assert environment["HOME"] == "/elsewhere"
    assert environment[MARK] == "mark"


@pytest.mark.process
@guarantee("proc:env")
async def test_the_kept_part_of_standard_error_is_bounded(tmp_path):
    server = fake(tmp_path)
    settings = replace(QUICK, stderr_bytes=2_000)
    async with opened(server.config, settings=settings) as here:
        await here.call("fake", "stderr", {"lines": 100_000})
        await here.call("fake", "echo")
        text = here.downstream.servers["fake"].status.stderr
        assert text.endswith("the last words\n")
        assert len(text) <= 2_000


@guarantee("proc:env")
@pytest.mark.parametrize("size", [0, 1, 10])
def test_the_buffer_of_standard_error_keeps_the_last_bytes(size):
    buffer = StderrBuffer(size)
    for part in (b"abc", b"", b"defghijklmnop", b"q"):
        buffer.add(part)
    assert buffer.text(100) == ("abcdefghijklmnopq"[-size:] if size else "")
