"""The MCP registry's `server.json` becomes a server that toolscout can run or connect to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolscout import ConfigError
from toolscout.config import ServerConfig, read_config

NAME = "io.github.example/weather"


def read(path: Path, environ: dict[str, str] | None = None, **values: Any) -> ServerConfig:
    path.write_text(json.dumps({"name": NAME, "description": "", "version": "1.0.0", **values}), "utf-8")
    (server,) = read_config(path, environ or {}).servers
    return server


def package(kind: str, **values: Any) -> dict[str, Any]:
    return {"registryType": kind, "identifier": "pkg", "version": "1.2.3", "transport": {"type": "stdio"}, **values}


@pytest.mark.parametrize(
    ("kind", "command", "args"),
    [
        ("npm", "npx", ("-y", "pkg@1.2.3")),
        ("pypi", "uvx", ("pkg@1.2.3",)),
        ("oci", "docker", ("run", "-i", "--rm", "pkg:1.2.3")),
        ("nuget", "dnx", ("--yes", "pkg@1.2.3")),
    ],
)
def test_a_package_is_run_with_its_own_launcher(tmp_path: Path, kind: str, command: str, args: tuple[str, ...]) -> None:
    server = read(tmp_path / "server.json", packages=[package(kind)])
    assert (server.title, server.transport, server.command, server.args) == (NAME, "stdio", command, args)


def test_arguments_and_variables_are_filled_in(tmp_path: Path) -> None:
    described = package(
        "oci",
        runtimeArguments=[
            {
                "type": "named",
                "name": "--mount",
                "value": "src={source},dst={target}",
                "variables": {"source": {}, "target": {"default": "/project"}},
            }
        ],
        packageArguments=[
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--port", "default": "80"},
            {"type": "named", "name": "--optional"},
        ],
        environmentVariables=[
            {"name": "KEY", "isRequired": True, "isSecret": True},
            {"name": "LEVEL", "default": "info"},
            {"name": "FIXED", "value": "yes"},
            {"name": "OPTIONAL"},
        ],
    )
    server = read(tmp_path / "server.json", {"KEY": "k", "source": "/here"}, packages=[described])
    assert server.env == {"KEY": "k", "LEVEL": "info", "FIXED": "yes"}
    words = "run -i --rm -e KEY -e LEVEL -e FIXED --mount src=/here,dst=/project pkg:1.2.3 serve --port 80"
    assert server.args == tuple(words.split())


def test_a_remote_is_dialled_where_nothing_can_be_run_and_http_comes_before_sse(tmp_path: Path) -> None:
    remotes = [
        {"type": "sse", "url": "https://a.b/sse"},
        {"type": "streamable-http", "url": "https://a.b/mcp", "headers": [{"name": "X-Key", "isRequired": True}]},
    ]
    server = read(tmp_path / "server.json", {"X_Key": "k"}, packages=[package("mcpb")], remotes=remotes)
    assert (server.transport, server.url, server.headers) == ("http", "https://a.b/mcp", {"X-Key": "k"})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"packages": [package("mcpb")]}, "neither a package that toolscout can run nor a remote"),
        ({"packages": [package("npm", environmentVariables=[{"name": "K", "isRequired": True}])]}, "the variable K"),
        (
            {
                "packages": [
                    package("npm", packageArguments=[{"type": "positional", "isRequired": True, "valueHint": "dir"}])
                ]
            },
            "packageArguments: dir has no value",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "server.json", **values)
    assert said in caught.value.message
    assert NAME in caught.value.message
