"""What a config file says, as data. Whatever may hold a secret is left out of every repr."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolscout.models import LOCAL, Caller, Overlay, Server
from toolscout.tool_keys import server_slug

Transport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthConfig:
    """How toolscout authorizes itself at a server: client credentials, or a token that is kept in a file."""

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    token_url: str | None = None
    """Where tokens are given out; None means that the server's own metadata says it."""
    scopes: tuple[str, ...] = ()
    token_file: str | None = None
    """A file that holds a token; the client's credentials, where there are some, renew it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCredentials:
    """What a server gets for one user, over what it gets for everyone."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One server as the operator wrote it down, with its variables filled in."""

    title: str
    """The name in the config file, as spelt."""
    transport: Transport
    transport_guessed: bool = False
    """Whether the file gives a URL without saying how to speak to it, so that `http` may turn out to be `sse`."""
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: OAuthConfig | None = None
    timeout_s: float = 30.0
    concurrency: int = 8
    enabled: bool = True
    """Whether it is used at all; the variables of a server that is not are left as they stand."""
    trusted: bool = True
    private: bool = False
    """Whether its URL may lead to loopback and private addresses."""
    shared: bool = False
    """Whether tenants may share one live session."""
    users: Mapping[str, OwnCredentials] = field(default_factory=dict, repr=False)
    """Users with credentials of their own, by `USER` for those of the local tenant, by `TENANT/USER` for others."""
    overlay: Overlay = field(default_factory=Overlay)
    tool_overlays: Mapping[str, Overlay] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Fields of the host that toolscout does not read."""
    source: str = ""
    """The file that it came from."""

    def own(self, caller: Caller) -> ServerConfig | None:
        """Return this config with the caller's own credentials; None for those who have none."""
        # A name with a slash in it could pass for another tenant's user.
        if caller.user is None or "/" in caller.tenant + caller.user:
            return None
        found = self.users.get(caller.user if caller.tenant == LOCAL else f"{caller.tenant}/{caller.user}")
        if found is None:
            return None
        return replace(self, headers={**self.headers, **found.headers}, env={**self.env, **found.env})

    @property
    def server(self) -> Server:
        """Return the server as the catalogue knows it."""
        return Server(
            key=server_slug(self.title),
            title=self.title,
            trusted=self.trusted,
            overlay=self.overlay,
            tool_overlays=self.tool_overlays,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that the config files say, merged."""

    servers: tuple[ServerConfig, ...] = ()
    core: tuple[str, ...] = ()
    """Keys of tools that are always listed."""
    surface: str | None = None
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the operator may want to know: a server replaced, skipped, or written with an unknown variable."""
