"""Signing in with a code that the person enters on another device (RFC 8628)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx2
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthClientInformationFull

from toolscout.downstream.sign_in.issuers import Issuer, IssuerClient, IssuerDownError, json_object
from toolscout.downstream.sign_in.token_requests import TokenRefusedError, post_form, request_token
from toolscout.errors import SignInError
from toolscout.models import Account, Scope

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
REDIRECT = "http://127.0.0.1/callback"
"""What a client is registered with that never gets an answer there."""

_LEAST_PAUSE_S = 1.0
_SLOWER_S = 5.0
LONGEST_S = 1_800.0
"""How long a person has at most, whatever the issuer says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """What the person needs: an address, and the code to enter there."""

    link: str
    code: str
    whole_link: str | None = None
    """The address with the code in it."""


async def sign_in_with_device(
    http: IssuerClient,
    issuer: Issuer,
    client: OAuthClientInformationFull,
    *,
    scope: Scope,
    server: str,
    before: Account | None,
    show: Callable[[DeviceCode], None],
) -> Account:
    """Show the person a code, and ask the issuer for tokens until the person has entered it."""
    title = http.config.title
    if issuer.device_endpoint is None:
        raise SignInError(f"the issuer of {title} has no device codes", hint="sign in without --device-code")
    requested = issuer.scope
    if before is not None and before.issuer == issuer.issuer:
        requested = union_scopes(union_scopes(before.granted, before.wanted), requested) or ""
    account = Account(
        scope=scope,
        server=server,
        issuer=issuer.issuer,
        url=http.config.url,
        resource=issuer.resource,
        client=client.model_dump(mode="json", exclude_none=True),
        token_endpoint=str(issuer.metadata.token_endpoint),
        revocation_endpoint=str(issuer.metadata.revocation_endpoint) if issuer.metadata.revocation_endpoint else None,
        granted=requested,
        signed_in_at=time.time(),
    )
    form = {"scope": requested} if requested else {}
    response = await post_form(http, account, issuer.device_endpoint, form)
    shown, device_code, pause_s, lasts_s = _read(response, title)
    for link in (shown.link, shown.whole_link):
        if link is not None:
            http.check_endpoint(link, "device page")
    show(shown)
    ends = time.monotonic() + lasts_s
    while time.monotonic() < ends:
        await asyncio.sleep(min(pause_s, ends - time.monotonic()))
        try:
            return await request_token(http, account, {"grant_type": GRANT, "device_code": device_code})
        except TokenRefusedError as error:
            if error.error == "slow_down":
                pause_s += _SLOWER_S
            elif error.error == "access_denied":
                raise SignInError(f"the sign-in to {title} was declined", hint="begin again") from None
            elif error.error != "authorization_pending":
                raise
        except IssuerDownError:
            pause_s *= 2
    raise SignInError("nobody entered the code in time", hint="begin again")


def _read(response: httpx2.Response, title: str) -> tuple[DeviceCode, str, float, float]:
    body = json_object(response.content)
    texts = {name: body.get(name) for name in ("device_code", "user_code", "verification_uri")}
    if response.status_code >= 400 or not all(isinstance(text, str) and text for text in texts.values()):
        raise SignInError(
            f"the issuer of {title} gave no device code: it answered {response.status_code}", hint="sign in without it"
        )
    whole = body.get("verification_uri_complete")
    shown = DeviceCode(
        link=str(texts["verification_uri"]),
        code=str(texts["user_code"]),
        whole_link=whole if isinstance(whole, str) else None,
    )
    pause_s = max(_number(body.get("interval"), 5.0), _LEAST_PAUSE_S)
    return shown, str(texts["device_code"]), pause_s, _number(body.get("expires_in"), 600.0)


def _number(value: object, default: float) -> float:
    return float(min(value, LONGEST_S)) if isinstance(value, (int, float)) and value > 0 else default
