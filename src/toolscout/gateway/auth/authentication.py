"""Authentication of `/mcp`, built from the SDK's middleware and the settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl, ValidationError
from starlette.authentication import AuthenticationError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscout.errors import AuthError, SettingError, to_wire
from toolscout.gateway.auth.bearer import BearerVerifier, FindKey
from toolscout.gateway.auth.jwks import KeySet, is_safe
from toolscout.gateway.auth.jwt_tokens import ALGORITHMS, JwtVerifier
from toolscout.gateway.denied import note_reason
from toolscout.policy.claims import ClaimMap
from toolscout.settings import PREFIX, Settings

METADATA = "/.well-known/oauth-protected-resource"
"""Where clients look for the issuer, with and without the path of the resource appended (RFC 9728)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authentication:
    """Verifies callers, and tells clients where to get a token."""

    verifier: BearerVerifier
    scopes: tuple[str, ...] = ()
    issuer: AnyHttpUrl | None = None
    resource: AnyHttpUrl | None = None

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Protect an application: 401 without a valid token, 403 without the scope, 503 while keys cannot be read."""
        metadata = build_resource_metadata_url(self.resource) if self.resource else None
        required = RequireAuthMiddleware(app, list(self.scopes), metadata)
        backend = BearerAuthBackend(self.verifier, resource_server_url=self.resource)
        return OneAuthorization(
            AuthenticationMiddleware(AuthContextMiddleware(required), backend=backend, on_error=_unavailable)
        )

    def routes(self) -> list[Route]:
        """Return the routes that tell clients where to get a token. Without an issuer there are none."""
        if self.issuer is None or self.resource is None:
            return []
        (route,) = create_protected_resource_routes(
            self.resource, [self.issuer], scopes_supported=list(self.scopes) or None, resource_name="Toolscout"
        )
        paths = dict.fromkeys((route.path, METADATA, f"{METADATA}/mcp"))
        return [Route(path, endpoint=route.endpoint, methods=["GET", "OPTIONS"]) for path in paths]


def authentication_for(
    settings: Settings, find_key: FindKey, *, clock: Callable[[], float] = time.monotonic
) -> Authentication:
    """Build the authentication from the settings: API keys always, tokens when an issuer is set."""
    scopes = tuple(settings.auth_scope.split())
    if not settings.auth_issuer:
        return Authentication(verifier=BearerVerifier(find_key, None, clock=clock), scopes=scopes)
    urls = _urls(settings)
    tokens = JwtVerifier(
        issuer=settings.auth_issuer,
        audience=settings.auth_audience,
        keys=KeySet(settings.auth_jwks_url, issuer=settings.auth_issuer, clock=clock),
        claims=ClaimMap(
            tenant=settings.auth_tenant_claim, user=settings.auth_user_claim, groups=settings.auth_groups_claim
        ),
        algorithms=_algorithms(settings),
    )
    return Authentication(
        verifier=BearerVerifier(find_key, tokens, audience=settings.auth_audience, clock=clock),
        scopes=scopes,
        issuer=urls.issuer_url,
        resource=urls.resource_server_url,
    )


class OneAuthorization:
    """Middleware that refuses two Authorization headers: a proxy in front may have checked the other one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or answer 400."""
        if sum(name == b"authorization" for name, _ in scope.get("headers", ())) > 1:
            note_reason("the request has two Authorization headers")
            wire = to_wire(AuthError("the request has two Authorization headers", hint="send one"))
            await JSONResponse(wire, status_code=400)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _unavailable(_connection: HTTPConnection, error: AuthenticationError) -> JSONResponse:
    wire = to_wire(error.__cause__ or error)
    return JSONResponse(wire, status_code=503, headers={"Retry-After": "1"})


def _urls(settings: Settings) -> AuthSettings:
    """Check the addresses. The SDK's model keeps their spelling, which must match the issuer's exactly."""
    if not settings.auth_audience:
        raise SettingError(
            f"{PREFIX}AUTH_ISSUER is set without {PREFIX}AUTH_AUDIENCE: tokens for other services would be accepted",
            hint="set it to this gateway's own address, as in https://tools.example.com/mcp",
        )
    for name, url in (("AUTH_ISSUER", settings.auth_issuer), ("AUTH_JWKS_URL", settings.auth_jwks_url)):
        if url and not is_safe(url):
            raise SettingError(
                f"{PREFIX}{name} is not an https address", hint="use https. http is allowed on this machine only"
            )
    try:
        return AuthSettings.model_validate(
            {
                "issuer_url": settings.auth_issuer,
                "resource_server_url": settings.auth_audience,
                "validate_token_resource": False,
            }
        )
    except ValidationError as error:
        raise SettingError(
            f"{PREFIX}AUTH_ISSUER or {PREFIX}AUTH_AUDIENCE is not an address",
            hint="write both as in https://tools.example.com/mcp",
        ) from error


def _algorithms(settings: Settings) -> tuple[str, ...]:
    names = tuple(settings.auth_algorithms.replace(",", " ").split())
    unknown = [name for name in names if name not in ALGORITHMS]
    if unknown or not names:
        raise SettingError(
            f"{PREFIX}AUTH_ALGORITHMS contains {', '.join(unknown)}"
            if unknown
            else f"{PREFIX}AUTH_ALGORITHMS is empty",
            hint=f"choose from {' '.join(ALGORITHMS)}",
        )
    return names
