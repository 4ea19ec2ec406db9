"""One sign-in with an authorization code: it begins with a link for the browser, and ends with the issuer's answer."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode

from mcp.client.auth import OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.oauth2 import PKCEParameters, check_registration_usable
from mcp.client.auth.utils import (
    create_client_info_from_metadata_url,
    create_client_registration_request,
    handle_registration_response,
    should_use_client_metadata_url,
    union_scopes,
    validate_authorization_response_iss,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata
from pydantic import AnyUrl

from toolscout.config import ServerConfig
from toolscout.downstream.sign_in.issuers import Issuer, IssuerClient, secret_method
from toolscout.downstream.sign_in.token_requests import request_token
from toolscout.errors import SignInError
from toolscout.models import Account, Scope

Client: TypeAlias = OAuthClientInformationFull
"""What an issuer knows toolscout as."""

PENDING_S = 600.0
"""How long a person has to finish a sign-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """A sign-in that waits for the person. Only an answer with its `state` ends it."""

    scope: Scope
    server: str
    url: str = field(repr=False)
    resource: str | None
    requested: str
    """The scopes that were requested."""
    metadata: Mapping[str, Any]
    client: Mapping[str, Any] = field(repr=False)
    redirect_uri: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    challenge: str
    began_at: float
    browser: str = ""
    """A digest of the cookie of the browser that began it, where the answer comes to a gateway."""

    @property
    def lasts_s(self) -> float:
        """How long the person has to finish it."""
        return PENDING_S

    @property
    def link(self) -> str:
        """The address at the issuer where the person signs in."""
        parameters = {
            "response_type": "code",
            "client_id": self.client["client_id"],
            "redirect_uri": self.redirect_uri,
            "state": self.state,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
        }
        if self.resource:
            parameters["resource"] = self.resource
        if self.requested:
            parameters["scope"] = self.requested
            if "offline_access" in self.requested.split():
                parameters["prompt"] = "consent"  # OpenID Connect demands it
        endpoint = str(self.metadata["authorization_endpoint"])
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"


def begin(
    issuer: Issuer,
    client: OAuthClientInformationFull,
    *,
    scope: Scope,
    server: str,
    config: ServerConfig,
    redirect_uri: str,
    before: Account | None,
    browser: str = "",
) -> PendingSignIn:
    """Begin a sign-in. Scopes of an account from before, and those its server has asked for, are requested again."""
    requested = issuer.scope
    if before is not None and before.issuer == issuer.issuer:
        requested = union_scopes(union_scopes(before.granted, before.wanted), requested) or ""
    proof = PKCEParameters.generate()
    return PendingSignIn(
        scope=scope,
        server=server,
        url=config.url,
        resource=issuer.resource,
        requested=requested,
        metadata=issuer.metadata.model_dump(mode="json", exclude_none=True),
        client=client.model_dump(mode="json", exclude_none=True),
        redirect_uri=redirect_uri,
        state=secrets.token_urlsafe(32),
        verifier=proof.code_verifier,
        challenge=proof.code_challenge,
        began_at=time.time(),
        browser=browser,
    )


def known_client(
    http: IssuerClient, issuer: Issuer, redirect_uri: str, metadata_url: str | None = None
) -> OAuthClientInformationFull | None:
    """Return the client of the config, or our metadata document where the issuer reads it, or None."""
    oauth = http.config.oauth
    if oauth is not None and oauth.client_id:
        return OAuthClientInformationFull(
            client_id=oauth.client_id,
            token_endpoint_auth_method=secret_method(issuer.metadata) if oauth.client_secret else "none",
        )
    if metadata_url and should_use_client_metadata_url(issuer.metadata, metadata_url):
        return create_client_info_from_metadata_url(metadata_url, [AnyUrl(redirect_uri)])
    return None


def read_client(stored: Mapping[str, Any]) -> Client:
    """Return a client that was kept as JSON."""
    return Client.model_validate(stored)


async def register(
    http: IssuerClient, issuer: Issuer, redirect_uri: str, grant_type: str
) -> OAuthClientInformationFull:
    """Register a client with an issuer (RFC 7591)."""
    title = http.config.title
    if issuer.metadata.registration_endpoint is None:
        raise SignInError(
            f"the issuer of {title} knows only clients that were registered by hand",
            hint=f'register one with the callback {redirect_uri}, and put its client_id into "oauth" of the config',
        )
    described = client_metadata(redirect_uri, grant_type)
    request = create_client_registration_request(issuer.metadata, described, issuer.issuer)
    response = await http.fetch(request, f"the issuer of {title}")
    try:
        client = await handle_registration_response(response)
        check_registration_usable(client)
    except OAuthRegistrationError:
        # The text of the error holds the body, which may hold a secret.
        raise SignInError(
            f"the issuer of {title} did not register a client: it answered {response.status_code}",
            hint='register one by hand, and put its client_id into "oauth" of the config',
        ) from None
    return client


def client_metadata(redirect_uri: str, grant_type: str = "authorization_code") -> OAuthClientMetadata:
    """Return how toolscout describes itself to an issuer."""
    return OAuthClientMetadata(
        client_name="Toolscout",
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=[grant_type, "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
    )


async def finish(http: IssuerClient, pending: PendingSignIn, answer: Mapping[str, str]) -> Account:
    """Check the issuer's answer and exchange its code for tokens.

    The answer must have the state of this sign-in and, if it names an issuer, this one (RFC 9207). The code goes to the
    token endpoint of the issuer that this sign-in began with, together with the PKCE verifier.
    """
    title = http.config.title
    if not secrets.compare_digest(answer.get("state", "").encode(), pending.state.encode()):
        raise SignInError(
            "this answer belongs to another sign-in", hint=f"run `toolscout login {pending.server}` again"
        )
    if time.time() - pending.began_at > PENDING_S:
        raise SignInError("this sign-in took too long", hint="begin again")
    if pending.url != http.config.url:
        raise SignInError(f"the address of {title} has changed since", hint="begin again")
    metadata = OAuthMetadata.model_validate(pending.metadata)
    try:
        validate_authorization_response_iss(answer.get("iss"), metadata)
    except OAuthFlowError:
        raise SignInError(
            "the answer comes from another issuer than the one asked", hint="this can be an attack: do not sign in"
        ) from None
    if "error" in answer:
        reason = "declined" if answer["error"] == "access_denied" else "refused"
        raise SignInError(f"the sign-in to {title} was {reason}", hint="begin again, and allow the access")
    if not answer.get("code"):
        raise SignInError("the answer of the issuer holds no code", hint="begin again")
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "redirect_uri": pending.redirect_uri,
        "code_verifier": pending.verifier,
    }
    account = Account(
        scope=pending.scope,
        server=pending.server,
        issuer=str(metadata.issuer),
        url=pending.url,
        resource=pending.resource,
        client=pending.client,
        token_endpoint=str(metadata.token_endpoint),
        revocation_endpoint=str(metadata.revocation_endpoint) if metadata.revocation_endpoint else None,
        granted=pending.requested,
        signed_in_at=time.time(),
    )
    return await request_token(http, account, form)
