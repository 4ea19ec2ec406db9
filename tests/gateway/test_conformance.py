"""The public conformance suite and the Inspector against the gateway, with a list of known exceptions."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from guarantees import guarantee
from servers import free_port, listening, node, npm_tool
from serving import serve_command, serving, write_config

pytestmark = [guarantee("proto:conformance"), pytest.mark.process]

TESTS = Path(__file__).parent.parent
EXCEPTIONS = Path(__file__).parent / "conformance-exceptions.yaml"
CONFORMANCE = ("conformance", "@modelcontextprotocol/conformance", "0.2.0-alpha.12")
INSPECTOR = ("mcp-inspector", "@modelcontextprotocol/inspector", "2.12.0")
RUN_S = 120.0


async def ran(*command: str, cwd: Path | None = None) -> tuple[int, str, str]:
    """Run a command beside the event loop."""
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=cwd, capture_output=True, text=True, timeout=RUN_S, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("revision", "options", "least"), [("2025-11-25", ["--legacy"], 77), ("2026-07-28", [], 140)])
async def test_the_public_suite_passes_through_the_gateway(tmp_path, revision, options, least):
    suite = npm_tool(*CONFORMANCE)
    port = free_port()
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    gateway = [sys.executable, str(TESTS / "conformance_gateway.py"), str(port), store, *options]
    with listening(*gateway, port=port):
        status, said, _ = await ran(
            node(),
            suite,
            "server",
            "--url",
            f"http://localhost:{port}/mcp",
            "--requirements",
            revision,
            "--expected-failures",
            str(EXCEPTIONS),
            cwd=tmp_path,
        )
    assert status == 0, said[-4_000:]
    passed = re.search(r"Total: (\d+) passed", said)
    assert passed and int(passed[1]) >= least, said[-4_000:]


def test_every_exception_has_its_reason():
    lines = EXCEPTIONS.read_text().splitlines()
    block = "\n".join(lines[lines.index("server:") + 1 :])
    groups = re.findall(r"((?:  #.*\n)+)((?:  - .*\n?)+)", block)
    listed = sum(len(names.strip().splitlines()) for _, names in groups)
    assert listed == block.count("  - ") > 0


async def inspected(*arguments: str) -> dict:
    status, said, errors = await ran(node(), npm_tool(*INSPECTOR), "--cli", *arguments)
    assert status == 0, errors[-4_000:]
    return json.loads(said)


async def test_the_inspector_lists_and_calls_over_http_and_stdio(tmp_path, everything_server):
    write_config(tmp_path, everything_server, core=["everything__echo"])
    with serving(tmp_path) as gateway:
        target = [gateway.url, "--transport", "http"]
        for _ in range(100):
            tools = [tool["name"] for tool in (await inspected(*target, "--method", "tools/list"))["tools"]]
            if "everything__echo" in tools:
                break
        assert tools == ["search_tools", "get_tool_details", "call_read_tool", "call_tool", "everything__echo"]
        called = ["--method", "tools/call", "--tool-name", "everything__echo", "--tool-arg", "message=hi"]
        assert (await inspected(*target, *called))["content"][0]["text"] == "Echo: hi"
    search = ["--method", "tools/call", "--tool-name", "search_tools", "--tool-arg", "query=echo a message"]
    command = serve_command(tmp_path)
    host = tmp_path / "host.json"
    host.write_text(json.dumps({"mcpServers": {"toolscout": {"command": command[0], "args": command[1:]}}}))
    answer = await inspected("--config", str(host), "--server", "toolscout", *search)
    assert answer["structuredContent"]["tools"][0]["key"] == "everything__echo"
