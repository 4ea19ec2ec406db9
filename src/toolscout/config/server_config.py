"""The content of config files as data. Fields that may contain a secret are not part of any repr."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolscout.models import LOCAL, Caller, Overlay, Server
from toolscout.tool_keys import server_slug

Transport = Literal["stdio", "http", "sse"]

GrantType = Literal["client_credentials", "authorization_code", "token_exchange", "on_behalf_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthConfig:
    """How toolscout authenticates to a server: as itself, as somebody who signs in, or as the caller.

    As itself, it uses client credentials or a token from a file. For somebody who signs in, this names a client that
    the issuer knows already, and the issuer. As the caller, it exchanges the caller's token at the issuer.
    """

    grant_type: GrantType = "client_credentials"

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    token_url: str | None = None
    """The token endpoint. None means that the metadata of the issuer names it."""
    scopes: tuple[str, ...] = ()
    token_file: str | None = None
    """A file with a token. Client credentials, if there are any, renew it."""
    issuer: str | None = None
    """The only issuer at which the gateway gets its token, people sign in, or tokens of callers are exchanged.

    It may have a private address if the server's may.
    """
    audience: str | None = None
    """What the issuer calls the server, in an exchange. None means the server's address, as its `resource`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCredentials:
    """Headers and variables for one user. They override those of the server."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One server of a config file, with its variables filled in."""

    title: str
    """The name in the config file."""
    transport: Transport
    transport_guessed: bool = False
    """Whether the file has a URL without a transport. The server may then use `sse` instead of `http`."""
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: OAuthConfig | None = None
    timeout_s: float | None = None
    """How long a call may take. None means the setting `TOOLSCOUT_CALL_TIMEOUT_S`."""
    concurrency: int = 8
    """The most calls of one tenant that are sent to it at once."""
    enabled: bool = True
    """Whether the server is used. The variables of a disabled server are not filled in."""
    trusted: bool = True
    """Whether its declarations are believed. By default those of a command are, and those of a URL are not."""
    private: bool = False
    """Whether its URL may resolve to loopback and private addresses."""
    shared: bool = False
    """Whether tenants may share one live session."""
    tenants: tuple[str, ...] | Literal["all"] | None = None
    """The tenants that it is indexed for and that may call it. None means that it is indexed for the local tenant.
    Other tenants may then call it if its tools were indexed for them by hand."""
    users: Mapping[str, UserCredentials] = field(default_factory=dict, repr=False)
    """The credentials of single users, by `USER` in the local tenant and by `TENANT/USER` in others."""
    per_user: bool = False
    """Whether the tools that the server lists for a user are theirs alone. Each user has a token of their own: they
    sign in for themselves, or their token is exchanged."""
    overlay: Overlay = field(default_factory=Overlay)
    tool_overlays: Mapping[str, Overlay] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Fields of the host that toolscout does not read."""
    source: str = ""
    """The file that lists the server."""
    problem: str = ""
    """Why the entry cannot be used, when the config was read with `partial`. The server is then down."""
    problem_hint: str = ""

    def for_user(self, caller: Caller) -> ServerConfig | None:
        """Return this config with the caller's own credentials, or None if the caller has none."""
        # A name with a slash could be mistaken for a user of another tenant.
        if caller.user is None or "/" in caller.tenant + caller.user:
            return None
        credentials = self.users.get(caller.user if caller.tenant == LOCAL else f"{caller.tenant}/{caller.user}")
        if credentials is None:
            return None
        return replace(self, headers={**self.headers, **credentials.headers}, env={**self.env, **credentials.env})

    @property
    def allows_sign_in(self) -> bool:
        """Whether people can sign in to it: it is behind a URL, and the config gives it no other credentials."""
        return self.takes_tokens and (self.oauth is None or self.oauth.grant_type == "authorization_code")

    @property
    def takes_tokens(self) -> bool:
        """Whether requests can carry a token: it is behind a URL, and the config has no Authorization header for it."""
        return self.transport != "stdio" and not any(name.lower() == "authorization" for name in self.headers)

    @property
    def users_sign_in(self) -> bool:
        """Whether each user signs in for themselves."""
        return self.per_user and self.allows_sign_in

    @property
    def exchanges_tokens(self) -> bool:
        """Whether calls carry a token that was given in exchange for the caller's own."""
        return self.oauth is not None and self.oauth.grant_type in ("token_exchange", "on_behalf_of")

    @property
    def server(self) -> Server:
        """The server as it is stored in the catalogue."""
        return Server(
            key=server_slug(self.title),
            title=self.title,
            trusted=self.trusted,
            overlay=self.overlay,
            tool_overlays=self.tool_overlays,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The merged content of all config files."""

    servers: tuple[ServerConfig, ...] = ()
    core: tuple[str, ...] = ()
    """Keys of tools that are always listed."""
    surface: str | None = None
    categories: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the operator's own categories, by name."""
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the operator: a server was replaced or skipped, or has an unknown variable."""
