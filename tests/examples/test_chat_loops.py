"""The chat loops of `examples/`, run as a user runs them, against a model that answers from a script."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from model_server import ScriptedModel, Step, anthropic_reply, openai_reply, scripted_model

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SAID = "Where is the parcel of order 1042?\nRefund it, and let the customer know by email\n"
WRONG = [("shop__refund_order", {"order_number": 1042})]
RIGHT = [
    ("shop__refund_order", {"order": "1042"}),
    ("shop__send_email", {"to": "ann@example.com", "subject": "Your refund", "body": "It is on its way."}),
]
SCRIPT: list[Step] = [
    [("shop__track_parcel", {"order": "1042"})],
    "It is on its way to you.",
    WRONG,
    RIGHT,
    "Refunded, and ann knows.",
]


async def talk(name: str, **environment: str) -> str:
    """Run an example with what a user types, and return what it prints."""
    variables = {**os.environ, **environment, "PYTHONUTF8": "1", "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = await asyncio.to_thread(
        subprocess.run, command, input=SAID, env=variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_talk(model: ScriptedModel, shown: str) -> None:
    assert "It is on its way to you." in shown
    assert "Refunded, and ann knows." in shown
    turns = re.findall(r"\[(\d+) of 7 tools, (\d+) tokens saved\]", shown)
    assert len(turns) == 2
    assert all(int(count) <= 4 and int(saved) > 100 for count, saved in turns)
    assert "shop__send_email" not in model.tools(0)
    assert {"shop__refund_order", "shop__send_email", "shop__track_parcel"} <= model.tools(2)
    assert model.results(1) == ["The parcel of order 1042 is on a ship to Bergen."]
    [told] = model.results(3)
    assert "'order' is missing" in told
    assert model.results(4) == [
        "Refunded 39.00 euros to ann@example.com.",
        "Sent 'Your refund' (17 characters) to ann@example.com.",
    ]


async def test_the_chat_on_openais_format() -> None:
    async with scripted_model("/v1/chat/completions", openai_reply, SCRIPT) as model:
        output = await talk("openai_chat.py", OPENAI_BASE_URL=f"{model.origin}/v1", OPENAI_API_KEY="secret")
    check_talk(model, output)


async def test_the_chat_on_openais_format_outlives_arguments_that_are_not_json() -> None:
    script: list[Step] = [[("shop__track_parcel", '{"order": 10')], "Sorry.", "Nothing to do."]
    async with scripted_model("/v1/chat/completions", openai_reply, script) as model:
        output = await talk("openai_chat.py", OPENAI_BASE_URL=f"{model.origin}/v1", OPENAI_API_KEY="secret")
    assert "Nothing to do." in output
    [told] = model.results(1)
    assert "not JSON" in told


async def test_the_chat_on_anthropics_format() -> None:
    async with scripted_model("/v1/messages", anthropic_reply, SCRIPT) as model:
        output = await talk("anthropic_chat.py", ANTHROPIC_BASE_URL=model.origin, ANTHROPIC_API_KEY="secret")
    check_talk(model, output)
    blocks = [block for block in model.bodies[3]["messages"][-1]["content"] if block["type"] == "tool_result"]
    assert [block["is_error"] for block in blocks] == [True]
