"""One entry of a config file in, one ServerConfig out: the host's fields, then those under `toolscout`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolscout.config.files import ConfigFile, read_text
from toolscout.config.server_config import OAuthConfig, OwnCredentials, ServerConfig, Transport
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
    title: str, entry: Any, document: ConfigFile, variables: Variables, note: Callable[[str], None]
) -> ServerConfig:
    """Read one server; the variables of one that is switched off are left as they stand."""
    fields = Fields(entry, f"{document.file}: server {title!r}")
    own = fields.child("toolscout")
    enabled = not fields.flag("disabled") and fields.flag("enabled") is not False and own.flag("enabled") is not False

    def filled(text: str, field: str) -> str:
        if unknown_references(text):
            note(f"{fields.at(field)} holds a ${{...}} that is no variable; it is left as it is")
        text = variables.expand(text, fields.at(field)) if enabled else text
        if _UNWRITABLE.search(text) and not _MULTILINE.match(field):
            raise ConfigError(f"{fields.at(field)} holds a line break", hint="look at the variables that it names")
        if "\0" in text:
            raise ConfigError(f"{fields.at(field)} holds a NUL character", hint="look at the variables that it names")
        return text

    transport, guessed = _transport(fields)
    timeout_s = own.number("timeout_s") or _host_timeout_s(fields, Path(document.file).name)
    command, url, cwd = fields.text("command"), fields.text(*_URLS), fields.text("cwd")
    server = ServerConfig(
        title=title,
        transport=transport,
        transport_guessed=guessed,
        command=filled(command, "command") if command and transport == "stdio" else "",
        args=tuple(filled(text, f"args[{number}]") for number, text in enumerate(fields.texts("args"))),
        env=_environment(fields, variables, filled, enabled=enabled),
        cwd=filled(cwd, "cwd") if cwd else None,
        url=filled(url, "url") if url and transport != "stdio" else "",
        headers=_headers(fields, filled),
        oauth=_oauth(own, filled),
        timeout_s=timeout_s or 30.0,
        concurrency=_whole(own, "concurrency") or 8,
        enabled=enabled,
        trusted=own.flag("trusted") is not False,
        private=own.flag("private") is True,
        shared=own.flag("shared") is True,
        users=_users(own, filled),
        overlay=_overlay(own),
        tool_overlays=_tool_overlays(own),
        extra=fields.unread(),
        source=document.file,
    )
    own.finish()
    _check_url(fields, server)
    return server


def _transport(fields: Fields) -> tuple[Transport, bool]:
    """Return how to speak to the server, and whether the file left that open."""
    said = fields.text("type", "transport")
    command = fields.text("command")
    url_field = next((name for name in _URLS if fields.get(name) is not None), None)
    if said is not None:
        transport = _TRANSPORTS.get(re.sub(r"[^a-z]", "", said.lower()))
        if transport is None:
            raise ConfigError(
                f"{fields.at('type' if 'type' in fields.values else 'transport')} is not a transport that toolscout "
                "speaks",
                hint="use stdio, http or sse",
            )
        needed = "command" if transport == "stdio" else "url"
        if not (command if transport == "stdio" else url_field):
            raise ConfigError(f"{fields.at(needed)} is missing", hint=f"a server of type {said} needs one")
        return transport, False
    if command and url_field:
        raise ConfigError(f"{fields.at('type')} is missing", hint="it has a command and a URL: say stdio, http or sse")
    if command:
        return "stdio", False
    if url_field is None:
        raise ConfigError(f"{fields.where} has neither a command nor a url", hint="give it one of them")
    if url_field == "httpUrl":
        return "http", False
    path = re.split(r"[?#]", fields.text(url_field) or "")[0]
    return ("sse" if path.rstrip("/").endswith("/sse") else "http"), True


def _host_timeout_s(fields: Fields, file_name: str) -> float | None:
    """Read a host's own deadline: most hosts count milliseconds, some seconds; nobody waits 1,000 seconds."""
    seconds, timeout = fields.number("timeout_s"), fields.number("timeout")
    if seconds is not None or timeout is None:
        return seconds
    return timeout if timeout < _MILLISECONDS or file_name in _SECONDS_FILES else timeout / 1_000


def _environment(
    fields: Fields, variables: Variables, filled: Callable[[str, str], str], *, enabled: bool
) -> dict[str, str]:
    """Return what the process gets: a file of variables, those handed on by name, those written out."""
    env: dict[str, str] = {}
    file = fields.text("envFile")
    if file and enabled:
        env.update(_env_file(filled(file, "envFile"), variables.workspace, fields.at("envFile")))
    for item in fields.items("env_vars"):
        name = str(item.get("name")) if isinstance(item, Mapping) else str(item)
        if name in variables.environ:
            env[name] = variables.environ[name]
    return {**env, **_variables(fields, filled)}


def _env_file(path: str, workspace: str, where: str) -> dict[str, str]:
    try:
        lines = read_text(Path(workspace) / path).splitlines()
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from None
    env: dict[str, str] = {}
    for line in lines:
        found = _ASSIGNMENT.fullmatch(line)
        if found:
            text = found[2]
            quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
            env[found[1]] = text[1:-1] if quoted else re.sub(r"\s+#.*", "", text)
    return env


def _headers(fields: Fields, filled: Callable[[str, str], str], place: str = "") -> dict[str, str]:
    headers = fields.pairs("headers")
    for name in headers:
        if not _HEADER.fullmatch(name):
            raise ConfigError(f"{fields.at('headers')} holds a name that no header can have", hint="use letters and -")
    return {name: filled(text, f"{place}headers.{name}") for name, text in headers.items()}


def _variables(fields: Fields, filled: Callable[[str, str], str], place: str = "") -> dict[str, str]:
    env = fields.pairs("env")
    for name in env:
        if not name or "=" in name or "\0" in name:
            raise ConfigError(f"{fields.at('env')} holds a name that no process can have", hint="look for = or NUL")
    return {name: filled(text, f"{place}env.{name}") for name, text in env.items()}


def _users(own: Fields, filled: Callable[[str, str], str]) -> dict[str, OwnCredentials]:
    """Read the credentials of single users; another tenant's stand under `TENANT/USER`."""
    users: dict[str, OwnCredentials] = {}
    for name, values in own.child("users").values.items():
        place = f"toolscout.users.{name}."
        fields = Fields(values, own.at("users", name))
        users[name] = OwnCredentials(headers=_headers(fields, filled, place), env=_variables(fields, filled, place))
        fields.finish()
    return users


def _check_url(fields: Fields, server: ServerConfig) -> None:
    """Refuse what is no web address; the message shows none of it, since a URL may carry a secret."""
    if server.transport == "stdio" or not server.enabled:
        return
    try:
        parts = urlsplit(server.url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or (parts.port or 1) < 1
    except ValueError:
        wrong = True
    if wrong:
        raise ConfigError(f"{fields.at('url')} must be an http:// or https:// address with a host", hint="correct it")


def _oauth(own: Fields, filled: Callable[[str, str], str]) -> OAuthConfig | None:
    if own.get("oauth") is None:
        return None
    fields = own.child("oauth")

    def text(name: str) -> str | None:
        value = fields.text(name)
        return filled(value, f"toolscout.oauth.{name}") if value else None

    oauth = OAuthConfig(
        client_id=text("client_id") or "",
        client_secret=text("client_secret") or "",
        token_url=text("token_url"),
        scopes=fields.texts("scopes"),
        token_file=text("token_file"),
    )
    fields.finish()
    if not oauth.token_file and not (oauth.client_id and oauth.client_secret):
        missing = "client_secret" if oauth.client_id else "client_id"
        raise ConfigError(f"{fields.at(missing)} is missing", hint="give client_id and client_secret, or a token_file")
    return oauth


def _overlay(own: Fields) -> Overlay:
    return Overlay(
        description=own.text("description"),
        category=own.text("category"),
        tags=own.texts("tags"),
        keywords=own.texts("keywords"),
        examples=own.items("examples"),
        related=own.texts("related"),
    )


def _tool_overlays(own: Fields) -> dict[str, Overlay]:
    overlays: dict[str, Overlay] = {}
    tools = own.child("tools")
    for name, values in tools.values.items():
        fields = Fields(values, tools.at(name))
        overlays[name] = replace(_overlay(fields), enabled=fields.flag("enabled"), trusted=fields.flag("trusted"))
        fields.finish()
    return overlays


def _whole(own: Fields, name: str) -> int | None:
    value = own.number(name)
    if value is not None and value != int(value):
        raise own.wrong_type(name, "a whole number")
    return None if value is None else int(value)
