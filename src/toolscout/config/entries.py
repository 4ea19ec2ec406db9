"""Reads one entry of a config file into a ServerConfig: the host's fields, then those under `toolscout`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from toolscout.config.files import ConfigFile, read_text
from toolscout.config.server_config import GrantType, OAuthConfig, ServerConfig, Transport, UserCredentials
from toolscout.config.tool_filters import merge_overlays, read_filters
from toolscout.config.variables import Variables, unknown_references
from toolscout.errors import ConfigError
from toolscout.fields import Fields
from toolscout.models import Overlay

_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "sse": "sse",
}
_URLS = ("httpUrl", "url", "serverUrl")
_MILLISECONDS = 1_000
_SECONDS_FILES = frozenset({"cline_mcp_settings.json", "mcp_settings.json"})
_UNWRITABLE = re.compile(r"[\x00\r\n]")
_MULTILINE = re.compile(r"args|env|toolscout\.users\..*\.env\.", re.S)
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.A)


def read_entry(
    title: str, entry: Any, config_file: ConfigFile, variables: Variables, note: Callable[[str], None]
) -> ServerConfig:
    """Read one server. If it is disabled, its variables are not filled in, so they may be missing."""
    fields = Fields(entry, f"{config_file.file}: server {title!r}")
    options = fields.child("toolscout")
    enabled = (
        not fields.flag("disabled") and fields.flag("enabled") is not False and options.flag("enabled") is not False
    )

    def expand(text: str, field: str) -> str:
        if unknown_references(text):
            note(f"{fields.at(field)} contains a ${{...}} that is not a variable and is left unchanged")
        text = variables.expand(text, fields.at(field)) if enabled else text
        if _UNWRITABLE.search(text) and not _MULTILINE.match(field):
            raise ConfigError(f"{fields.at(field)} contains a line break", hint="check the variables that it refers to")
        if "\0" in text:
            raise ConfigError(
                f"{fields.at(field)} contains a NUL character", hint="check the variables that it refers to"
            )
        return text

    transport, guessed = _transport(fields)
    timeout_s = options.number("timeout_s") or _host_timeout_s(fields, Path(config_file.file).name)
    command, url, cwd = fields.text("command"), fields.text(*_URLS), fields.text("cwd")
    server = ServerConfig(
        title=title,
        transport=transport,
        transport_guessed=guessed,
        command=expand(command, "command") if command and transport == "stdio" else "",
        args=tuple(expand(text, f"args[{number}]") for number, text in enumerate(fields.texts("args"))),
        env=_environment(fields, variables, expand, enabled=enabled),
        cwd=expand(cwd, "cwd") if cwd else None,
        url=expand(url, "url") if url and transport != "stdio" else "",
        headers=_headers(fields, expand),
        oauth=_oauth(options, expand),
        timeout_s=timeout_s,
        concurrency=_whole_number(options, "concurrency") or 8,
        enabled=enabled,
        # A command of the operator's own file runs with the operator's rights anyway. A URL is somebody else's program.
        trusted=transport == "stdio" if (trusted := options.flag("trusted")) is None else trusted,
        private=options.flag("private") is True,
        shared=options.flag("shared") is True,
        tenants=_tenants(options),
        users=_users(options, expand),
        per_user=options.flag("per_user") is True,
        overlay=_overlay(options),
        tool_overlays=merge_overlays(read_filters(entry, fields.where), _tool_overlays(options)),
        extra=fields.unread(),
        source=config_file.file,
    )
    options.finish()
    if server.exchanges_tokens and not server.takes_tokens:
        raise ConfigError(
            f"{options.at('oauth')} exchanges tokens for a server that gets none",
            hint="it needs a url, and no Authorization header of its own",
        )
    if server.per_user and not (server.allows_sign_in or server.exchanges_tokens):
        raise ConfigError(
            f"{options.at('per_user')} is set, but nobody can sign in to this server",
            hint="it needs a url, and neither credentials nor an Authorization header of its own",
        )
    _check_url(fields, server)
    return server


def _transport(fields: Fields) -> tuple[Transport, bool]:
    """Return the transport of the server, and whether it had to be guessed."""
    transport_name = fields.text("type", "transport")
    command = fields.text("command")
    url_field = next((name for name in _URLS if fields.get(name) is not None), None)
    if transport_name is not None:
        transport = _TRANSPORTS.get(re.sub(r"[^a-z]", "", transport_name.lower()))
        if transport is None:
            raise ConfigError(
                f"{fields.at('type' if 'type' in fields.values else 'transport')} is not a transport that toolscout "
                "supports",
                hint="use stdio, http or sse",
            )
        needed = "command" if transport == "stdio" else "url"
        if not (command if transport == "stdio" else url_field):
            raise ConfigError(f"{fields.at(needed)} is missing", hint=f"a server of type {transport_name} needs one")
        return transport, False
    if command and url_field:
        raise ConfigError(
            f"{fields.at('type')} is missing",
            hint="the entry has a command and a URL: add a type, one of stdio, http or sse",
        )
    if command:
        return "stdio", False
    if url_field is None:
        raise ConfigError(f"{fields.where} has neither a command nor a url", hint="add one of them")
    if url_field == "httpUrl":
        return "http", False
    path = re.split(r"[?#]", fields.text(url_field) or "")[0]
    return ("sse" if path.rstrip("/").endswith("/sse") else "http"), True


def _host_timeout_s(fields: Fields, file_name: str) -> float | None:
    """Read the host's timeout. Most hosts use milliseconds, some use seconds, and no host waits 1,000 seconds."""
    seconds, timeout = fields.number("timeout_s"), fields.number("timeout")
    if seconds is not None or timeout is None:
        return seconds
    return timeout if timeout < _MILLISECONDS or file_name in _SECONDS_FILES else timeout / 1_000


def _environment(
    fields: Fields, variables: Variables, expand: Callable[[str, str], str], *, enabled: bool
) -> dict[str, str]:
    """Return the environment of the process. Values in `env` override inherited ones, and those override `envFile`."""
    env: dict[str, str] = {}
    file = fields.text("envFile")
    if file and enabled:
        env.update(_env_file(expand(file, "envFile"), variables.workspace, fields.at("envFile")))
    for item in fields.items("env_vars"):
        name = str(item.get("name")) if isinstance(item, Mapping) else str(item)
        if name in variables.environ:
            env[name] = variables.environ[name]
    return {**env, **_variables(fields, expand)}


def _env_file(path: str, workspace: str, where: str) -> dict[str, str]:
    try:
        lines = read_text(Path(workspace) / path).splitlines()
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from None
    env: dict[str, str] = {}
    for line in lines:
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment:
            name, text = assignment.groups()
            quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
            env[name] = text[1:-1] if quoted else re.sub(r"\s+#.*", "", text)
    return env


def _headers(fields: Fields, expand: Callable[[str, str], str], parent: str = "") -> dict[str, str]:
    headers = fields.pairs("headers")
    for name in headers:
        if not _HEADER.fullmatch(name):
            raise ConfigError(f"{fields.at('headers')} contains an invalid header name", hint="use letters and -")
    return {name: expand(text, f"{parent}headers.{name}") for name, text in headers.items()}


def _variables(fields: Fields, expand: Callable[[str, str], str], parent: str = "") -> dict[str, str]:
    env = fields.pairs("env")
    for name in env:
        if not name or "=" in name or "\0" in name:
            raise ConfigError(
                f"{fields.at('env')} contains an invalid variable name", hint="a name is not empty and has no = or NUL"
            )
    return {name: expand(text, f"{parent}env.{name}") for name, text in env.items()}


def _tenants(options: Fields) -> tuple[str, ...] | Literal["all"] | None:
    """Read the tenants that a server belongs to: a list of their names, or `"all"`."""
    value = options.get("tenants")
    if value is None or value == "all":
        return "all" if value else None
    if not isinstance(value, list) or not value:
        raise options.wrong_type("tenants", 'a list of tenants, or "all"')
    tenants = options.texts("tenants")
    if not all(tenants):
        raise ConfigError(f"{options.at('tenants')} contains an empty name", hint='name the tenants, or use "all"')
    return tuple(dict.fromkeys(tenants))


def _users(options: Fields, expand: Callable[[str, str], str]) -> dict[str, UserCredentials]:
    """Read the credentials of single users: `USER` in the local tenant, `TENANT/USER` in others."""
    users: dict[str, UserCredentials] = {}
    for name, values in options.child("users").values.items():
        parent = f"toolscout.users.{name}."
        fields = Fields(values, options.at("users", name))
        users[name] = UserCredentials(headers=_headers(fields, expand, parent), env=_variables(fields, expand, parent))
        fields.finish()
    return users


def _check_url(fields: Fields, server: ServerConfig) -> None:
    """Refuse a URL that is not a web address. The message does not show the URL, which may contain a secret."""
    if server.transport == "stdio" or not server.enabled:
        return
    try:
        parts = urlsplit(server.url)
        invalid = parts.scheme not in ("http", "https") or not parts.hostname or (parts.port or 1) < 1
    except ValueError:
        invalid = True
    if invalid:
        raise ConfigError(
            f"{fields.at('url')} must be an http:// or https:// address with a host", hint="correct the URL"
        )


def _oauth(options: Fields, expand: Callable[[str, str], str]) -> OAuthConfig | None:
    if options.get("oauth") is None:
        return None
    fields = options.child("oauth")

    def text(name: str) -> str | None:
        value = fields.text(name)
        return expand(value, f"toolscout.oauth.{name}") if value else None

    client_id, client_secret, token_file = text("client_id"), text("client_secret"), text("token_file")
    grant_type = fields.text("grant_type") or (
        "client_credentials" if client_secret or token_file else "authorization_code"
    )
    if grant_type not in get_args(GrantType):
        raise ConfigError(
            f"{fields.at('grant_type')} is not one that toolscout knows", hint=f"use {', '.join(get_args(GrantType))}"
        )
    oauth = OAuthConfig(
        grant_type=cast("GrantType", grant_type),
        client_id=client_id or "",
        client_secret=client_secret or "",
        token_url=text("token_url"),
        scopes=fields.texts("scopes"),
        token_file=token_file,
        issuer=text("issuer"),
        audience=text("audience"),
    )
    fields.finish()
    if oauth.grant_type == "on_behalf_of" and not oauth.scopes:
        raise ConfigError(f"{fields.at('scopes')} is missing", hint="name a scope of the server: it is the audience")
    if oauth.grant_type in ("token_exchange", "on_behalf_of") and oauth.token_file:
        raise ConfigError(f"{fields.at('token_file')} is of no use here", hint="remove it")
    signs_in = oauth.grant_type == "authorization_code" and (oauth.client_id or not oauth.client_secret)
    if not signs_in and not oauth.token_file and not (oauth.client_id and oauth.client_secret):
        missing = "client_secret" if oauth.client_id else "client_id"
        raise ConfigError(f"{fields.at(missing)} is missing", hint="set client_id and client_secret, or token_file")
    if signs_in and oauth.client_secret and not oauth.issuer:
        raise ConfigError(
            f"{fields.at('issuer')} is missing", hint="name the issuer that knows the client: it alone gets the secret"
        )
    return oauth


def _overlay(fields: Fields) -> Overlay:
    return Overlay(
        description=fields.text("description"),
        category=fields.text("category"),
        tags=fields.texts("tags"),
        keywords=fields.texts("keywords"),
        examples=fields.items("examples"),
        related=fields.texts("related"),
    )


def _tool_overlays(options: Fields) -> dict[str, Overlay]:
    overlays: dict[str, Overlay] = {}
    tools = options.child("tools")
    for name, values in tools.values.items():
        fields = Fields(values, tools.at(name))
        overlays[name] = replace(_overlay(fields), enabled=fields.flag("enabled"), trusted=fields.flag("trusted"))
        fields.finish()
    return overlays


def _whole_number(fields: Fields, name: str) -> int | None:
    value = fields.number(name)
    if value is not None and value != int(value):
        raise fields.wrong_type(name, "a whole number")
    return None if value is None else int(value)
