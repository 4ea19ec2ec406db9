"""What an authorization server decides, without HTTP: clients, consent, codes, tokens, rotation and revocation.

`authorization_server.py` serves it. It is small, but it refuses what OAuth 2.1 refuses.
"""

from __future__ import annotations

import base64
import hashlib
import math
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

CODE_S = 60.0
DEVICE_S = 300.0
DEFAULT = "/.default"
SCOPES = ["tools:read", "tools:write"]
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ON_BEHALF_OF = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class RefusedError(Exception):
    """An error of OAuth: its code, and the status that the token endpoint answers with."""

    def __init__(self, error: str, description: str = "", status: int = 400) -> None:
        super().__init__(f"{error}: {description}")
        self.error, self.description, self.status = error, description, status


@dataclass
class Switches:
    """What a test can change while the server runs."""

    approve: str = ""
    """The user who consents to everything at once, without the page."""
    expires_s: int = 600
    """How long an access token lives."""
    down: list[str] = field(default_factory=list)
    """The endpoints that answer 503, by name; `*` is all of them."""
    held: list[str] = field(default_factory=list)
    """The endpoints that do not answer before they are taken off this list; `*` is all of them."""
    late: list[str] = field(default_factory=list)
    """The endpoints that do their work at once, but do not answer before they are taken off this list."""
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    """What an endpoint answers instead, by name: the status and the JSON body."""
    redirect: dict[str, str] = field(default_factory=dict)
    """Where an endpoint redirects to instead of answering, by name."""
    callback_iss: str | None = None
    """Another `iss` in the callback; an empty one is left out."""
    token_iss: str | None = None
    audience: str | None = None
    """Another audience in every access token."""
    refresh_tokens: bool = True
    """Whether there are refresh tokens at all."""
    refuse_refresh: bool = False
    reuse_ends_grant: bool = True
    """Whether an old refresh token that comes back ends the grant, or is only refused."""
    require_resource: bool = False
    """Whether every request for a token must name the resource that it is for."""
    tell_expiry: bool = True
    """Whether the answer says how long the token lives."""
    clock_skew_s: int = 0
    """How far the clock that dates tokens is ahead."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Replaces fields of the metadata; None removes one."""
    registration: bool = True
    client_documents: bool = True
    origins: dict[str, str] = field(default_factory=dict)
    """Where the documents of a public origin are fetched in truth, such as https://tools.example.com from loopback."""
    device_interval_s: int = 0
    device: dict[str, Any] = field(default_factory=dict)
    """Replaces fields of the answer to a request for a device code."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """A registered client; without a secret it is a public one."""

    client_id: str
    redirect_uris: tuple[str, ...] = ()
    name: str = ""
    secret: str | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a client asks a user for."""

    client_id: str
    scope: str
    resource: str
    redirect_uri: str = ""
    state: str | None = None
    challenge: str = ""


@dataclass(kw_only=True)
class Grant:
    """What a user consented to. A refresh token that comes back a second time ends it, with all its tokens."""

    id: str
    user: str
    request: Request
    refresh_token: str = ""
    revoked: bool = False


@dataclass(kw_only=True)
class Device:
    """A device that waits until its user has decided."""

    request: Request
    user_code: str
    ends: float
    asked: float = -math.inf
    user: str = ""
    denied: bool = False


@dataclass(kw_only=True)
class _Code:
    grant: Grant
    ends: float
    used: bool = False


class Grants:
    """All state of the server."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.kid = secrets.token_hex(8)
        self.switches = Switches()
        self.counts: Counter[str] = Counter()
        self.users: dict[str, dict[str, Any]] = {"ann": {}, "bob": {}}
        """The claims that the tokens of a user have besides the usual ones."""
        self.clients: dict[str, Client] = {}
        self.grants: dict[str, Grant] = {}
        self.codes: dict[str, _Code] = {}
        self.refresh_tokens: dict[str, Grant] = {}
        self.devices: dict[str, Device] = {}
        self.pending: dict[str, Request] = {}
        """The requests that a consent page is open for."""
        self.revoked_tokens: list[str] = []

    def published(self) -> dict[str, Any]:
        """Return the document that holds the public key."""
        key = ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**key, "kid": self.kid, "use": "sig", "alg": "ES256"}]}

    def register(self, body: dict[str, Any]) -> Client:
        """Register a client, with a secret unless it says that it has none."""
        uris = body.get("redirect_uris") or []
        if not uris or not all(isinstance(uri, str) and safe_redirect(uri) for uri in uris):
            raise RefusedError("invalid_redirect_uri")
        public = body.get("token_endpoint_auth_method") == "none"
        client = Client(
            client_id=f"client-{secrets.token_hex(8)}",
            redirect_uris=tuple(uris),
            name=str(body.get("client_name") or ""),
            secret=None if public else secrets.token_urlsafe(24),
        )
        self.clients[client.client_id] = client
        return client

    def consent(self, request: Request, user: str) -> str:
        """Record that a user agrees, and return the code for the client."""
        if user not in self.users:
            raise RefusedError("access_denied", f"no user {user}")
        code = secrets.token_urlsafe(24)
        self.codes[code] = _Code(grant=self._granted(request, user), ends=time.monotonic() + CODE_S)
        return code

    def _granted(self, request: Request, user: str) -> Grant:
        grant = Grant(id=secrets.token_hex(8), user=user, request=request)
        self.grants[grant.id] = grant
        return grant

    def tokens(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        """Answer a request to the token endpoint."""
        kind = form.get("grant_type", "")
        grants = {
            "authorization_code": self._by_code,
            "refresh_token": self._by_refresh,
            DEVICE_CODE: self._by_device,
            TOKEN_EXCHANGE: self._by_exchange,
            ON_BEHALF_OF: self._on_behalf,
            "client_credentials": self._by_credentials,
        }
        if kind not in grants:
            raise RefusedError("unsupported_grant_type", kind)
        return grants[kind](client, form)

    def _by_code(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        code = self.codes.get(form.get("code", ""))
        if code is None or code.grant.request.client_id != client.client_id:
            raise RefusedError("invalid_grant", "no such code")
        request = code.grant.request
        if code.used:
            code.grant.revoked = True
            raise RefusedError("invalid_grant", "the code was used before")
        code.used = True
        if time.monotonic() > code.ends or form.get("redirect_uri", request.redirect_uri) != request.redirect_uri:
            raise RefusedError("invalid_grant", "the code has expired, or is for another redirect_uri")
        if not secrets.compare_digest(challenge_of(form.get("code_verifier", "")), request.challenge):
            raise RefusedError("invalid_grant", "wrong code_verifier")
        return self._issued(code.grant, form)

    def _by_refresh(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        token = form.get("refresh_token", "")
        grant = self.refresh_tokens.get(token)
        if grant is None or grant.request.client_id != client.client_id or self.switches.refuse_refresh:
            raise RefusedError("invalid_grant", "no such refresh token")
        reused = token != grant.refresh_token
        if reused and self.switches.reuse_ends_grant:
            grant.revoked = True
        if reused or grant.revoked:
            raise RefusedError("invalid_grant", "the refresh token was used before, or is revoked")
        return self._issued(grant, form)

    def device(self, request: Request) -> tuple[str, Device]:
        """Begin to wait for the user of a device."""
        code = secrets.token_urlsafe(24)
        letters = "BCDFGHJKLMNPQRSTVWXZ"
        word = "".join(secrets.choice(letters) for _ in range(8))
        device = Device(request=request, user_code=f"{word[:4]}-{word[4:]}", ends=time.monotonic() + DEVICE_S)
        device.user = self.switches.approve
        self.devices[code] = device
        return code, device

    def decide(self, user_code: str, user: str) -> None:
        """Record what the user of a device decided; without a user it is a no."""
        device = next((device for device in self.devices.values() if device.user_code == user_code), None)
        if device is None or (user and user not in self.users):
            raise RefusedError("invalid_request", "no such code or user")
        device.user, device.denied = user, not user

    def _by_device(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        code = form.get("device_code", "")
        device = self.devices.get(code)
        if device is None or device.request.client_id != client.client_id:
            raise RefusedError("invalid_grant", "no such device code")
        last, device.asked = device.asked, time.monotonic()
        if device.asked > device.ends:
            raise RefusedError("expired_token")
        if device.asked - last < self.switches.device_interval_s:
            raise RefusedError("slow_down")
        if device.denied:
            raise RefusedError("access_denied")
        if not device.user:
            raise RefusedError("authorization_pending")
        del self.devices[code]
        return self._issued(self._granted(device.request, device.user), form)

    def _by_exchange(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        if client.secret is None:
            raise RefusedError("unauthorized_client", "token exchange is for clients with a secret")
        if form.get("subject_token_type") != ACCESS_TOKEN:
            raise RefusedError("invalid_request", "subject_token_type")
        audience = form.get("resource") or form.get("audience")
        if not audience:
            raise RefusedError("invalid_target", "no resource")
        subject = self._subject(form.get("subject_token", ""))
        scope = scope_of(form.get("scope", subject.get("scope", "")))
        return {**self._exchanged(client, subject, audience, scope), "issued_token_type": ACCESS_TOKEN}

    def _on_behalf(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        if client.secret is None or form.get("requested_token_use") != "on_behalf_of":
            raise RefusedError("unauthorized_client", "only a client with a secret acts on behalf of others")
        return self._exchanged(client, self._subject(form.get("assertion", "")), *target_of(form.get("scope", "")))

    def _exchanged(self, client: Client, subject: dict[str, Any], audience: str, scope: str) -> dict[str, Any]:
        claims = {"sub": subject["sub"], "act": {"sub": client.client_id}, **self.users.get(subject["sub"], {})}
        return self._access(client.client_id, audience, scope, claims)

    def _subject(self, token: str) -> dict[str, Any]:
        try:
            subject: dict[str, Any] = jwt.decode(
                token,
                self.key.public_key(),
                ["ES256"],
                issuer=self.issuer,
                options={"verify_aud": False, "require": ["exp", "sub", "aud"]},
            )
        except jwt.InvalidTokenError as error:
            raise RefusedError("invalid_request", f"subject_token: {error}") from None
        return subject

    def _by_credentials(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        if client.secret is None:
            raise RefusedError("unauthorized_client", "client credentials are for clients with a secret")
        if form.get("scope", "").endswith(DEFAULT):
            return self._access(client.client_id, *target_of(form["scope"]), {"sub": client.client_id})
        scope = scope_of(form.get("scope", ""))
        return self._access(client.client_id, form.get("resource") or self.issuer, scope, {"sub": client.client_id})

    def _issued(self, grant: Grant, form: dict[str, str]) -> dict[str, Any]:
        request = grant.request
        unnamed = "" if self.switches.require_resource else request.resource
        if form.get("resource", unnamed) != request.resource:
            raise RefusedError("invalid_target", "the consent was for another resource")
        scope = form.get("scope", request.scope)
        if not set(scope.split()) <= set(request.scope.split()):
            raise RefusedError("invalid_scope", "more than the user agreed to")
        claims = {"sub": grant.user, "grant": grant.id, **self.users[grant.user]}
        issued = self._access(request.client_id, request.resource, scope, claims)
        if not self.switches.refresh_tokens:
            return issued
        grant.refresh_token = secrets.token_urlsafe(32)
        self.refresh_tokens[grant.refresh_token] = grant
        return {**issued, "refresh_token": grant.refresh_token}

    def _access(self, client_id: str, audience: str, scope: str, claims: dict[str, Any]) -> dict[str, Any]:
        named = {"client_id": client_id, "scope": scope, "aud": self.switches.audience or audience}
        answer = {"access_token": self.signed({**named, **claims}), "token_type": "Bearer", "scope": scope}
        return {**answer, "expires_in": self.switches.expires_s} if self.switches.tell_expiry else answer

    def signed(self, claims: dict[str, Any]) -> str:
        """Sign claims. Those of time and issuer are added, unless they are given."""
        now = int(time.time()) + self.switches.clock_skew_s
        own = {"iss": self.switches.token_iss or self.issuer, "iat": now, "exp": now + self.switches.expires_s}
        body = {**own, "jti": secrets.token_hex(8), **claims}
        return jwt.encode(body, self.key, "ES256", headers={"kid": self.kid, "typ": "at+jwt"})

    def revoke(self, client: Client, token: str) -> None:
        """Revoke a refresh token and what came of it, or one access token. An unknown one is no error."""
        grant = self.refresh_tokens.get(token)
        if grant is not None and grant.request.client_id == client.client_id:
            grant.revoked = True
        elif grant is None:
            self.revoked_tokens.append(token)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def target_of(scope: str) -> tuple[str, str]:
    """Return the audience and the scopes behind a scope such as `https://server.example/mcp/.default`."""
    if not scope.endswith(DEFAULT):
        raise RefusedError("invalid_scope", scope)
    return scope.removesuffix(DEFAULT), SCOPES[0]


def scope_of(text: str) -> str:
    """Return the scopes that are asked for, or the first one if none is."""
    if not set(text.split()) <= set(SCOPES):
        raise RefusedError("invalid_scope", text)
    return text or SCOPES[0]


def _loopback(uri: str) -> bool:
    return urlsplit(uri).hostname in ("127.0.0.1", "localhost", "::1")


def safe_redirect(uri: str) -> bool:
    """Say whether a code may be sent to a URI at all: over TLS, or to the same machine."""
    parts = urlsplit(uri)
    return not parts.fragment and (parts.scheme == "https" or (parts.scheme == "http" and _loopback(uri)))


def redirect_allowed(uri: str, client: Client) -> bool:
    """Compare a redirect URI with the registered ones. On loopback the port may differ (RFC 8252)."""
    if uri in client.redirect_uris:
        return True
    if not _loopback(uri):
        return False
    asked = urlsplit(uri)
    return any(
        asked._replace(netloc=asked.hostname or "") == known._replace(netloc=known.hostname or "")
        for known in map(urlsplit, client.redirect_uris)
    )
