"""The process of `protected_server.py`: `python protected_tools.py PORT ISSUER`.

It speaks both eras of the protocol, as the SDK does. Its tools tell who called. `add_note` needs a scope that the
others do not.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import jwt
import mcp_types as t
import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READ, WRITE = "tools:read", "tools:write"
TOOLS = {"whoami": READ, "count_notes": READ, "add_note": WRITE}
"""The scope that each tool needs."""
OPEN_METHODS = {"initialize", "notifications/initialized", "server/discover", "ping", "tools/list"}


@dataclass
class Switches:
    """What a test can change while the server runs."""

    anonymous: str = "refused"
    """What is done with a request without a token: it is `refused`, or it gets the tools `listed`, or an `empty` list.
    A call always needs a token."""
    tools: dict[str, list[str]] = field(default_factory=dict)
    """The tools that a user sees, where they differ."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Replaces fields of the protected-resource metadata; None removes one."""
    resource_metadata: str | None = None
    """Another address of that metadata in the challenge; an empty one is left out."""
    metadata_redirect: str = ""
    """Where the metadata redirects to instead of answering."""
    leeway_s: int = 0
    """How far the clocks of the issuer and this server may differ."""
    handshake: bool = False
    """Whether it speaks the older versions of the protocol alone, which have sessions."""
    held: bool = False
    """Whether calls do not end before this is switched off."""


class State:
    """All that changes."""

    def __init__(self, url: str, issuer: str) -> None:
        self.url, self.issuer = url, issuer
        self.switches = Switches()
        self.seen: list[dict[str, Any]] = []
        self.accepted: set[str] = set()
        self.rejected: set[str] = set()
        self.notes = 0
        self.keys: jwt.PyJWKSet | None = None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Check signature, issuer, audience and time. The keys are fetched again when one is unknown."""
        try:
            claims = await self._claims(token)
        except (jwt.InvalidTokenError, httpx2.HTTPError, KeyError):
            return None
        if claims["jti"] in self.rejected:
            return None
        self.accepted.add(claims["jti"])
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            resource=self.url,
            subject=claims["sub"],
            claims=claims,
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        if self.keys is None or header["kid"] not in {key.key_id for key in self.keys.keys}:
            async with httpx2.AsyncClient(trust_env=False, timeout=5) as http:
                metadata = await http.get(f"{self.issuer}/.well-known/openid-configuration")
                self.keys = jwt.PyJWKSet.from_dict((await http.get(metadata.json()["jwks_uri"])).json())
        return jwt.decode(
            token,
            self.keys[header["kid"]],
            ["ES256", "RS256"],
            audience=self.url,
            issuer=self.issuer,
            leeway=self.switches.leeway_s,
            options={"require": ["exp", "iat", "aud", "iss", "sub"]},
        )


class Gate:
    """Answers 401 and 403 with their challenges, and notes who asked for what."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self.app, self.state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request, and pass it on where its token suffices."""
        if scope["type"] != "http" or scope["path"] != "/mcp":
            await self.app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        message = json.loads(body) if body else {}
        method = str(message.get("method", scope["method"]))
        tool = str((message.get("params") or {}).get("name", ""))
        user, headers = scope.get("user"), Request(scope).headers
        token = user.access_token if isinstance(user, AuthenticatedUser) else None
        refused = self._refused(token, method, tool, authorization="authorization" in headers)
        self.state.seen.append(
            {
                "method": method,
                "tool": tool,
                "status": refused.status_code if refused else 200,
                "sub": token.subject if token else None,
                "jti": (token.claims or {}).get("jti") if token else None,
                "session": headers.get("mcp-session-id"),
                "version": headers.get("mcp-protocol-version"),
                "folder": headers.get("mcp-param-folder"),
                "arguments": (message.get("params") or {}).get("arguments"),
            }
        )
        if refused is None and method == "server/discover" and self.state.switches.handshake:
            error = {"code": -32601, "message": "Method not found"}
            refused = JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        if refused is not None:
            await refused(scope, receive, send)
        else:
            await self.app(scope, _again(body, receive), send)

    def _refused(self, token: AccessToken | None, method: str, tool: str, *, authorization: bool) -> Response | None:
        anonymous = self.state.switches.anonymous != "refused" and not authorization
        if token is None:
            if anonymous and method in OPEN_METHODS:
                return None
            return self._challenge(401, error="invalid_token" if authorization else "", scope=READ)
        needed = TOOLS.get(tool, READ) if method == "tools/call" else READ
        if needed in token.scopes:
            return None
        return self._challenge(403, error="insufficient_scope", scope=needed)

    def _challenge(self, status: int, **fields: str) -> Response:
        where = self.state.switches.resource_metadata
        fields["resource_metadata"] = metadata_url(self.state.url) if where is None else where
        challenge = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        return JSONResponse({"error": fields["error"]}, status, {"WWW-Authenticate": f"Bearer {challenge}"})


def _again(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received


def metadata_url(url: str) -> str:
    """Return where the metadata of a protected resource is (RFC 9728)."""
    return url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")


def make_app(port: int, issuer: str) -> ASGIApp:
    """Build the server."""
    state = State(f"http://127.0.0.1:{port}/mcp", issuer)

    def visible(token: AccessToken | None) -> list[str]:
        if token is None:
            return list(TOOLS) if state.switches.anonymous == "listed" else []
        return state.switches.tools.get(token.subject or "", list(TOOLS))

    async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
        tools = [
            t.Tool(name=name, description=DESCRIPTIONS[name], input_schema=SCHEMAS.get(name, {"type": "object"}))
            for name in visible(get_access_token())
        ]
        return t.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
        token = get_access_token()
        if token is None or params.name not in visible(token):
            raise MCPError(code=-32602, message=f"no tool {params.name}")
        while state.switches.held:  # noqa: ASYNC110 - a request lets it go
            await asyncio.sleep(0.005)
        if params.name == "add_note":
            state.notes += 1
        answer: dict[str, Any] = {"notes": state.notes}
        if params.name == "whoami":
            named = ("sub", "client_id", "scope", "aud", "jti", "act")
            answer = {name: value for name, value in (token.claims or {}).items() if name in named}
        return t.CallToolResult(content=[t.TextContent(text=json.dumps(answer))], structured_content=answer)

    async def metadata(_: Request) -> Response:
        if state.switches.metadata_redirect:
            return RedirectResponse(state.switches.metadata_redirect)
        document = {
            "resource": state.url,
            "authorization_servers": [state.issuer],
            "scopes_supported": [READ],
            "bearer_methods_supported": ["header"],
            **state.switches.metadata,
        }
        return JSONResponse({name: value for name, value in document.items() if value is not None})

    async def control(request: Request) -> Response:
        match request.path_params["what"]:
            case "switches":
                state.switches = replace(state.switches, **await request.json())
            case "reset":
                state.switches, state.notes = Switches(), 0
                state.seen.clear()
            case "reject":
                state.rejected |= state.accepted
            case "seen":
                return JSONResponse(state.seen)
        return JSONResponse({})

    server = Server("protected", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path="/mcp",
        transport_security=TransportSecuritySettings(allowed_hosts=[f"127.0.0.1:{port}"], allowed_origins=[]),
        custom_starlette_routes=[
            Route("/.well-known/oauth-protected-resource/mcp", metadata),
            Route("/control/{what}", control, methods=["GET", "POST"]),
        ],
    )
    gate = AuthContextMiddleware(Gate(app, state))
    return AuthenticationMiddleware(gate, BearerAuthBackend(state))


DESCRIPTIONS = {
    "whoami": "Tell which user and which client called.",
    "count_notes": "Count the notes.",
    "add_note": "Add a note.",
}
SCHEMAS = {
    "count_notes": {"type": "object", "properties": {"folder": {"type": "string", "x-mcp-header": "Folder"}}},
}


if __name__ == "__main__":
    own_port = int(sys.argv[1])
    uvicorn.run(
        make_app(own_port, sys.argv[2]), host="127.0.0.1", port=own_port, log_level="error", timeout_graceful_shutdown=1
    )
