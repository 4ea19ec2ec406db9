"""Requests to an issuer's token and revocation endpoints. No message shows a body, which may hold a secret."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

import httpx2
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import OAuthToken
from pydantic import ValidationError

from toolscout.config import ServerConfig
from toolscout.downstream.sign_in.issuers import IssuerClient, IssuerDownError, json_object
from toolscout.errors import SignInError
from toolscout.models import Account

FINAL: Final = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""Errors of a token endpoint that no repetition cures: the person has to sign in again."""

EARLY_S: Final = 60.0
"""How long before its end a token is renewed: the clocks of issuer and server may differ by as much."""

_SERVER_ERROR = 500
_LONGEST_S = 315_360_000
_TOKEN = re.compile(r"[\x21-\x7e]+")
"""What a header can carry. RFC 6750 allows less, but issuers in use give tokens with other visible characters."""

_CODES = frozenset(
    {*FINAL, "invalid_request", "invalid_scope", "unsupported_grant_type", "invalid_target", "access_denied"}
    | {"authorization_pending", "slow_down", "expired_token"}
    | {"interaction_required", "consent_required", "login_required"}
)


class TokenRefusedError(SignInError):
    """The issuer refused to give a token. `error` is its code, if it is one that the standards define."""

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message, hint="sign in again")
        self.error = error


async def request_token(http: IssuerClient, account: Account, form: Mapping[str, str]) -> Account:
    """Ask for tokens, and return the account with them. What the issuer leaves out stays as it was."""
    token = read_token(http, await post_form(http, account, account.token_endpoint, form))
    expires_at, renew_at = times_of(token)
    return replace(
        account,
        access_token=token.access_token,
        refresh_token=token.refresh_token or account.refresh_token,
        granted=account.granted if token.scope is None else token.scope,
        expires_at=expires_at,
        renew_at=renew_at,
        refused="",
    )


def read_token(http: IssuerClient, response: httpx2.Response) -> OAuthToken:
    """Return the token in an answer. Raise IssuerDownError, TokenRefusedError or SignInError if there is none."""
    if response.status_code >= _SERVER_ERROR:
        raise IssuerDownError(
            f"the issuer of {http.config.title} failed: it answered {response.status_code}", hint="try again later"
        )
    body = json_object(response.content)
    try:
        token = OAuthToken.model_validate(body)
    except ValidationError:
        error = body.get("error")
        code = error if isinstance(error, str) and error in _CODES else ""
        answer = f"{response.status_code} {code}".strip()
        raise TokenRefusedError(
            f"the issuer of {http.config.title} gave no token: it answered {answer}", code
        ) from None
    if not _TOKEN.fullmatch(token.access_token):
        raise SignInError(
            f"the issuer of {http.config.title} gave a token that cannot be sent in a header", hint="ask its operator"
        )
    return token


def times_of(token: OAuthToken) -> tuple[float | None, float | None]:
    """Return when a token that was given now expires, and when to renew it."""
    if token.expires_in is None:
        return None, None
    lasts_s, now = float(min(max(token.expires_in, 0), _LONGEST_S)), time.time()
    return now + lasts_s, now + max(lasts_s - EARLY_S, lasts_s / 2)


async def refresh(http: IssuerClient, account: Account) -> Account:
    """Exchange the refresh token for new tokens."""
    if not account.refresh_token:
        raise TokenRefusedError("the account cannot be renewed", "invalid_grant")
    return await request_token(http, account, {"grant_type": "refresh_token", "refresh_token": account.refresh_token})


async def revoke(http: IssuerClient, account: Account) -> bool:
    """Revoke the tokens of an account (RFC 7009). Return whether the issuer did."""
    if account.revocation_endpoint is None:
        return False
    done = []
    for kind, token in (("refresh_token", account.refresh_token), ("access_token", account.access_token)):
        if token:
            form = {"token": token, "token_type_hint": kind}
            status = _SERVER_ERROR
            with suppress(SignInError):
                status = (await post_form(http, account, account.revocation_endpoint, form)).status_code
            done.append(status < 400)
    return bool(done) and all(done)


async def post_form(http: IssuerClient, account: Account, endpoint: str, form: Mapping[str, str]) -> httpx2.Response:
    """Send a form about the account's server (RFC 8707), authenticated as the account's client."""
    named = {"resource": account.resource} if account.resource else {}
    known = is_of_issuer(account, http.config)
    return await post_as(http, account.client, endpoint, {**form, **named}, with_config_secret=known)


def is_of_issuer(account: Account, config: ServerConfig) -> bool:
    """Tell whether an account comes from the issuer that a config names. One that names none takes any."""
    named = config.oauth.issuer if config.oauth else None
    return not named or issuers_match(account.issuer, named)


async def post_as(
    http: IssuerClient,
    client: Mapping[str, Any],
    endpoint: str,
    form: Mapping[str, str],
    *,
    with_config_secret: bool = True,
) -> httpx2.Response:
    """Send a form, authenticated as a client. The secret of the config is for its own issuer."""
    client_id = str(client["client_id"])
    configured = _configured_secret(http.config, client_id) if with_config_secret else ""
    secret = configured or client.get("client_secret")
    method = client.get("token_endpoint_auth_method")
    data, headers = {**form, "client_id": client_id}, {"Accept": "application/json"}
    if secret and method in (None, "client_secret_basic"):
        pair = f"{quote(client_id, safe='')}:{quote(str(secret), safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif secret:
        data["client_secret"] = str(secret)
    http.check_endpoint(endpoint, "token endpoint")
    request = httpx2.Request("POST", endpoint, data=data, headers=headers)
    return await http.fetch(request, f"the issuer of {http.config.title}")


def _configured_secret(config: ServerConfig, client_id: str) -> str:
    """Return the secret of a client that the config names. It is not stored, so that it can be changed there."""
    return config.oauth.client_secret if config.oauth and config.oauth.client_id == client_id else ""
