"""What stands behind the servers of the catalogue: those of a config, and those that were indexed by hand."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from toolscout.config import Config
from toolscout.errors import ServerUnavailableError
from toolscout.models import Caller, Scope
from toolscout.ports import Store, ToolSource
from toolscout.settings import Settings

if TYPE_CHECKING:
    from toolscout.scout.sync import CatalogueSync, Index, Remove

_EVERYONE = Scope()


class Sources:
    """By scope and slug, what lists and calls the tools of a server."""

    def __init__(self) -> None:
        """Begin with nothing behind anything."""
        self.live: CatalogueSync | None = None
        self._by_hand: dict[tuple[Scope, str], ToolSource] = {}

    async def connect(
        self,
        config: Config,
        *,
        store: Store,
        settings: Settings,
        index: Index,
        remove: Remove,
        after: Awaitable[object] | None = None,
    ) -> CatalogueSync:
        """Begin to connect the servers of a config, once `after` has come, or follow its edit; return at once."""
        if self.live:
            await self.live.apply(config)
            return self.live

        from toolscout.scout.leases import Leases
        from toolscout.scout.sync import CatalogueSync

        known = {server.key: server.title for server in await store.servers(_EVERYONE)}
        turns = Leases(store, _EVERYONE, settings)
        self.live = CatalogueSync(config, settings, known=known, index=index, remove=remove, turns=turns)
        await self.live.start(after)
        return self.live

    def keep(self, scope: Scope, server: str, source: ToolSource) -> None:
        """Remember what was indexed by hand, so that it can be called and asked again."""
        self._by_hand[scope, server] = source

    def forget(self, scope: Scope, server: str | None = None) -> None:
        """Forget one server of a scope, or all of them."""
        for key in [key for key in self._by_hand if key[0] == scope and server in (None, key[1])]:
            del self._by_hand[key]

    def by_hand(self, scope: Scope) -> list[ToolSource]:
        """Return what was indexed by hand for a scope."""
        return [source for key, source in self._by_hand.items() if key[0] == scope]

    def behind(self, scope: Scope, server: str) -> ToolSource:
        """Return what stands behind a server, or say that nothing does."""
        source = self._by_hand.get((scope, server))
        if source is None and self.live and scope.owner is None:
            source = self.live.server(server)
        if source is None:
            raise ServerUnavailableError(
                f"no server {server} is connected",
                hint="name the config that lists it, as in Scout.open('mcp.json'), or index what can call its tools",
            )
        return source

    @property
    def caller(self) -> Caller:
        """Return who asks when nobody is named: the local user, who reaches the servers of the config."""
        if self.live is None:
            return Caller()
        return Caller(servers=self.live.keys | {server for scope, server in self._by_hand if scope == _EVERYONE})

    @property
    def down(self) -> frozenset[str]:
        """Return the slugs of the servers that are down."""
        return self.live.unavailable() if self.live else frozenset()

    @property
    def core(self) -> tuple[str, ...]:
        """Return the keys of the tools that the config wants always listed."""
        return self.live.core if self.live else ()
