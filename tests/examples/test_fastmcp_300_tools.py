"""The FastMCP server with 300 hidden tools, started as its users start it, and used by a scripted model."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from scripted_model import Call, converse

pytestmark = pytest.mark.process

EXAMPLE = Path(__file__).parents[2] / "examples" / "fastmcp_300_tools.py"


@pytest.fixture(scope="module")
async def parameters() -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-W", "error", str(EXAMPLE)], env=dict(os.environ))


async def test_a_model_finds_and_calls_one_of_300_tools_that_it_was_never_shown(parameters):
    def choose(found):
        names = [hit["name"] for hit in found.structured_content["tools"]]
        [wanted] = [name for name in names if name == "convert_miles_to_kilometres"]
        return Call("execute_tool", {"name": wanted, "arguments": {"amount": 26.2}})

    script = [
        lambda _: Call("tool_search", {"query": "how many kilometres are 26.2 miles", "max_results": 5}),
        choose,
        lambda called: f"{called.content[0].text} km",
    ]
    async with Client(parameters) as client:
        seen, text = await converse(client, script)
        listed = (await client.call_tool("list_units", {})).structured_content
    assert seen == ["list_units", "tool_search", "execute_tool"]
    assert text == "42.1648128 km"
    assert sum(len(units) * (len(units) - 1) for units in listed.values()) == 300
