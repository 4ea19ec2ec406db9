"""The checks of a tool's definition before a call is sent."""

from dataclasses import replace

import pytest

from toolscout import DefinitionChangedError, NotReadOnlyError, Tool
from toolscout.execution.pipeline import check_definition

TOOL = Tool(
    key="s__t",
    id="s__t",
    server="s",
    server_title="s",
    name="t",
    description="new",
    input_schema={"type": "object"},
    fingerprint="abcdef0123456789",
    annotations={"readOnlyHint": True},
)


def test_a_call_with_the_current_version_is_sent() -> None:
    check_definition(TOOL, version="abcdef012345", read_only=True)
    check_definition(TOOL, version=None, read_only=False)


def test_a_changed_definition_is_refused_with_the_new_one() -> None:
    with pytest.raises(DefinitionChangedError, match="has changed") as caught:
        check_definition(TOOL, version="ffff", read_only=False)
    assert caught.value.details == {"version": TOOL.version, "description": "new", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    "tool",
    [
        replace(TOOL, annotations={}),
        replace(TOOL, annotations={"readOnlyHint": False}),
        replace(TOOL, annotations={"readOnlyHint": "yes"}),
        replace(TOOL, trusted=False),
    ],
)
def test_only_what_a_trusted_server_declares_read_only_passes_call_read_tool(tool: Tool) -> None:
    with pytest.raises(NotReadOnlyError, match="not declared"):
        check_definition(tool, version=None, read_only=True)
