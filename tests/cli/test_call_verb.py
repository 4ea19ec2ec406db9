"""`toolscout call` and what `serve` says before it serves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from servers import stdio
from serving import write_config

EITHER = str(Path(__file__).parent.parent / "either_server.py")


@pytest.fixture
def config(tmp_path):
    dead = stdio("dead", "no-such-command-anywhere")
    return str(write_config(tmp_path, stdio("either", sys.executable, EITHER), dead))


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path / 'catalogue.db'}"


@pytest.mark.process
def test_a_tool_is_called_and_its_text_shown(toolscout, config, store):
    ran = toolscout("call", "either__era", "--config", config, "--store", store)
    assert (ran.code, ran.out.strip()) == (0, "2026-07-28")


@pytest.mark.process
def test_json_shows_the_result_as_the_server_sent_it(toolscout, config, store):
    ran = toolscout("call", "either__stamp", "--config", config, "--store", store, "--json")
    assert ran.code == 0
    assert ran.json["result"]["structuredContent"] == {"stamp": {"n": None}}
    assert ran.json["result"]["_meta"]["vendor/x"] == [1]
    assert ran.json["repairs"] == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["either__ear"], 1, "either__era"),
        (["nothing"], 1, "no tool has the key"),
        (["either__era", "--args", "{"], 2, "--args is not JSON"),
        (["either__era", "--args", "[1]"], 2, "must be an object"),
        (["dead__tool"], 3, "the command 'no-such-command-anywhere' was not found; nothing was sent"),
        (["dead__tool"], 3, "hint: check the command"),
    ],
)
def test_a_call_that_cannot_be_sent_says_why(toolscout, config, store, arguments, code, said):
    ran = toolscout("call", *arguments, "--config", config, "--store", store)
    assert ran.code == code, ran.err
    assert said in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create_refund"], 1, "did you mean: stripe__create_refund"),
        (["shop__create_refund"], 1, "did you mean: stripe__create_refund"),
        (["stripe__create_refund", "--args", '{"payment_intent": "pi_1"}'], 3, "name the config that lists it"),
    ],
)
def test_a_call_of_no_configured_server_starts_none_and_names_what_may_be_meant(
    toolscout, config, sample_store, arguments, code, said
):
    ran = toolscout("call", *arguments, "--config", config, "--store", sample_store)
    assert ran.code == code, ran.err
    assert said in ran.err


def test_without_a_config_both_commands_say_how_to_get_one(toolscout, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for arguments in (["serve"], ["call", "a__b"]):
        ran = toolscout(*arguments)
        assert ran.code == 2
        assert "--config mcp.json" in ran.err
    assert "toolscout import --write" in toolscout("serve").err


def test_a_wrong_surface_or_config_is_an_error_before_serving(toolscout, config, store, tmp_path):
    assert toolscout("serve", "--config", config, "--store", store, "--surface", "x").code == 2
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert toolscout("serve", "--config", str(broken)).code == 2
    unset = tmp_path / "unset.json"
    unset.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "env": {"K": "${NOT_SET_ANYWHERE}"}}}}))
    ran = toolscout("serve", "--config", str(unset))
    assert ran.code == 2
    assert "NOT_SET_ANYWHERE" in ran.err
