"""The formats of all hosts are read into the same ServerConfig."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolscout.config import ServerConfig, read_config

HOST_ENTRIES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "claude-desktop",
        {"mcpServers": {"s": {"command": "npx", "args": ["-y", "pkg"], "env": {"A": "b"}}}},
        {"transport": "stdio", "command": "npx", "args": ("-y", "pkg"), "env": {"A": "b"}},
    ),
    (
        "claude-code http",
        {"mcpServers": {"s": {"type": "http", "url": "https://a.b/mcp", "headers": {"X-Key": "k"}}}},
        {"transport": "http", "url": "https://a.b/mcp", "headers": {"X-Key": "k"}, "transport_guessed": False},
    ),
    (
        "cursor url",
        {"mcpServers": {"s": {"url": "https://a.b/mcp"}}},
        {"transport": "http", "url": "https://a.b/mcp", "transport_guessed": True},
    ),
    (
        "an sse url without a type",
        {"mcpServers": {"s": {"url": "https://a.b/sse?x=1"}}},
        {"transport": "sse", "transport_guessed": True},
    ),
    ("windsurf", {"mcpServers": {"s": {"serverUrl": "https://a.b/mcp"}}}, {"transport": "http"}),
    (
        "gemini",
        {"mcpServers": {"s": {"httpUrl": "https://a.b/sse", "timeout": 5000, "trust": True}}},
        {
            "transport": "http",
            "url": "https://a.b/sse",
            "timeout_s": 5.0,
            "extra": {"trust": True},
            "transport_guessed": False,
        },
    ),
    (
        "kiro",
        {"mcpServers": {"s": {"command": "uvx", "disabled": True, "autoApprove": ["t"]}}},
        {"enabled": False, "extra": {"autoApprove": ["t"]}},
    ),
    (
        "cline",
        {"mcpServers": {"s": {"type": "streamableHttp", "url": "http://a.b", "timeout": 60, "alwaysAllow": []}}},
        {"transport": "http", "timeout_s": 60.0, "extra": {"alwaysAllow": []}},
    ),
    (
        "copilot",
        {"mcpServers": {"s": {"type": "local", "command": "x", "tools": ["*"]}}},
        {"transport": "stdio", "extra": {"tools": ["*"]}},
    ),
    (
        "streamable-http",
        {"mcpServers": {"s": {"transport": "streamable-http", "url": "http://a.b"}}},
        {"transport": "http"},
    ),
    (
        "sse",
        {"mcpServers": {"s": {"type": "sse", "url": "http://a.b/x"}}},
        {"transport": "sse", "transport_guessed": False},
    ),
    (
        "vscode",
        {"servers": {"s": {"type": "stdio", "command": "x", "cwd": "/w", "dev": {}}}, "inputs": []},
        {"transport": "stdio", "cwd": "/w", "extra": {"dev": {}}},
    ),
    ("vscode settings", {"mcp": {"servers": {"s": {"command": "x"}}}}, {"command": "x"}),
    ("zed", {"context_servers": {"s": {"source": "custom", "command": "x", "args": ["y"]}}}, {"args": ("y",)}),
    (
        "older zed",
        {"context_servers": {"s": {"command": {"path": "x", "args": ["y"], "env": {"A": "b"}}}}},
        {"command": "x", "args": ("y",), "env": {"A": "b"}},
    ),
    ("zed switched off", {"context_servers": {"s": {"command": "x", "enabled": False}}}, {"enabled": False}),
    (
        "numbers where strings belong",
        {"mcpServers": {"s": {"command": "x", "args": ["--port", 80], "env": {"P": 80, "D": True, "N": None}}}},
        {"args": ("--port", "80"), "env": {"P": "80", "D": "true"}},
    ),
]


def read_one(path: Path, values: Any, environ: dict[str, str] | None = None) -> ServerConfig:
    path.write_text(values if isinstance(values, str) else json.dumps(values), "utf-8")
    (server,) = read_config(path, environ or {}).servers
    return server


@pytest.mark.parametrize(
    ("values", "expected"), [row[1:] for row in HOST_ENTRIES], ids=[row[0] for row in HOST_ENTRIES]
)
def test_each_host_is_read(tmp_path: Path, values: dict[str, Any], expected: dict[str, Any]) -> None:
    server = read_one(tmp_path / "mcp.json", values)
    assert (server.title, server.source) == ("s", str(tmp_path / "mcp.json"))
    assert {name: getattr(server, name) for name in expected} == expected


def test_a_server_has_sensible_defaults(tmp_path: Path) -> None:
    server = read_one(tmp_path / "mcp.json", {"mcpServers": {"My Server": {"command": "x"}}})
    assert (server.timeout_s, server.concurrency, server.enabled, server.trusted) == (None, 8, True, True)
    assert (server.private, server.shared, server.oauth, server.extra) == (False, False, None, {})
    assert (server.server.key, server.server.title, server.server.trusted) == ("My-Server", "My Server", True)


def test_codex_takes_its_secrets_from_the_environment(tmp_path: Path) -> None:
    text = """
        model = "x"
        [mcp_servers.local]
        command = "npx"
        env = { A = "b" }
        env_vars = ["KEY", "ABSENT", { name = "OTHER", source = "local" }]
        tool_timeout_sec = 90
        startup_timeout_sec = 5
        [mcp_servers.remote]
        url = "https://a.b/mcp"
        bearer_token_env_var = "TOKEN"
        http_headers = { X-Region = "eu" }
        env_http_headers = { X-Key = "KEY" }
        [mcp_servers.off]
        command = "x"
        enabled = false
    """
    path = tmp_path / "config.toml"
    path.write_text(text, "utf-8")
    local, remote, off = read_config(path, {"TOKEN": "t", "KEY": "k", "OTHER": "o"}).servers
    assert local.env == {"A": "b", "KEY": "k", "OTHER": "o"}
    assert (local.timeout_s, local.extra) == (90.0, {"startup_timeout_sec": 5})
    assert remote.headers == {"X-Region": "eu", "X-Key": "k", "Authorization": "Bearer t"}
    assert not off.enabled


def test_cline_counts_its_timeout_in_seconds(tmp_path: Path) -> None:
    server = read_one(tmp_path / "cline_mcp_settings.json", {"mcpServers": {"s": {"command": "x", "timeout": 1800}}})
    assert server.timeout_s == 1800.0


def test_comments_trailing_commas_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = '\ufeff{\n  // the servers\n  "servers": {"s": {"command": "x", /* y */ "args": ["http://z",],},},\n}\n'
    assert read_one(tmp_path / "mcp.json", text).args == ("http://z",)


def test_a_file_of_variables_is_read_and_written_values_win(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# c\nA=1\nexport B = 'two words'\nC=3 # why\n\nD=\"4\"\n", "utf-8")
    entry = {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"A": "9"}}
    server = read_one(tmp_path / "mcp.json", {"servers": {"s": entry}})
    assert server.env == {"A": "9", "B": "two words", "C": "3", "D": "4"}


def test_the_fields_under_toolscout_say_what_the_server_does_not(tmp_path: Path) -> None:
    own = {
        "tags": ["code"],
        "category": "development",
        "keywords": ["forge"],
        "related": ["git__log"],
        "examples": ["open an issue"],
        "description": "our forge",
        "trusted": False,
        "private": True,
        "shared": True,
        "timeout_s": 5,
        "concurrency": 2,
        "oauth": {"client_id": "id", "client_secret": "${SECRET}", "scopes": ["a", "b"]},
        "tools": {"delete": {"enabled": False, "trusted": True, "tags": ["danger"]}},
    }
    entry = {"url": "https://a.b/mcp", "timeout": 9000, "toolscout": own}
    server = read_one(tmp_path / "mcp.json", {"mcpServers": {"s": entry}}, {"SECRET": "sss"})
    assert (server.trusted, server.private, server.shared) == (False, True, True)
    assert (server.timeout_s, server.concurrency) == (5.0, 2)
    assert server.oauth is not None
    assert (server.oauth.client_id, server.oauth.client_secret, server.oauth.scopes) == ("id", "sss", ("a", "b"))
    overlay = server.overlay
    assert (overlay.tags, overlay.category, overlay.keywords) == (("code",), "development", ("forge",))
    assert (overlay.related, overlay.examples, overlay.description) == (("git__log",), ("open an issue",), "our forge")
    delete = server.server.tool_overlays["delete"]
    assert (delete.enabled, delete.trusted, delete.tags) == (False, True, ("danger",))


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "toolscout", "args": ["serve"]},
        {"command": "/opt/bin/toolscout"},
        {"command": "C:\\bin\\Toolscout.exe"},
        {"command": "python", "args": ["-m", "toolscout", "serve"]},
        {"command": "uvx", "args": ["toolscout[openai]", "serve"]},
        {"command": "pipx", "args": ["run", "toolscout==1.0", "serve"]},
    ],
)
def test_toolscout_itself_is_skipped_with_a_note(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"me": entry, "other": {"command": "toolscout-like"}}}), "utf-8")
    config = read_config(path, {})
    assert [server.title for server in config.servers] == ["other"]
    assert config.notes == (f"{path}: server 'me' is toolscout itself and is skipped",)


def test_what_an_extension_starts_is_skipped_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"context_servers": {"e": {"source": "extension", "settings": {}}}}), "utf-8")
    config = read_config(path, {})
    assert config.servers == ()
    assert config.notes == (f"{path}: server 'e' is started by an extension of its host and is skipped",)
