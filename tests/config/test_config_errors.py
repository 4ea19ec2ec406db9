"""Errors in a config file name the place, and never show a value that may be secret."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolscout import ConfigError
from toolscout.config import read_config
from toolscout.errors import to_wire

CANARY = "c4n4ry"


def fail(path: Path, values: Any, environ: dict[str, str] | None = None) -> ConfigError:
    path.write_text(values if isinstance(values, str) else json.dumps(values), "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_config(path, environ or {})
    assert (caught.value.code, caught.value.exit_code) == ("config", 2)
    return caught.value


CLIENT = {"client_id": "i", "client_secret": "s"}
ENTRIES: list[tuple[Any, str]] = [
    ("x", " must be an object, not a string"),
    ({}, " has neither a command nor a url"),
    ({"command": 3}, ": command must be a string, not a number"),
    ({"command": "x", "args": "-y"}, ": args must be a list of strings, not a string"),
    ({"command": "x", "args": ["a", {}]}, ": args[1] must be a string, not an object"),
    ({"command": "x", "env": []}, ": env must be an object of strings, not a list"),
    ({"command": "x", "env": {"A": []}}, ": env.A must be a string, not a list"),
    ({"command": "x", "env": {"A=B": "c"}}, ": env contains an invalid variable name"),
    ({"command": "x", "disabled": "yes"}, ": disabled must be true or false, not a string"),
    ({"command": "x", "timeout": True}, ": timeout must be a number, not true or false"),
    ({"command": "x", "timeout": -1}, ": timeout must be a number above 0"),
    ({"command": "x", "url": "http://a.b"}, ": type is missing"),
    ({"type": "http", "command": "x"}, ": url is missing"),
    ({"type": "stdio", "url": "http://a.b"}, ": command is missing"),
    ({"type": "ws", "url": "ws://a.b"}, ": type is not a transport that toolscout supports"),
    ({"transport": "ws", "url": "ws://a.b"}, ": transport is not a transport that toolscout supports"),
    ({"url": "file:///etc"}, ": url must be an http:// or https:// address with a host"),
    ({"url": "https:///x"}, ": url must be an http:// or https:// address with a host"),
    ({"url": "http://[x"}, ": url must be an http:// or https:// address with a host"),
    ({"url": "http://a.b:99999"}, ": url must be an http:// or https:// address with a host"),
    ({"url": "http://a.b", "headers": {"X Y": "z"}}, ": headers contains an invalid header name"),
    ({"url": "http://a.b", "headers": {"X": "a\r\nY: b"}}, ": headers.X contains a line break"),
    ({"command": "x", "args": ["a\0b"]}, ": args[0] contains a NUL character"),
    ({"command": "x", "envFile": "/absent/.env"}, ": envFile: /absent/.env cannot be read: No such file or directory"),
    ({"command": "x", "toolscout": []}, ": toolscout must be an object, not a list"),
    ({"command": "x", "toolscout": {"tags": "a"}}, ": toolscout: tags must be a list of strings, not a string"),
    ({"command": "x", "toolscout": {"tag": ["a"]}}, ": toolscout: tag is not a field that toolscout knows"),
    (
        {"command": "x", "toolscout": {"concurrency": 1.5}},
        ": toolscout: concurrency must be a whole number, not a number",
    ),
    (
        {"command": "x", "toolscout": {"tools": {"t": {"enable": False}}}},
        ": toolscout: tools: t: enable is not a field that toolscout knows",
    ),
    (
        {"url": "http://a.b", "toolscout": {"oauth": {"client_secret": "s"}}},
        ": toolscout: oauth: client_id is missing",
    ),
    (
        {"url": "http://a.b", "toolscout": {"oauth": {"grant_type": "password"}}},
        ": toolscout: oauth: grant_type is not one that toolscout knows",
    ),
    (
        {"url": "http://a.b", "toolscout": {"oauth": {"client_id": "i", "grant_type": "client_credentials"}}},
        ": toolscout: oauth: client_secret is missing",
    ),
    (
        {"url": "http://a.b", "toolscout": {"oauth": {"client_id": "i", "grant_type": "token_exchange"}}},
        ": toolscout: oauth: client_secret is missing",
    ),
    (
        {"url": "http://a.b", "toolscout": {"oauth": {**CLIENT, "grant_type": "on_behalf_of"}}},
        ": toolscout: oauth: scopes is missing",
    ),
    (
        {"url": "http://a.b", "toolscout": {"oauth": {**CLIENT, "grant_type": "token_exchange", "token_file": "t"}}},
        ": toolscout: oauth: token_file is of no use here",
    ),
    (
        {"url": "http://a.b", "toolscout": {"oauth": {**CLIENT, "grant_type": "authorization_code"}}},
        ": toolscout: oauth: issuer is missing",
    ),
    (
        {"command": "x", "toolscout": {"oauth": {**CLIENT, "grant_type": "token_exchange"}}},
        ": toolscout: oauth exchanges tokens for a server that gets none",
    ),
    (
        {
            "url": "http://a.b",
            "headers": {"authorization": "Bearer t"},
            "toolscout": {"oauth": {**CLIENT, "grant_type": "token_exchange"}},
        },
        ": toolscout: oauth exchanges tokens for a server that gets none",
    ),
    (
        {"url": "http://a.b", "toolscout": {"per_user": True, "oauth": CLIENT}},
        ": toolscout: per_user is set, but nobody can sign in to this server",
    ),
]


@pytest.mark.parametrize(("entry", "said"), ENTRIES, ids=[said for _, said in ENTRIES])
def test_the_error_of_a_bad_entry_names_file_server_and_field(tmp_path: Path, entry: Any, said: str) -> None:
    path = tmp_path / "mcp.json"
    assert fail(path, {"mcpServers": {"good": {"command": "x"}, "bad": entry}}).message == f"{path}: server 'bad'{said}"


def test_a_misspelt_field_suggests_the_right_one(tmp_path: Path) -> None:
    error = fail(tmp_path / "mcp.json", {"mcpServers": {"s": {"command": "x", "toolscout": {"tag": []}}}})
    assert "tags" in error.suggestions


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "mcp.json",
            '{\n  "mcpServers": {\n    "s" {}\n  }\n}',
            ":3: invalid JSON: Expecting ':' delimiter (column 9)",
        ),
        ("mcp.json", "[]", ": must contain an object"),
        ("mcp.json", "", ": lists no servers"),
        ("mcp.json", '{"theme": "x"}', ": lists no servers"),
        ("mcp.json", '{"mcpServers": []}', ": mcpServers must be an object, not a list"),
        ("mcp.json", '{"mcpServers": {" ": {"command": "x"}}}', ": server ' ' has an empty name"),
        ("mcp.json", '{"toolscout": {"cores": []}}', ": toolscout: cores is not a field that toolscout knows"),
        ("mcp.json", "[" * 100_000, ": nested too deeply"),
        ("mcp.json", f'{{"a": {"9" * 5_000}}}', ": contains a number with thousands of digits"),
        ("config.toml", "a = \n", ": invalid TOML: Invalid value (at line 1, column 5)"),
    ],
)
def test_the_error_of_a_bad_file_names_the_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert fail(tmp_path / name, text).message == f"{tmp_path / name}{said}"


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.json cannot be read: No such file"):
        read_config(tmp_path / "absent.json")
    (tmp_path / "utf16.json").write_bytes("{}".encode("utf-16"))
    with pytest.raises(ConfigError, match=r"utf16\.json: not UTF-8 at byte 0"):
        read_config(tmp_path / "utf16.json")


SECRETIVE: list[dict[str, Any]] = [
    {"url": "${SECRET}"},
    {"url": f"ftp://u:{CANARY}@a.b"},
    {"url": "http://a.b:${SECRET}/"},
    {"url": "http://a.b", "headers": {"X": "${BROKEN}"}},
    {"url": "http://a.b", "headers": {"X": ["${SECRET}", CANARY]}},
    {"url": "http://a.b", "headers": {f"X {CANARY}": "y"}},
    {"command": "${SECRET}${ABSENT}"},
    {"command": "x", "args": [CANARY, [CANARY]]},
    {"command": "x", "args": ["${SECRET}", "${ABSENT}"]},
    {"command": "x", "env": {"A": {CANARY: CANARY}}},
    {"command": "x", "timeout": CANARY},
    {"type": CANARY, "command": "x"},
    {"url": "http://a.b", "toolscout": {"oauth": {"client_id": "", "client_secret": "${SECRET}"}}},
    {"url": "http://a.b", "toolscout": {"oauth": {"client_id": "i", "client_secret": "${BROKEN}"}}},
]


@pytest.mark.parametrize("entry", SECRETIVE)
def test_no_value_is_ever_part_of_an_error(tmp_path: Path, entry: dict[str, Any]) -> None:
    environ = {"SECRET": CANARY, "BROKEN": f"{CANARY}\n{CANARY}"}
    error = fail(tmp_path / "mcp.json", {"mcpServers": {"s": entry}}, environ)
    assert CANARY not in json.dumps(to_wire(error))
    assert CANARY not in "".join(traceback.format_exception_only(error))


def test_no_secret_is_part_of_a_repr(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    entries = {
        "a": {"command": "x", "args": ["--key=${SECRET}"], "env": {"A": "${SECRET}"}, "other": CANARY},
        "b": {
            "url": "http://a.b/${SECRET}",
            "headers": {"X": "${SECRET}"},
            "toolscout": {"oauth": {"client_id": "i", "client_secret": "${SECRET}"}},
        },
    }
    path.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    config = read_config(path, {"SECRET": CANARY})
    assert config.servers[1].headers == {"X": CANARY}
    assert CANARY not in repr(config)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["${A}", "${input:b}", "stdio", "http://a.b"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner), max_leaves=6
)
NAMES = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "httpUrl",
    "type",
    "headers",
    "timeout",
    "envFile",
    "env_vars",
    "settings",
]
CODEX = ["http_headers", "env_http_headers", "bearer_token_env_var", "tool_timeout_sec"]
OWN = ["tags", "examples", "oauth", "tools", "timeout_s", "concurrency", "private"]
REGISTRY = ["registryType", "identifier", "transport", "type", "url", "headers", "packageArguments", "variables"]


def objects(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), JSON, max_size=5)


FILES = (
    st.builds(
        lambda section, entry, own, rest: {section: {"s": {**entry, "toolscout": own}}, **rest},
        st.sampled_from(["mcpServers", "servers", "context_servers", "mcp_servers"]),
        objects(*NAMES, *CODEX),
        objects(*OWN) | JSON,
        objects("inputs", "toolscout", "mcp", "projects"),
    )
    | st.builds(lambda listed: {"name": "n", "packages": listed}, st.lists(objects(*REGISTRY)) | JSON)
    | st.builds(lambda listed: {"name": "n", "remotes": listed}, st.lists(objects(*REGISTRY)) | JSON)
    | JSON
)


@pytest.mark.fuzz
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(FILES)
def test_any_file_is_read_or_refused(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(values), "utf-8")
    try:
        config = read_config(path, {"A": "a"})
    except ConfigError as error:
        assert error.message.startswith(str(path))
    else:
        assert all(server.title for server in config.servers)
