"""A host's lists of allowed and forbidden tools hold in toolscout too, and a config decides whom it trusts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from toolscout import ConfigError, Scout, Settings, read_config
from toolscout.sources.rows import RowsSource

TOOLS = ("read", "write", "delete_repo", "delete_user")


def enabled(path: Path, entry: dict[str, Any], **options: Any) -> set[str]:
    """Return the tools that a server with this entry may still offer."""
    path.write_text(json.dumps({"mcpServers": {"s": {"command": "x", **entry}}, "toolscout": options}), "utf-8")
    (server,) = read_config(path, {}).servers
    overlays = {name: server.server.tool_overlay(name) for name in TOOLS}
    return {name for name, overlay in overlays.items() if overlay.enabled is not False}


@guarantee("import:rights")
@pytest.mark.parametrize(
    ("entry", "allowed"),
    [
        ({"includeTools": ["read"]}, {"read"}),
        ({"includeTools": ["read(path)", "write"], "excludeTools": ["write"]}, {"read"}),
        ({"includeTools": []}, set()),
        ({"excludeTools": ["delete_repo"]}, {"read", "write", "delete_user"}),
        ({"disabledTools": ["delete_repo", "delete_user"]}, {"read", "write"}),
        ({"enabled_tools": ["read"]}, {"read"}),
        ({"disabled_tools": ["write"]}, {"read", "delete_repo", "delete_user"}),
        ({"tools": ["*"]}, set(TOOLS)),
        ({"tools": "*"}, set(TOOLS)),
        ({"tools": ["read"]}, {"read"}),
        (
            {"tools": {"delete_repo": {"enabled": False}, "read": {"approval_mode": "prompt"}}},
            set(TOOLS[:2]) | {TOOLS[3]},
        ),
        ({"available_tools": []}, set(TOOLS)),
        ({"disabledTools": ["write"], "toolscout": {"tools": {"write": {"tags": ["x"]}}}}, set(TOOLS) - {"write"}),
        ({"disabledTools": ["write"], "toolscout": {"tools": {"write": {"enabled": True}}}}, set(TOOLS)),
        ({"toolscout": {"tools": {"DELETE_*": {"enabled": False}}}}, {"read", "write"}),
    ],
)
def test_a_tool_that_the_host_forbids_is_switched_off(tmp_path: Path, entry: Any, allowed: set[str]) -> None:
    assert enabled(tmp_path / "mcp.json", entry) == allowed


@guarantee("import:rights")
def test_a_list_that_cannot_be_read_is_an_error_and_not_an_empty_list(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="disabledTools must be a list of strings"):
        enabled(tmp_path / "mcp.json", {"disabledTools": {"write": True}})


@guarantee("import:rights")
async def test_a_forbidden_tool_is_neither_listed_nor_found(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"s": {"command": "x", "includeTools": ["read"]}}}), "utf-8")
    (config,) = read_config(path, {}).servers
    source = RowsSource(server=config.server, rows=[{"name": name} for name in TOOLS])
    async with Scout.open(settings=Settings(store="memory:", embedder="none")) as scout:
        await scout.index([source])
        assert [match.tool.name for match in await scout.list_tools()] == ["read"]


def test_options_of_servers_may_stand_apart_from_their_entries(tmp_path: Path) -> None:
    options = {"s": {"tools": {"write": {"enabled": False}, "read": {"enabled": False}}}}
    own = {"toolscout": {"tools": {"read": {"enabled": True}}}}
    assert enabled(tmp_path / "mcp.json", own, servers=options) == set(TOOLS) - {"write"}


@pytest.mark.parametrize(
    ("entry", "trusted"),
    [
        ({"command": "x"}, True),
        ({"url": "https://a.b/mcp"}, False),
        ({"url": "http://127.0.0.1/sse", "type": "sse"}, False),
        ({"command": "x", "toolscout": {"trusted": False}}, False),
        ({"url": "https://a.b/mcp", "toolscout": {"trusted": True}}, True),
    ],
)
def test_a_command_is_trusted_and_a_url_is_not_unless_the_config_says_so(
    tmp_path: Path, entry: Any, trusted: bool
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"s": entry}}), "utf-8")
    (server,) = read_config(path, {}).servers
    assert (server.trusted, server.server.trusted) == (trusted, trusted)
