"""Secrets of the operator and of agents reach only the server that they are for."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from downstreams import fake
from guarantees import guarantee
from serving import serving, write_config

CANARIES = {
    "config": "canary-config-1",
    "argument": "canary-argument-2",
    "token": "canary-token-3",
    "cookie": "canary-cookie-4",
    "call": "canary-call-5",
}


def written(folder: Path) -> bytes:
    """Return the catalogue and the log, byte for byte."""
    return b"".join(path.read_bytes() for path in (*folder.glob("catalogue.db*"), folder / "serve.log"))


@pytest.fixture
async def left_behind(tmp_path):
    """Run a gateway that gets secrets from everyone. Return the fake server, and all that was written or answered."""
    behind = fake(tmp_path, "fake", "--tools", "3")
    command = (*behind.config.args, CANARIES["argument"])
    config = replace(behind.config, args=command, env={"SECRET": CANARIES["config"]})
    mute = replace(config, title="mute", args=("-c", "import time; time.sleep(600)", CANARIES["argument"]))
    write_config(tmp_path, config, replace(mute, command=sys.executable))
    answers: list[Any] = []
    headers = {"Authorization": f"Bearer {CANARIES['token']}", "Cookie": f"session={CANARIES['cookie']}"}
    with serving(tmp_path) as gateway:
        async with (
            httpx2.AsyncClient(headers=headers) as carrier,
            Client(streamable_http_client(gateway.url, http_client=carrier), mode="2026-07-28") as client,
        ):
            answers.append(await client.list_tools())
            await behind.until("tools/list")
            for key in ("fake__tool0", "fake__tool1", "absent__x", "mute__x"):
                params = {"name": key, "arguments": {"password": CANARIES["call"]}, "version": "0" * 12}
                answers.append(await client.call_tool("call_tool", params))
            answers.append(await client.call_tool("search_tools", {"query": "tool"}))
    return behind, written(tmp_path) + repr(answers).encode()


@pytest.mark.process
@guarantee("secret:nowhere", "auth:no-passthrough")
async def test_no_secret_is_logged_stored_answered_or_handed_on(left_behind):
    behind, everything = left_behind
    for name, canary in CANARIES.items():
        assert canary.encode() not in everything, name
    received = json.dumps(behind.received())
    assert received
    for name in ("token", "cookie"):
        assert CANARIES[name] not in received, name


@guarantee("secret:nowhere")
@pytest.mark.parametrize("verb", [["doctor"], ["list"], ["export", "-"], ["serve", "--http", "0"]])
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:canary-6@127.0.0.1:1/tools",
        "postgresql://127.0.0.1:1/tools?user=ada&password=canary-6",
        "postgresql://ada:canary-6@[broken/tools",
        "mysql://ada:canary-6@127.0.0.1/tools",
    ],
)
def test_the_password_of_a_store_is_in_no_error(toolscout, url, verb):
    ran = toolscout(*verb, "--store", url)
    assert ran.code in (1, 2, 3)
    assert ran.out + ran.err
    assert "canary-6" not in ran.out + ran.err
