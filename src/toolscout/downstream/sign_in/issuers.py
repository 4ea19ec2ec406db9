"""Finds the issuer of a server's tokens: RFC 9728 metadata of the server, then RFC 8414 metadata of the issuer.

Both documents come from strangers. Every request goes through the check of addresses, is bounded in size and time, and
follows no redirect. An endpoint must be https, unless it is at an address that the config itself names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    handle_protected_resource_response,
    issuers_match,
    validate_metadata_issuer,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import ValidationError

from toolscout.config import ServerConfig
from toolscout.downstream.egress import origin_of
from toolscout.downstream.http_body import describe
from toolscout.downstream.http_client import issuer_transport, private_origins, unlogged
from toolscout.errors import ServerUnavailableError, SignInError
from toolscout.settings import Settings

_OK = 200
_SERVER_ERROR = 500
_UNAUTHORIZED = 401
_OFFLINE = "offline_access"
_PROBE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "toolscout", "version": "1"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An authorization server, and what it and the server say about signing in."""

    metadata: OAuthMetadata
    issuer: str
    resource: str | None
    """What to call the server in requests for its tokens. None if the server publishes no metadata."""
    scope: str
    """The scopes to ask for first, or "" for the issuer's default."""
    device_endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where a client with a secret asks for tokens of its own."""

    url: str
    auth_method: str | None = None
    """How it authenticates there, if the issuer says so."""
    resource: str | None = None
    """What to call the server there. None if the server publishes no metadata, or was not asked."""


class IssuerDownError(SignInError):
    """The issuer does not answer, or answers that it failed. It may answer later."""


class IssuerClient(httpx2.AsyncClient):
    """The client for all requests of signing in. It sends none of the config's headers, which are the server's."""

    def __init__(self, config: ServerConfig, settings: Settings) -> None:
        transport = issuer_transport(config, settings)
        super().__init__(transport=transport, timeout=settings.connect_timeout_s, trust_env=False)
        self.config = config
        self._private = private_origins(config, settings)

    async def fetch(self, request: httpx2.Request, whom: str) -> httpx2.Response:
        """Send a request and read the answer. Raise SignInError when there is none."""
        try:
            with unlogged():
                return await self.send(request)
        except ServerUnavailableError as error:
            raise SignInError(f"{whom} cannot be used: {error.message}", hint=error.hint) from error
        except (httpx2.TransportError, httpx2.StreamError) as error:
            raise IssuerDownError(f"{whom} cannot be reached: {describe(error)}", hint="try again later") from error

    def check_endpoint(self, url: str, what: str) -> None:
        """Raise SignInError if an address that an issuer names is none, or a token could be read on its way there."""
        scheme = _scheme_of(url)
        if scheme != "https" and not (scheme == "http" and origin_of(url) in self._private):
            raise SignInError(f"the {what} of {self.config.title} is not an https address", hint="ask its operator")


async def challenge_of(client: IssuerClient) -> httpx2.Response | None:
    """Ask the server without credentials, and return its refusal, or None if it does not refuse."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    request = httpx2.Request("POST", client.config.url, json=_PROBE, headers=headers)
    response = await client.fetch(request, client.config.title)
    return response if response.status_code == _UNAUTHORIZED else None


async def names_issuer(client: IssuerClient, refusal: httpx2.Response) -> bool:
    """Return whether a server that refused a request says, by its header or its metadata, where to sign in."""
    if extract_resource_metadata_from_www_auth(refusal):
        return True
    try:
        await discover(client, refusal)
    except SignInError:
        return False
    return True


async def discover(client: IssuerClient, challenge: httpx2.Response | None) -> Issuer:
    """Find the issuer of a server. `challenge` is the server's refusal, whose header may say where its metadata is."""
    config = client.config
    if config.oauth and config.oauth.client_secret and not config.oauth.issuer:
        raise SignInError(
            f"the server {config.title} would decide who gets the client_secret", hint='set `issuer` in its "oauth"'
        )
    protected, chosen = await _find_issuer(client, challenge)
    metadata, device_endpoint = await authorization_server(client, chosen)
    for what, url in (
        ("authorization endpoint", metadata.authorization_endpoint),
        ("token endpoint", metadata.token_endpoint),
        ("registration endpoint", metadata.registration_endpoint),
        ("revocation endpoint", metadata.revocation_endpoint),
        ("device endpoint", device_endpoint),
    ):
        if url is not None:
            client.check_endpoint(str(url), what)
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise SignInError(
            f"the issuer of {config.title} does not offer PKCE with S256", hint="without it a sign-in can be stolen"
        )
    return Issuer(
        metadata=metadata,
        issuer=str(metadata.issuer),
        resource=str(protected.resource) if protected else None,
        scope=_first_scope(config, challenge, protected, metadata),
        device_endpoint=device_endpoint,
    )


async def find_token_endpoint(client: IssuerClient, challenge: httpx2.Response | None) -> TokenEndpoint:
    """Find where a client with a secret asks for tokens of a server. Nobody signs in there, so PKCE is not needed."""
    protected, chosen = await _find_issuer(client, challenge)
    metadata, _ = await authorization_server(client, chosen, signs_in=False)
    url = str(metadata.token_endpoint)
    client.check_endpoint(url, "token endpoint")
    return TokenEndpoint(url, secret_method(metadata), str(protected.resource) if protected else None)


async def _find_issuer(
    client: IssuerClient, challenge: httpx2.Response | None
) -> tuple[ProtectedResourceMetadata | None, str | None]:
    """Return the metadata of a server, if it publishes any, and the issuer that the config or else the server names."""
    config = client.config
    protected = await _protected_resource(client, challenge)
    named = config.oauth.issuer if config.oauth else None
    advertised = [str(url) for url in protected.authorization_servers] if protected else []
    if named and advertised and not any(issuers_match(named, url) for url in advertised):
        raise SignInError(f"{config.title} names another issuer than its config", hint="correct `issuer`, or remove it")
    return protected, next((url for url in advertised if not named or issuers_match(named, url)), named)


def _first_scope(
    config: ServerConfig,
    challenge: httpx2.Response | None,
    protected: ProtectedResourceMetadata | None,
    metadata: OAuthMetadata,
) -> str:
    """Return the least that the server asks for: its challenge, or else its own scopes, never all of the issuer's."""
    challenged = extract_scope_from_www_auth(challenge) if challenge is not None else None
    if config.oauth and config.oauth.scopes:
        scope = " ".join(config.oauth.scopes)
    elif challenged is not None:
        scope = challenged
    else:
        scope = " ".join((protected.scopes_supported if protected else None) or ())
    if _OFFLINE in (metadata.scopes_supported or ()) and scope and _OFFLINE not in scope.split():
        scope = f"{scope} {_OFFLINE}"
    return scope


async def _protected_resource(
    client: IssuerClient, challenge: httpx2.Response | None
) -> ProtectedResourceMetadata | None:
    config = client.config
    named = extract_resource_metadata_from_www_auth(challenge) if challenge is not None else None
    for url in build_protected_resource_metadata_discovery_urls(named, config.url):
        client.check_endpoint(url, "metadata address")
        response = await client.fetch(create_oauth_metadata_request(url), f"the metadata of {config.title}")
        if response.status_code >= _SERVER_ERROR:
            raise IssuerDownError(
                f"the metadata of {config.title} cannot be read: it answered {response.status_code}",
                hint="try again later",
            )
        protected = await handle_protected_resource_response(response)
        if protected is None:
            continue
        wanted = resource_url_from_server_url(config.url)
        if not check_resource_allowed(requested_resource=wanted, configured_resource=str(protected.resource)):
            raise SignInError(
                f"the metadata of {config.title} is about another server, so its tokens would be too",
                hint="check the url of the server",
            )
        return protected
    return None


async def authorization_server(
    client: IssuerClient, issuer: str | None, *, signs_in: bool = True
) -> tuple[OAuthMetadata, str | None]:
    """Return the metadata of an issuer, or of the server's own origin if none is named, and the device endpoint.

    Where nobody `signs_in`, the issuer needs no authorization endpoint (RFC 8414, 2). The token endpoint stands for it.
    """
    config = client.config
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, config.url):
        client.check_endpoint(url, "issuer")
        response = await client.fetch(create_oauth_metadata_request(url), f"the issuer of {config.title}")
        if response.status_code >= _SERVER_ERROR:
            if issuer:
                raise IssuerDownError(
                    f"the issuer of {config.title} failed: it answered {response.status_code}", hint="try again later"
                )
            break
        document = json_object(response.content) if response.status_code == _OK else {}
        if not signs_in:
            document = {"authorization_endpoint": document.get("token_endpoint"), **document}
        try:
            metadata = OAuthMetadata.model_validate(document)
        except ValidationError:
            continue
        parts = urlsplit(config.url)
        origin = f"{parts.scheme}://{parts.netloc}"
        expected = issuer or (str(metadata.issuer) if issuers_match(str(metadata.issuer), origin) else origin)
        try:
            validate_metadata_issuer(metadata, expected)
        except OAuthFlowError:
            raise SignInError(
                f"the issuer of {config.title} calls itself by another name",
                hint="this can be an attack: do not sign in",
            ) from None
        device = document.get("device_authorization_endpoint")
        return metadata, device if isinstance(device, str) else None
    if issuer:
        raise SignInError(f"the issuer of {config.title} publishes no metadata", hint="check its address")
    raise SignInError(
        f"{config.title} does not say where to sign in",
        hint='if it needs a key, put it into "headers" of its config',
    )


def secret_method(metadata: OAuthMetadata) -> str:
    """Return how a client with a secret authenticates to an issuer."""
    offered = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    return "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"


def _scheme_of(url: str) -> str:
    """Return the scheme of an address, or "" if it is none that a request can be sent to."""
    try:
        parts = urlsplit(url)
        usable = httpx2.URL(url).host and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        return ""
    return parts.scheme if usable else ""


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body, or an empty one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
