"""`toolscout.sync`: the same methods without asyncio, also inside a running loop, and no noise when it is left open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolscout import Scout as AsyncScout
from toolscout import StoreError, ToolNotFoundError
from toolscout.sample import path as sample_path
from toolscout.sync import Scout

ROWS = [
    {"name": "send_mail", "server": "mail", "description": "Send a mail", "tags": ["mail", "Send"]},
    {"name": "read_mail", "server": "mail", "description": "Read a mail", "tags": ["mail"]},
]


def test_the_methods_wait_for_their_results() -> None:
    with Scout.open(tools=ROWS) as scout:
        assert scout.search_tools("send a mail", limit=1)[0].tool.key == "mail__send_mail"
        assert scout.list_tools().metadata.total == 2
        call = {"id": "1", "function": {"name": "nothing", "arguments": "{}"}}
        with pytest.raises(ToolNotFoundError):
            scout.run(scout.discover_tools("send a mail").call(call))
        with pytest.raises(ToolNotFoundError):
            scout.get_tool_details("mail__nothing")
    scout.close()
    with pytest.raises(StoreError, match="is closed"):
        scout.list_tools()


async def test_it_works_inside_a_running_event_loop() -> None:
    with Scout.open(tools=ROWS) as scout:
        assert len(scout.list_tools()) == 2


def test_a_failure_to_open_is_raised(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Scout.open(store=f"sqlite:///{tmp_path}")


@pytest.mark.process
@pytest.mark.parametrize(
    "program",
    [
        "from toolscout.sync import Scout\nscout = Scout.open(tools=PATH)\nprint(scout.list_tools().metadata.total)",
        "import asyncio\nfrom toolscout import ToolRegistry\nregistry = ToolRegistry()\n"
        "registry.tool(lambda: 1, name='one', description='Give one')\n"
        "print(len(asyncio.run(registry.search('give one'))) + 127)",
    ],
)
def test_what_is_left_open_prints_nothing_at_exit(program: str) -> None:
    code = program.replace("PATH", repr(str(sample_path())))
    process = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (process.stdout, process.stderr) == ("128\n", "")


async def test_a_scout_that_was_not_entered_says_how_to_enter_it() -> None:
    with pytest.raises(StoreError, match=r"use `async with Scout\.open"):
        await AsyncScout.open(tools=ROWS).search_tools("mail")
