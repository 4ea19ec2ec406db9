"""The SDK's own client signs in, with a callback on loopback and a person who answers the page of the issuer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from playwright.async_api import Page
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web import serving

Person = Callable[[str], Awaitable[None]]
"""Visits an address and does there what a person does."""
DONE = "You can close this page"
METADATA_PATH = "/client.json"


@dataclass
class Memory:
    """Keeps what a sign-in leaves behind. `visited` holds the addresses that a person was sent to."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    visited: list[str] = field(default_factory=list)

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def follow(url: str) -> None:
    """Follow the redirects of an issuer that approves without a page."""
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=True) as http:
        answer = await http.get(url)
    assert DONE in answer.text, answer.text


def clicking(page: Page, user: str, button: str = "Allow") -> Person:
    """Answer the consent page of `authorization_server` in a browser."""

    async def visit(url: str) -> None:
        await page.goto(url)
        await page.get_by_label("User").fill(user)
        await page.get_by_role("button", name=button).click()
        await page.get_by_text(DONE).wait_for()

    return visit


@asynccontextmanager
async def signing_in(
    url: str, visit: Person, memory: Memory, *, document_origin: str | None = None, mode: str = "auto"
) -> AsyncIterator[Client]:
    """Connect the SDK's client to a server that demands a sign-in. With an origin, its id is a document there."""
    arrived: asyncio.Queue[AuthorizationCodeResult] = asyncio.Queue()

    async def callback(request: Request) -> Response:
        query = dict(request.query_params)
        result = AuthorizationCodeResult(code=query.get("code", ""), state=query.get("state"), iss=query.get("iss"))
        arrived.put_nowait(result)
        return HTMLResponse(DONE)

    async def redirect(address: str) -> None:
        memory.visited.append(address)
        await visit(address)

    async with serving(Starlette(routes=[Route("/callback", callback)])) as here:
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(f"{here}/callback")], client_name="SDK")
        document = f"{document_origin}{METADATA_PATH}" if document_origin else None
        provider = OAuthClientProvider(url, metadata, memory, redirect, arrived.get, document)
        async with (
            httpx2.AsyncClient(auth=provider, timeout=30, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client
