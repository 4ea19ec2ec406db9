"""Authorizes requests to a server with the token of an account."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

from toolscout.downstream.sign_in.account_tokens import AccountTokens
from toolscout.models import Account

_UNAUTHORIZED = 401
_FORBIDDEN = 403


class AccountAuth(httpx2.Auth):
    """Adds the token of an account to every request.

    A request is sent again only if the server refused it: with 401, or with 403 because the token allows too little.
    """

    def __init__(self, tokens: AccountTokens) -> None:
        self._tokens = tokens

    def texts(self) -> list[str]:
        """Return the tokens that the server may quote."""
        return self._tokens.texts()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Authorize one request."""
        tokens = self._tokens
        account = _authorize(request, await tokens.current(), tokens)
        response = yield request
        if response.status_code == _UNAUTHORIZED and account is None:
            # Somebody may have signed in a moment ago.
            account = _authorize(request, await tokens.current(fresh=True), tokens)
            if account is not None:
                response = yield request
            elif await tokens.says_where_to_sign_in(response):
                raise tokens.sign_in_required()
        if response.status_code == _UNAUTHORIZED and account is not None:
            renewed = await tokens.renew(account)
            account = _authorize(request, renewed, tokens)
            response = yield request
            if response.status_code == _UNAUTHORIZED and not tokens.issued(renewed):
                # Another process got that token, perhaps before the server began to refuse all of them.
                account = _authorize(request, await tokens.renew(renewed), tokens)
                response = yield request
            if response.status_code == _UNAUTHORIZED and account is not None:
                raise tokens.note_refused(account)
        if account is None or not _wants_more(response):
            return
        # Somebody may have allowed more a moment ago.
        newer = await tokens.note_wanted(account, extract_scope_from_www_auth(response))
        if newer is not None:
            _authorize(request, newer, tokens)
            response = yield request
            if not _wants_more(response):
                return
            await tokens.note_wanted(newer, extract_scope_from_www_auth(response))
        raise tokens.sign_in_required("it wants you to allow more")


def _wants_more(response: httpx2.Response) -> bool:
    insufficient = extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return insufficient and response.status_code == _FORBIDDEN


def _authorize(request: httpx2.Request, account: Account | None, tokens: AccountTokens) -> Account | None:
    """Add the token of an account to a request. Raise SignInRequiredError if the account is of no use any more."""
    if account is not None and account.refused:
        raise tokens.sign_in_required(account.refused)
    if account is not None:
        request.headers["Authorization"] = f"Bearer {account.access_token}"
    return account
