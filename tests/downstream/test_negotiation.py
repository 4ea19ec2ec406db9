"""Which protocol is spoken: the newest that both know, whatever a server answers to the first question."""

import asyncio

import pytest
from mcp.shared.exceptions import MCPError

from toolscout.downstream import negotiation as module
from toolscout.downstream.negotiation import negotiate
from toolscout.errors import ServerUnavailableError

MODERN, OLD = "2026-07-28", "2025-06-18"
UNSUPPORTED = -32022


class Scripted:
    """A dispatcher whose peer answers by a script."""

    def __init__(self, *script):
        self.script = list(script)
        self.asked = []

    async def send_raw_request(self, method, params, options=None):
        self.asked.append(method)
        answer = self.script.pop(0)
        if answer is None:
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def notify(self, method, params, options=None):
        self.asked.append(method)


def discovered(*versions):
    return {"supportedVersions": list(versions), "capabilities": {"tools": {}}}


def initialized(version=OLD):
    return {"protocolVersion": version, "capabilities": {}}


def refused(*versions):
    return MCPError(UNSUPPORTED, "unsupported", {"supported": list(versions), "requested": "x"})


PROBE, HANDSHAKE = "server/discover", "initialize"
DONE = "notifications/initialized"


@pytest.mark.parametrize(
    ("era", "script", "version", "asked"),
    [
        ("unknown", [discovered(MODERN)], MODERN, [PROBE]),
        ("unknown", [MCPError(-32601, "no"), initialized()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [None, initialized()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [discovered(OLD), initialized()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [{"nonsense": 1}, initialized()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("unknown", [None, refused(MODERN), discovered(MODERN)], MODERN, [PROBE, HANDSHAKE, PROBE]),
        ("unknown", [refused("2099-01-01"), initialized()], OLD, [PROBE, HANDSHAKE, DONE]),
        ("handshake", [initialized("2024-11-05")], "2024-11-05", [HANDSHAKE, DONE]),
        ("modern", [discovered(MODERN)], MODERN, [PROBE]),
    ],
)
async def test_both_sides_agree(era, script, version, asked, monkeypatch):
    monkeypatch.setattr(module, "DISCOVER_S", 0.02)
    peer = Scripted(*script)
    agreed = await negotiate(peer, era)
    assert agreed.version == version
    assert agreed.modern == (version == MODERN)
    assert peer.asked == asked


async def test_a_version_that_nobody_knows_is_refused_in_words():
    with pytest.raises(ServerUnavailableError, match="'1999-01-01'"):
        await negotiate(Scripted(initialized("1999-01-01")), "handshake")


async def test_a_refusal_without_a_way_out_is_the_servers_own():
    with pytest.raises(MCPError, match="unsupported"):
        await negotiate(Scripted(refused("2099-01-01")), "handshake")
