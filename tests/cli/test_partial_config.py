"""One entry that cannot be used never stops the other servers, in no command."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from toolscout import ConfigError, Scout, Settings, read_config
from toolscout.cli.index import merge_reports
from toolscout.models import Dropped, IndexReport

pytestmark = [guarantee("start:partial"), pytest.mark.process]

FAKE = str(Path(__file__).parent.parent / "fake_server.py")
BAD: dict[str, Any] = {
    "no-variable": {"command": "x", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}},
    "no-command": {"args": []},
    "no-secret": {"url": "https://a.b/mcp", "headers": {"Authorization": "Bearer ${file:not-there.token}"}},
    "misspelt": {"command": "x", "toolscout": {"trustd": True}},
}
REASONS = {
    "no-variable": "the variable NOT_SET_ANYWHERE is not set",
    "no-command": "has neither a command nor a url",
    "no-secret": "not-there.token",
    "misspelt": "trustd is not a field that toolscout knows",
}


@pytest.fixture
def config(tmp_path: Path) -> str:
    good = {"command": sys.executable, "args": [FAKE, str(tmp_path / "log"), "--tools", "3"]}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {**BAD, "good": good}}), "utf-8")
    return str(path)


def test_index_lists_the_rest_and_shows_each_reason(toolscout: Callable[..., Any], config: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    ran = toolscout("index", "--config", config, "--store", store, "--json")
    assert ran.code == 1
    servers = {status["title"]: status for status in ran.json[-1]["servers"]}
    assert (servers["good"]["state"], servers["good"]["tools"]) == ("ready", 3)
    for title, reason in REASONS.items():
        assert servers[title]["state"] == "failed"
        assert reason in servers[title]["detail"]
        assert servers[title]["hint"]
    assert ran.json[-1]["new"] == 3


def test_doctor_checks_the_rest_and_shows_each_reason(
    toolscout: Callable[..., Any], config: str, tmp_path: Path
) -> None:
    ran = toolscout("doctor", "--config", config, "--store", f"sqlite:///{tmp_path / 'catalogue.db'}", "--json")
    checks = {check["what"]: check for check in ran.json}
    assert checks["server good"]["ok"]
    for title, reason in REASONS.items():
        assert not checks[f"server {title}"]["ok"]
        assert reason in checks[f"server {title}"]["detail"]


async def test_a_gateway_serves_the_rest_and_names_the_reason_of_a_call(
    config: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "toolscout"):
        async with Scout.open(settings=Settings(store="memory:", embedder="none")) as scout:
            await (await scout.connect(read_config(config, partial=True))).settled()
            assert (await scout.list_tools()).metadata.total == 3
            assert (await scout.servers.down(scout.caller)).keys() == BAD.keys()
    for title, reason in REASONS.items():
        assert any(f"server {title} is down" in line and reason in line for line in caplog.messages)


def test_a_file_that_cannot_be_read_does_not_stop_the_others(
    toolscout: Callable[..., Any], config: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text('{"theme": "dark"}')
    files = [word for name in ("broken.json", "other.json") for word in ("--config", str(tmp_path / name))]
    named = [*files, "--config", config, "--store", f"sqlite:///{tmp_path / 'catalogue.db'}", "--json"]
    servers = {status["title"]: status for status in toolscout("index", *named).json[-1]["servers"]}
    checks = {check["what"]: check for check in toolscout("doctor", *named).json}
    assert servers["good"]["state"] == "ready"
    assert checks["server good"]["ok"]
    for name, reason in (("broken.json", "invalid JSON"), ("other.json", "lists no servers")):
        assert reason in servers[name]["detail"]
        assert reason in checks[f"server {name}"]["detail"]
    assert toolscout("index", *files).code == 2


def test_without_partial_a_bad_entry_is_an_error(config: str) -> None:
    with pytest.raises(ConfigError, match="NOT_SET_ANYWHERE"):
        read_config(config)


def test_a_config_without_any_usable_entry_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": BAD}), "utf-8")
    with pytest.raises(ConfigError, match="NOT_SET_ANYWHERE"):
        read_config(path, partial=True)


async def test_the_log_of_a_gateway_says_where_the_output_of_a_failed_server_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = "import sys; print('the licence is missing', file=sys.stderr); sys.exit(3)"
    path = tmp_path / "mcp.json"
    path.write_text(
        json.dumps({"mcpServers": {"broken": {"command": sys.executable, "args": ["-c", program]}}}), "utf-8"
    )
    with caplog.at_level(logging.WARNING, "toolscout"):
        async with Scout.open(read_config(path), settings=Settings(store="memory:", embedder="none")):
            pass
    (line,) = [line for line in caplog.messages if "server broken is down" in line]
    assert line.endswith("`toolscout doctor`, with the same --config, shows what it printed")
    assert "licence" not in line


def test_a_failed_server_says_where_its_output_is(toolscout: Callable[..., Any], tmp_path: Path) -> None:
    program = "import sys; print('the licence is missing\\nsee the manual', file=sys.stderr); sys.exit(3)"
    entry = {"command": sys.executable, "args": ["-c", program]}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"broken": entry}}), "utf-8")
    ran = toolscout("index", "--config", str(path), "--store", "memory:", "--json")
    assert "`toolscout doctor`, with the same --config, shows" in ran.json[-1]["servers"][0]["hint"]
    lines = toolscout("doctor", "--config", str(path), "--store", "memory:").out.splitlines()
    assert lines.count("    | the licence is missing") == lines.count("    | see the manual") >= 1


def test_a_server_that_was_indexed_twice_counts_once() -> None:
    listed = frozenset({("local", "a__x"), ("local", "a__y")})
    dropped = (Dropped(where="a", reason="no name"),)
    first = IndexReport(new=2, listed=listed, dropped=dropped)
    again = IndexReport(unchanged=2, listed=listed, dropped=dropped)
    other = IndexReport(unchanged=1, listed=frozenset({("local", "b__x")}))
    merged = merge_reports([first, again, other])
    assert (merged.new, merged.unchanged, merged.total, merged.dropped) == (2, 1, 3, dropped)
