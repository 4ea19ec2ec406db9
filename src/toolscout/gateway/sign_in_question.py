"""A call that needs a sign-in: a client that can open links shows one to the person, and the call goes on after it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from toolscout.errors import SignInRequiredError, ToolscoutError
from toolscout.gateway.connect import public_origin
from toolscout.gateway.identity import Owner, owner_of
from toolscout.gateway.loopback_callback import listening
from toolscout.models import Account, Caller, Scope
from toolscout.ports import Upstream
from toolscout.scout import Scout
from toolscout.settings import Settings
from toolscout.tool_keys import split_key

WAIT_S: Final = 120.0
"""How long a call waits for the person."""

_PAUSE_S = 0.2
_LIST_S = 10.0
_ASK = "elicitation/create"


class SignInQuestions:
    """Sends the link of a sign-in to the person behind a call, by URL elicitation."""

    def __init__(self, scout: Scout, settings: Settings, *, authenticated: bool) -> None:
        self._scout = scout
        self._public = public_origin(settings)
        self._authenticated = authenticated
        self._asked: Counter[tuple[str, Owner]] = Counter()

    async def missing(self, caller: Caller) -> dict[str, str]:
        """Return the servers whose tools a caller gets by signing in for themselves, each with how."""
        found = {}
        for key, hint in (await self._scout.servers.missing_sign_ins(caller)).items():
            live = self._scout.servers.get(key)
            if live is not None and not self._scout.access.denies_server(caller, live.server):
                found[key] = hint
        return found

    async def check_unlisted(self, key: str, caller: Caller) -> None:
        """Raise SignInRequiredError if a tool is not found because the caller has to sign in to its server first."""
        server = split_key(key)[0]
        hint = (await self.missing(caller)).get(server)
        if hint:
            raise SignInRequiredError(
                f"{server} needs you to sign in; nothing was sent", hint=hint, details={"server": server}
            )

    async def signed_in(self, key: str, caller: Caller, upstream: Upstream, error: SignInRequiredError) -> bool:
        """Ask the person to sign in to the server of a tool. Return whether they did, so that the call can be sent."""
        asked = key, owner_of(caller)
        self._asked[asked] += 1
        try:
            return await self._ask(key, caller, upstream, error)
        finally:
            self._asked -= Counter([asked])

    def waits_for(self, key: str, caller: Caller) -> bool:
        """Return whether a call of a caller waits for their sign-in. Its tool may not be listed yet."""
        return self._asked[key, owner_of(caller)] > 0

    async def _ask(self, key: str, caller: Caller, upstream: Upstream, error: SignInRequiredError) -> bool:
        server = split_key(key)[0]
        elicitation = upstream.capabilities.get("elicitation")
        config = self._scout.servers.config_of(server)
        if not isinstance(elicitation, Mapping) or "url" not in elicitation or config is None:
            return False
        if not self._authenticated:
            return await self._sign_in_here(server, upstream, error)
        if not config.users_sign_in or not self._public:
            return False  # the gateway's own account is the operator's
        before = await self._signed_in_at(server, caller.scope)
        if not await _accepts(upstream, f"{self._public}/connect/{server}", error):
            return False
        # The replica that ends the sign-in has a clock of its own, so times are only told apart.
        found = await self._waits_until(server, caller.scope, lambda at: at not in (None, before))
        return found and await self._is_listed(key, caller)

    async def _sign_in_here(self, server: str, upstream: Upstream, error: SignInRequiredError) -> bool:
        """Sign in the person of this machine, with a callback on loopback."""
        accounts, config = self._scout.servers.accounts, self._scout.servers.config_of(server)
        if accounts is None or config is None:
            return False
        async with listening(await accounts.clients.loopback_port(server)) as callback:
            try:
                pending = await accounts.begin(server, config, Scope(), callback.redirect_uri)
            except ToolscoutError:
                return False
            callback.state = pending.state
            if not await _accepts(upstream, pending.link, error):
                return False
            try:
                account = await accounts.finish(config, pending, await callback.answer(WAIT_S))
            except TimeoutError:
                return False
            except ToolscoutError as failure:
                callback.fail(failure)
                raise
            callback.tell(f"You are signed in to {config.title}")
        return await self._waits_until(server, Scope(), lambda at: at == account.signed_in_at)

    async def _is_listed(self, key: str, caller: Caller) -> bool:
        """Wait until a tool that is listed for the caller alone is in the catalogue, if it ever is."""
        ends = time.monotonic() + _LIST_S
        while True:
            if time.monotonic() > ends or await self._scout.access.may_call(caller, key):
                return True
            await asyncio.sleep(_PAUSE_S)

    async def _waits_until(self, server: str, scope: Scope, is_new: Callable[[float | None], bool]) -> bool:
        """Wait until a user has signed in, and the server is connected."""
        ends = time.monotonic() + WAIT_S
        while time.monotonic() < ends:
            live = self._scout.servers.get(server)
            if is_new(await self._signed_in_at(server, scope)) and live and live.status.state == "ready":
                return True
            await asyncio.sleep(_PAUSE_S)
        return False

    async def _signed_in_at(self, server: str, scope: Scope) -> float | None:
        """Return when the sign-in of a user began, which differs from one to the next, or None if there is none."""
        accounts = self._scout.servers.accounts
        found = await accounts.stored.look_up(scope, server) if accounts is not None else None
        return found.signed_in_at if isinstance(found, Account) else None


async def _accepts(upstream: Upstream, link: str, error: SignInRequiredError) -> bool:
    question = {
        "mode": "url",
        "elicitationId": secrets.token_urlsafe(16),
        "url": link,
        "message": error.message.removesuffix("; nothing was sent"),
    }
    return (await upstream.ask(_ASK, question)).get("action") == "accept"
