"""The HTTP side of the authorization server of the tests, which runs as a process: `python oauth_endpoints.py PORT`.

Tests start and steer it through `authorization_server.py`.
"""

from __future__ import annotations

import asyncio
import base64
import html
import json
import secrets
import sys
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oauth_grants import (
    DEVICE_CODE,
    DEVICE_S,
    SCOPES,
    TOKEN_EXCHANGE,
    Client,
    Grants,
    RefusedError,
    Request,
    redirect_allowed,
    scope_of,
)

DOCUMENT_BYTES = 10_000
PATHS = {
    "/.well-known/oauth-authorization-server": "metadata",
    "/.well-known/openid-configuration": "metadata",
    "/keys": "jwks",
    "/register": "register",
    "/authorize": "authorize",
    "/decision": "decision",
    "/token": "token",
    "/device_authorization": "device_authorization",
    "/device": "device",
    "/revoke": "revoke",
}
"""The name of each endpoint, as `counts` and the switch `down` use it."""


class Endpoints:
    """The HTTP side of the server."""

    def __init__(self, grants: Grants) -> None:
        self.grants = grants

    async def metadata(self, _: HttpRequest) -> Response:
        """Describe the server."""
        url, switches = self.grants.issuer, self.grants.switches
        document: dict[str, Any] = {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "jwks_uri": f"{url}/keys",
            "registration_endpoint": f"{url}/register" if switches.registration else None,
            "device_authorization_endpoint": f"{url}/device_authorization",
            "revocation_endpoint": f"{url}/revoke",
            "scopes_supported": SCOPES,
            "response_types_supported": ["code"],
            "grant_types_supported": [
                "authorization_code",
                "refresh_token",
                "client_credentials",
                DEVICE_CODE,
                TOKEN_EXCHANGE,
            ],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
            "revocation_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": switches.client_documents,
            **switches.metadata,
        }
        return JSONResponse({name: value for name, value in document.items() if value is not None})

    async def jwks(self, _: HttpRequest) -> Response:
        """Publish the key."""
        return JSONResponse(self.grants.published())

    async def register(self, request: HttpRequest) -> Response:
        """Register a client that nobody knows."""
        if not self.grants.switches.registration:
            raise RefusedError("access_denied", "registration is closed", 403)
        body = await request.json()
        client = self.grants.register(body)
        secret = {"client_secret": client.secret, "client_secret_expires_at": 0} if client.secret else {}
        method = body.get("token_endpoint_auth_method") or "client_secret_basic"
        answer = {**body, "client_id": client.client_id, "token_endpoint_auth_method": method, **secret}
        return JSONResponse(answer, 201)

    async def authorize(self, request: HttpRequest) -> Response:
        """Show the consent page. An error goes to the client only where the redirect URI is known to be its own."""
        query = dict(request.query_params)
        client = await self._client(query.get("client_id", ""))
        uri = query.get("redirect_uri", "")
        if not redirect_allowed(uri, client):
            raise RefusedError("invalid_request", "the redirect_uri is not registered")
        asked = Request(
            client_id=client.client_id,
            scope=query.get("scope", ""),
            resource=query.get("resource", self.grants.issuer),
            redirect_uri=uri,
            state=query.get("state"),
            challenge=query.get("code_challenge", ""),
        )
        try:
            if query.get("response_type") != "code":
                raise RefusedError("unsupported_response_type")
            if query.get("code_challenge_method") != "S256" or not asked.challenge:
                raise RefusedError("invalid_request", "PKCE with S256 is required")
            resources = request.query_params.getlist("resource")
            if len(resources) > 1 or not urlsplit(asked.resource).scheme or urlsplit(asked.resource).fragment:
                raise RefusedError("invalid_target")
            asked = replace(asked, scope=scope_of(asked.scope))
            if user := self.grants.switches.approve:
                return self._back(asked, code=self.grants.consent(asked, user))
        except RefusedError as error:
            return self._back(asked, error=error.error, error_description=error.description)
        ticket = secrets.token_urlsafe(16)
        self.grants.pending[ticket] = asked
        return _page(client.name or client.client_id, asked, "/decision", "request", ticket)

    async def decision(self, request: HttpRequest) -> Response:
        """Take the answer of the user, once, and send the browser back to the client."""
        form = await _form(request)
        asked = self.grants.pending.pop(form.get("request", ""), None)
        if asked is None:
            raise RefusedError("invalid_request", "this page was answered already")
        if form.get("decision") != "allow":
            return self._back(asked, error="access_denied")
        try:
            return self._back(asked, code=self.grants.consent(asked, form.get("user", "")))
        except RefusedError as error:
            return self._back(asked, error=error.error, error_description=error.description)

    def _back(self, asked: Request, **answer: str) -> Response:
        iss = self.grants.switches.callback_iss
        answer["iss"] = self.grants.issuer if iss is None else iss
        if asked.state is not None:
            answer["state"] = asked.state
        query = urlencode({name: value for name, value in answer.items() if value})
        return RedirectResponse(f"{asked.redirect_uri}{'&' if '?' in asked.redirect_uri else '?'}{query}", 303)

    async def token(self, request: HttpRequest) -> Response:
        """Give tokens."""
        form = await _form(request)
        self.grants.counts[f"token:{form.get('grant_type')}"] += 1
        answer = self.grants.tokens(await self._authenticated(request, form), form)
        return JSONResponse(answer, headers={"Cache-Control": "no-store"})

    async def device_authorization(self, request: HttpRequest) -> Response:
        """Begin the sign-in of a device without a browser."""
        form = await _form(request)
        client = await self._authenticated(request, form)
        scope = scope_of(form.get("scope", ""))
        resource = form.get("resource", self.grants.issuer)
        code, device = self.grants.device(Request(client_id=client.client_id, scope=scope, resource=resource))
        page = f"{self.grants.issuer}/device"
        answer = {
            "device_code": code,
            "user_code": device.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={device.user_code}",
            "expires_in": int(DEVICE_S),
            "interval": self.grants.switches.device_interval_s,
            **self.grants.switches.device,
        }
        return JSONResponse(answer)

    async def device(self, request: HttpRequest) -> Response:
        """Show the page on which the user of a device decides, and take the answer."""
        if request.method == "GET":
            code = request.query_params.get("user_code", "")
            device = next((device for device in self.grants.devices.values() if device.user_code == code), None)
            if device is None:
                raise RefusedError("invalid_request", "no such code")
            return _page(device.request.client_id, device.request, "/device", "user_code", code)
        form = await _form(request)
        self.grants.decide(form.get("user_code", ""), form.get("user", "") if form.get("decision") == "allow" else "")
        return HTMLResponse("<h1>Return to your device</h1>")

    async def revoke(self, request: HttpRequest) -> Response:
        """Revoke a token."""
        form = await _form(request)
        self.grants.revoke(await self._authenticated(request, form), form.get("token", ""))
        return Response()

    async def _authenticated(self, request: HttpRequest, form: dict[str, str]) -> Client:
        client_id, secret = form.get("client_id", ""), form.get("client_secret")
        kind, _, credentials = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            client_id, _, secret = map(unquote, base64.b64decode(credentials).decode().partition(":"))
        client = await self._client(client_id)
        if not secrets.compare_digest(client.secret or "", secret or ""):
            raise RefusedError("invalid_client", "wrong secret", 401)
        return client

    async def _client(self, client_id: str) -> Client:
        if client_id in self.grants.clients:
            return self.grants.clients[client_id]
        if not (self.grants.switches.client_documents and client_id.startswith("https://")):
            raise RefusedError("invalid_client", "no such client", 401)
        return await self._described(client_id)

    async def _described(self, url: str) -> Client:
        """Fetch the document that a client id points to."""
        self.grants.counts["client_document"] += 1
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        where = self.grants.switches.origins.get(origin, origin) + url.removeprefix(origin)
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=5) as http:
                answer = await http.get(where)
                document = json.loads(answer.content[:DOCUMENT_BYTES]) if answer.status_code == 200 else {}
        except (httpx2.HTTPError, ValueError) as error:
            raise RefusedError("invalid_client", f"no document: {error!r}", 401) from None
        if document.get("client_id") != url or not document.get("redirect_uris") or document.get("client_secret"):
            raise RefusedError("invalid_client", "the document is not of this client", 401)
        return Client(
            client_id=url,
            redirect_uris=tuple(document["redirect_uris"]),
            name=str(document.get("client_name", "")),
        )

    async def control(self, request: HttpRequest) -> Response:
        """Do what a test wants."""
        grants = self.grants
        body = await request.json() if request.method == "POST" else {}
        match request.path_params["what"]:
            case "switches":
                grants.switches = replace(grants.switches, **body)
            case "reset":
                self.grants = Grants(grants.issuer)
                self.grants.key, self.grants.kid = grants.key, grants.kid
            case "users":
                grants.users[body["name"]] = body["claims"]
            case "clients":
                grants.clients[body["client_id"]] = Client(**{**body, "redirect_uris": tuple(body["redirect_uris"])})
            case "devices":
                grants.decide(body["user_code"], body["user"])
            case "sign":
                return JSONResponse({"token": grants.signed(body)})
            case "state":
                given = [
                    {"user": grant.user, "revoked": grant.revoked, **asdict(grant.request)}
                    for grant in grants.grants.values()
                ]
                state = {"counts": grants.counts, "grants": given, "revoked_tokens": grants.revoked_tokens}
                return JSONResponse(state)
        return JSONResponse({})


async def _form(request: HttpRequest) -> dict[str, str]:
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def _page(client: str, asked: Request, action: str, field: str, ticket: str) -> Response:
    told = "".join(f"<li>{html.escape(scope)}</li>" for scope in asked.scope.split())
    return HTMLResponse(
        f"<!doctype html><title>Consent</title><h1>{html.escape(client)} asks for access</h1>"
        f"<p id=resource>{html.escape(asked.resource)}</p><ul>{told}</ul>"
        f"<form method=post action='{action}'>"
        f"<input type=hidden name={field} value='{html.escape(ticket)}'>"
        "<label>User <input name=user value=ann></label>"
        "<button name=decision value=allow>Allow</button><button name=decision value=deny>Deny</button></form>",
        headers={"X-Frame-Options": "DENY", "Cache-Control": "no-store"},
    )


class Faults:
    """Counts the requests of each endpoint, and holds it, breaks it or redirects it where a switch says so."""

    def __init__(self, app: ASGIApp, endpoints: Endpoints) -> None:
        self.app, self.endpoints = app, endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        name = PATHS.get(scope["path"]) if scope["type"] == "http" else None
        if name is not None:
            self.endpoints.grants.counts[name] += 1
            while {name, "*"} & set(self.endpoints.grants.switches.held):  # noqa: ASYNC110 - a request lets it go
                await asyncio.sleep(0.005)
            switches = self.endpoints.grants.switches
            if {name, "*"} & set(switches.down):
                await Response("down", 503)(scope, receive, send)
                return
            if name in switches.answers:
                status, body = switches.answers[name]
                await JSONResponse(body, status)(scope, receive, send)
                return
            if name in switches.redirect:
                await RedirectResponse(switches.redirect[name])(scope, receive, send)
                return

        async def answer(message: Message) -> None:
            while name in self.endpoints.grants.switches.late:  # noqa: ASYNC110 - a request lets it go
                await asyncio.sleep(0.005)
            await send(message)

        await self.app(scope, receive, answer)


async def _refused(_: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return JSONResponse({"error": error.error, "error_description": error.description}, error.status)


def make_app(issuer: str) -> Starlette:
    """Build the server."""
    endpoints = Endpoints(Grants(issuer))
    routes = [Route(path, getattr(endpoints, name), methods=["GET", "POST"]) for path, name in PATHS.items()]
    routes.append(Route("/control/{what}", endpoints.control, methods=["GET", "POST"]))
    return Starlette(
        routes=routes,
        middleware=[Middleware(Faults, endpoints=endpoints)],
        exception_handlers={RefusedError: _refused},
    )


if __name__ == "__main__":
    port = int(sys.argv[1])
    uvicorn.run(make_app(f"http://127.0.0.1:{port}"), host="127.0.0.1", port=port, log_level="error", ws="none")
