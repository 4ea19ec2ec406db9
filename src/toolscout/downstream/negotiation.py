"""Which protocol version a server speaks: the stateless protocol is tried first, then the handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any, Final, Literal

from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from toolscout.errors import ServerUnavailableError

Era = Literal["unknown", "handshake", "modern"]

HANDSHAKE_CAPABILITIES: Final[Mapping[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""The capabilities that a handshake declares for all callers. A question goes to the caller whose call is running."""

DISCOVER_S = 3.0
"""How long a server may take to answer `server/discover`, which old servers may never do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiatedProtocol:
    """The version that both sides speak, and what the server can do."""

    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        """Whether the protocol is stateless, so that every request carries its own envelope."""
        return self.version in MODERN_PROTOCOL_VERSIONS


@cache
def client_info() -> Mapping[str, str]:
    """Return our name and version."""
    try:
        return {"name": "toolscout", "version": metadata.version("toolscout")}
    except metadata.PackageNotFoundError:
        return {"name": "toolscout", "version": "unknown"}


def envelope(version: str, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `_meta` fields of a stateless request."""
    return {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: dict(client_info()),
        CLIENT_CAPABILITIES_META_KEY: dict(capabilities),
    }


async def negotiate(dispatcher: JSONRPCDispatcher, era: Era) -> NegotiatedProtocol:
    """Agree on a version. The stateless protocol is not tried if an earlier session used the handshake."""
    if era != "handshake":
        protocol = await _discover(dispatcher, LATEST_MODERN_VERSION)
        if protocol is not None:
            return protocol
    try:
        return await _initialize(dispatcher)
    except MCPError as error:
        # A slow server may have understood the first request after all and then accepts that protocol only.
        mutual = _supported(error)
        protocol = await _discover(dispatcher, mutual) if mutual else None
        if protocol is None:
            raise
        return protocol


async def _discover(dispatcher: JSONRPCDispatcher, version: str) -> NegotiatedProtocol | None:
    options: CallOptions = {
        "cancel_on_abandon": False,
        "headers": {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: "server/discover"},
    }
    try:
        async with asyncio.timeout(DISCOVER_S):
            raw = await dispatcher.send_raw_request("server/discover", {"_meta": envelope(version, {})}, options)
    except TimeoutError:
        return None
    except MCPError as error:
        mutual = _supported(error)
        return await _discover(dispatcher, mutual) if mutual and mutual != version else None
    offered = raw.get("supportedVersions")
    versions = [item for item in MODERN_PROTOCOL_VERSIONS if isinstance(offered, list) and item in offered]
    if not versions:
        return None
    return NegotiatedProtocol(version=versions[-1], capabilities=_mapping(raw.get("capabilities")))


def _supported(error: MCPError) -> str | None:
    """Return the newest version of the server's error that we speak too."""
    offered = error.data.get("supported") if isinstance(error.data, Mapping) else None
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(offered, list):
        return None
    return next((item for item in reversed(MODERN_PROTOCOL_VERSIONS) if item in offered), None)


async def _initialize(dispatcher: JSONRPCDispatcher) -> NegotiatedProtocol:
    params = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": dict(HANDSHAKE_CAPABILITIES),
        "clientInfo": dict(client_info()),
    }
    raw = await dispatcher.send_raw_request("initialize", params, {"cancel_on_abandon": False})
    version = raw.get("protocolVersion")
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise ServerUnavailableError(
            f"it speaks protocol {version!r}, which toolscout does not speak", hint="update the server or toolscout"
        )
    await dispatcher.notify("notifications/initialized", None, {"headers": {MCP_PROTOCOL_VERSION_HEADER: version}})
    return NegotiatedProtocol(version=version, capabilities=_mapping(raw.get("capabilities")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
