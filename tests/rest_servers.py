"""The server behind the gateway in the tests of the REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripted import Call, Scripted, text

READS = {"readOnlyHint": True}
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def crm() -> Scripted:
    """Return the server of one tenant: it reads, writes, destroys and fails."""
    server = Scripted("crm")

    async def echo(call: Call) -> Mapping[str, Any]:
        return text(f"got {dict(call.arguments)}")

    server.tool("list_customers", echo, description="List all customers of the shop", annotations=READS)
    server.tool("count_orders", echo, description="Count the orders of a customer", inputSchema=COUNT)
    server.tool("delete_customer", echo, description="Delete a customer", annotations={"destructiveHint": True})
    server.tool("fail", text("it went wrong", isError=True), description="Fail at whatever is asked")
    server.tool("report/yearly", echo, description="Write the report of a year")
    return server
