"""The end of a sign-in on this machine: a page on a loopback port that the issuer sends the browser back to.

Only an answer with the right `state` is taken. Any other request gets an error page, and the sign-in goes on waiting.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolscout.errors import SettingError, ToolscoutError
from toolscout.gateway.host_check import HostCheck, allowed_hosts
from toolscout.gateway.http_listener import bind, serve_in_background
from toolscout.gateway.pages import page


class Callback:
    """Waits for the issuer's answer: on the loopback port, or pasted into the terminal."""

    def __init__(self, redirect_uri: str) -> None:
        self.redirect_uri = redirect_uri
        self.state = ""
        """The state of the sign-in that is waited for."""
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(self, timeout_s: float) -> dict[str, str]:
        """Return the issuer's answer."""
        return await asyncio.wait_for(asyncio.shield(self._answer), timeout_s)

    def tell(self, outcome: str) -> None:
        """Tell the person in the browser how the sign-in ended."""
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    def fail(self, error: ToolscoutError) -> None:
        """Tell the person in the browser that the sign-in failed."""
        if not self._outcome.done():
            self._outcome.set_exception(error)
            self._outcome.exception()  # marks it as retrieved: the answer may have been pasted

    def take(self, query: str) -> bool:
        """Take an answer, if it belongs to this sign-in."""
        pairs = parse_qsl(query, keep_blank_values=True)
        answer = dict(pairs)
        if len(answer) != len(pairs) or not self.state or answer.get("state") != self.state or self._answer.done():
            return False
        self._answer.set_result(answer)
        return True

    def read_terminal(self) -> None:
        """Take the address that a person pastes, when the browser is on another machine."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            for line in iter(sys.stdin.readline, ""):
                loop.call_soon_threadsafe(self.take, line.strip().partition("#")[0].partition("?")[2])

        threading.Thread(target=read, daemon=True).start()

    async def respond(self, request: Request) -> Response:
        """Answer the browser."""
        if not self.take(request.url.query):
            return page("This is not the sign-in that toolscout waits for", "Begin again in the terminal.", status=400)
        try:
            outcome = await asyncio.shield(self._outcome)
        except ToolscoutError as error:
            return page(f"You are not signed in: {error.message}", error.hint, status=400)
        return page(outcome, "You can close this page, and go back to your terminal.")


@asynccontextmanager
async def listening(port: int = 0) -> AsyncIterator[Callback]:
    """Listen on a loopback port for the time of the block: on this one if it is free, or else on a random one."""
    try:
        listener = bind("127.0.0.1", port)
    except SettingError:
        listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    callback = Callback(f"http://127.0.0.1:{port}/callback")
    app = Starlette(
        routes=[Route("/callback", callback.respond, methods=["GET"])],
        middleware=[Middleware(HostCheck, allowed=allowed_hosts("127.0.0.1", port))],
    )
    async with serve_in_background(app, listener):
        yield callback
