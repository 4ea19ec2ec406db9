"""Both sides use the newest protocol version that they share, whatever a server answers first."""

import asyncio
from typing import Any, cast

import pytest
from mcp.shared.exceptions import MCPError

from toolscout.downstream import negotiation as module
from toolscout.downstream.negotiation import negotiate
from toolscout.errors import ServerUnavailableError

MODERN, OLD = "2026-07-28", "2025-06-18"
UNSUPPORTED = -32022


class Scripted:
    """A dispatcher whose peer answers from a script."""

    def __init__(self, *script):
        self.script = list(script)
        self.methods = []

    async def send_raw_request(self, method, params, options=None):
        self.methods.append(method)
        answer = self.script.pop(0)
        if answer is None:
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def notify(self, method, params, options=None):
        self.methods.append(method)


def discovery(*versions):
    return {"supportedVersions": list(versions), "capabilities": {"tools": {}}}


def handshake(version=OLD):
    return {"protocolVersion": version, "capabilities": {}}


def refusal(*versions):
    return MCPError(UNSUPPORTED, "unsupported", {"supported": list(versions), "requested": "x"})


PROBE, HANDSHAKE = "server/discover", "initialize"
DONE = "notifications/initialized"


@pytest.mark.parametrize(
    ("era", "script", "version", "methods"),
    [
        ("unknown", [discovery(MODERN)], MODERN, [PROBE]),
        ("unknown", [MCPError(-32601, "no"), handshake()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [None, handshake()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [discovery(OLD), handshake()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [{"nonsense": 1}, handshake()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [None, refusal(MODERN), discovery(MODERN)], MODERN, [PROBE, HANDSHAKE, PROBE]),
        ("unknown", [refusal("2099-01-01"), handshake()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("handshake", [handshake("2024-11-05")], "2024-11-05", [HANDSHAKE, DONE]),
        ("modern", [discovery(MODERN)], MODERN, [PROBE]),
    ],
)
async def test_both_sides_agree_on_a_version(era, script, version, methods, monkeypatch):
    monkeypatch.setattr(module, "DISCOVER_S", 0.02)
    peer = Scripted(*script)
    protocol = await negotiate(cast("Any", peer), era)
    assert protocol.version == version
    assert protocol.modern == (version == MODERN)
    assert peer.methods == methods


async def test_an_unknown_version_is_refused_with_a_message():
    with pytest.raises(ServerUnavailableError, match="'1999-01-01'"):
        await negotiate(cast("Any", Scripted(handshake("1999-01-01"))), "handshake")


async def test_an_error_without_a_shared_version_is_the_servers_own():
    with pytest.raises(MCPError, match="unsupported"):
        await negotiate(cast("Any", Scripted(refusal("2099-01-01"))), "handshake")
