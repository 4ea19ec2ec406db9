"""The log of `serve`: one object a line, one level, and no line of the audit log twice."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from serving import serving
from toolscout.telemetry.log_lines import JsonFormatter


def record(message: str, *values: object, **more: object) -> logging.LogRecord:
    made = logging.LogRecord("toolscout", logging.WARNING, "x.py", 1, message, values, None)
    vars(made).update(more)
    return made


def written(item: logging.LogRecord) -> dict[str, object]:
    line = JsonFormatter().format(item)
    assert line.isascii()
    assert line.isprintable()
    return dict(json.loads(line))


def test_a_line_is_one_object_whatever_a_name_holds():
    line = written(record("server %s is down", "a\nb\x1b[31m\u202e"))
    assert line["message"] == "server a\nb\x1b[31m\u202e is down"
    assert line["level"] == "warning"
    assert line.keys() == {"at", "level", "logger", "message"}


def test_an_event_has_its_fields_in_place_of_a_message():
    line = written(record("{}", event="tools.selected", fields={"total": 3, "odd": {1}}))
    assert line["event"] == "tools.selected"
    assert line["fields"] == {"total": 3, "odd": "{1}"}
    assert "message" not in line


def test_an_unexpected_error_has_its_traceback_within_the_line():
    try:
        raise ValueError("a\nb")
    except ValueError:
        line = written(record("failed", exc_info=sys.exc_info()))
    assert str(line["traceback"]).endswith("ValueError: a\nb")


def test_a_line_names_the_trace_in_which_it_is_written():
    context = SpanContext(trace_id=0xABC, span_id=0xDEF, is_remote=False, trace_flags=TraceFlags(1))
    with use_span(NonRecordingSpan(context)):
        line = written(record("x"))
    assert (line["trace_id"], line["span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")


@pytest.mark.process
@pytest.mark.parametrize("has_file", [True, False])
async def test_the_log_of_serve_has_a_call_only_if_the_audit_log_has_no_file(tmp_path, monkeypatch, has_file):
    audit = tmp_path / "audit.jsonl"
    monkeypatch.setenv("TOOLSCOUT_AUDIT", str(audit) if has_file else "none")
    monkeypatch.setenv("TOOLSCOUT_LOG_FORMAT", "json")
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    with serving(tmp_path) as gateway:
        async with Client(streamable_http_client(gateway.url)) as client:
            assert (await client.call_tool("call_tool", {"name": "a__b", "arguments": {}})).is_error
    lines = [json.loads(line) for line in gateway.log.read_text().splitlines()]
    assert any("MCP is served" in line.get("message", "") for line in lines)
    outcomes = [line["fields"]["outcome"] for line in lines if line.get("event") == "audit"]
    assert outcomes == ([] if has_file else ["tool_not_found"])
    assert not has_file or len(audit.read_text().splitlines()) == 1


@pytest.mark.process
def test_what_ends_serve_at_its_start_is_a_line_of_a_log_for_programs_too(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSCOUT_LOG_FORMAT", "json")
    for arguments, said in ((["--config", str(tmp_path / "missing.json")], "missing.json"), (["--auth"], "--http")):
        command = [sys.executable, "-m", "toolscout", "serve", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True)
        (line,) = [json.loads(text) for text in ran.stderr.splitlines()]
        assert (ran.returncode, line["level"]) == (2, "error")
        assert said in line["message"]


def test_the_level_of_the_log_is_a_setting_and_a_wrong_one_is_an_error(tmp_path, monkeypatch, toolscout):
    monkeypatch.setenv("TOOLSCOUT_LOG_LEVEL", "error")
    logger = logging.getLogger("toolscout")
    before = logger.level
    try:
        assert toolscout("serve", "--config", str(tmp_path / "missing.json")).code == 2
        assert logger.level == logging.ERROR
    finally:
        logger.setLevel(before)
    monkeypatch.setenv("TOOLSCOUT_LOG_LEVEL", "loud")
    ran = toolscout("serve", "--config", str(tmp_path / "missing.json"))
    assert ran.code == 2
    assert "debug, info, warning, error" in ran.err
