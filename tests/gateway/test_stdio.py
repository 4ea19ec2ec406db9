"""The gateway on stdio, as a real process: only messages on the wire, and a clean end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import asynccontextmanager

import pytest

from guarantees import guarantee
from serving import serve_command

pytestmark = pytest.mark.process

WAIT_S = 30.0
HELLO = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Wire:
    """A process and its pipes, line by line."""

    def __init__(self, process):
        self.process = process

    async def send(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def receive(self):
        return json.loads(await asyncio.wait_for(self.process.stdout.readline(), WAIT_S))

    async def ask(self, number, method, params=None):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        await self.send(json.dumps(message).encode())
        return await self.receive()

    async def shake_hands(self, version):
        response = await self.ask(0, "initialize", {"protocolVersion": version, **HELLO})
        await self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return response["result"]


@asynccontextmanager
async def started(folder):
    with (folder / "stderr.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *serve_command(folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=dict(os.environ),
        )
    try:
        yield Wire(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@guarantee("proto:dual-era")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_version_of_the_handshake_era_is_spoken(tmp_path, version):
    async with started(tmp_path) as wire:
        hello = await wire.shake_hands(version)
        assert hello["protocolVersion"] == version
        assert "search_tools" in hello["instructions"]
        assert hello["capabilities"]["tools"]["listChanged"] is True
        assert len((await wire.ask(1, "tools/list"))["result"]["tools"]) == 4


@guarantee("proto:malformed")
async def test_nonsense_is_answered_with_an_error_and_the_next_request_is_served(tmp_path):
    wrong = [
        b"{",
        b"[]",
        b"[" * 10_000,
        b"\xff\xfe",
        b"null",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}',
        b"x" * (17 << 20),
    ]
    async with started(tmp_path) as wire:
        await wire.shake_hands("2025-11-25")
        for number, line in enumerate(wrong):
            await wire.send(line)
            assert (await wire.receive())["error"]["code"] in (-32700, -32600, -32602)
            assert (await wire.ask(100 + number, "ping"))["result"] == {}
        before = await wire.ask(1, "tools/call", {"name": "call_tool", "arguments": {"name": "x"}})
        assert before["result"]["isError"] is True


@guarantee("proto:malformed")
async def test_nothing_is_answered_before_the_handshake(tmp_path):
    async with started(tmp_path) as wire:
        for method, params in (("tools/list", {}), ("tools/call", {"name": "call_tool", "arguments": {}})):
            assert (await wire.ask(1, method, params))["error"]["code"] == -32602
        await wire.shake_hands("2025-11-25")
        assert "result" in await wire.ask(2, "tools/list")


@guarantee("proto:malformed")
async def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_answered(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSCOUT_MAX_LINE_BYTES", "10000")
    async with started(tmp_path) as wire:
        await wire.shake_hands("2025-11-25")
        for size in (11_000, 1_000_000):
            refusal = await wire.ask(1, "tools/list", {"padding": "x" * size})
            assert (refusal["id"], refusal["error"]["message"]) == (None, "the message is too long")
            assert "result" in await wire.ask(2, "tools/list")


@guarantee("fault:orphans")
@pytest.mark.parametrize("how", ["eof", signal.SIGTERM, signal.SIGINT])
async def test_it_ends_when_the_client_disconnects_or_a_signal_arrives(tmp_path, how):
    async with started(tmp_path) as wire:
        await wire.shake_hands("2025-11-25")
        if how == "eof":
            wire.process.stdin.close()
        else:
            wire.process.send_signal(how)
        status = await asyncio.wait_for(wire.process.wait(), WAIT_S)
        assert status == 0, (tmp_path / "stderr.log").read_text()
        assert await wire.process.stdout.read() == b""
    assert "Traceback" not in (tmp_path / "stderr.log").read_text()
