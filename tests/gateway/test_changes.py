"""Clients are notified when a list has changed, and only then, in both protocol eras."""

from __future__ import annotations

import asyncio

from mcp import Client
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import PromptListChangedNotification, ResourceListChangedNotification, ToolListChangedNotification

from guarantees import guarantee
from scripted import text

pytestmark = guarantee("proto:list-stable")


async def test_a_client_of_2026_is_notified_on_its_stream(open_gateway, demo):
    async with (
        open_gateway(demo, surface="all") as opened,
        Client(opened.server, mode="2026-07-28") as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        await opened.scout.index([demo])
        demo.tool("new_one", text("x"), description="Something new")
        await opened.scout.index([demo])
        event = await asyncio.wait_for(anext(aiter(changes)), 5)
        assert isinstance(event, ToolsListChanged)
        assert "demo__new_one" in [tool.name for tool in (await client.list_tools()).tools]


async def test_a_handshake_client_is_notified_on_its_connection(open_gateway, demo):
    told: asyncio.Queue = asyncio.Queue()

    async def handler(message):
        await told.put(message)

    async with (
        open_gateway(demo, surface="all") as opened,
        Client(opened.server, mode="legacy", message_handler=handler) as client,
    ):
        capabilities = client.server_capabilities
        assert capabilities.tools
        assert capabilities.tools.list_changed
        demo.tool("new_one", text("x"), description="Something new")
        await opened.scout.index([demo])
        assert isinstance(await asyncio.wait_for(told.get(), 5), ToolListChangedNotification)
        demo.state = "failed"
        demo.report_change()
        kinds = {type(await asyncio.wait_for(told.get(), 5)) for _ in range(2)}
        assert kinds == {ResourceListChangedNotification, PromptListChangedNotification}
        assert told.empty()
    assert not opened.gateway.notifier.callers
