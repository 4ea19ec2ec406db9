"""A small shop for the examples: a ToolProvider, which is three methods and whatever is behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from toolscout import ToolMetadata, ToolNotFoundError


class Shop:
    """Orders, stock and customers, in memory; what the tools change stays changed."""

    def __init__(self) -> None:
        """Open the shop."""
        self.orders = {"1042": {"customer": "ann@example.com", "product": "lamp", "paid": 39.0, "status": "shipped"}}
        self.stock = {"lamp": 3, "desk": 0, "chair": 12}
        self.addresses = {"ann@example.com": "Harbour Street 4, Bergen"}
        self.outbox: list[dict[str, str]] = []
        self._tools = {function.__name__: function for function in self._functions()}

    def list_tool_metadata(self) -> list[ToolMetadata]:
        """Return what searching needs of each tool."""
        return [ToolMetadata(name=name, description=tool.__doc__ or "") for name, tool in self._tools.items()]

    def get_tool(self, name: str) -> dict[str, Any] | None:
        """Return a definition, its schema made from the type hints."""
        tool = self._tools.get(name)
        return tool and {
            "name": name,
            "description": tool.__doc__,
            "inputSchema": TypeAdapter[Any](tool).json_schema(),
        }

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool."""
        if name not in self._tools:
            raise ToolNotFoundError(f"the shop has no tool {name}")
        return self._tools[name](**arguments)

    def _functions(self) -> list[Any]:
        def track_parcel(order: str) -> str:
            """Say where the parcel of an order is now."""
            return f"The {self.orders[order]['product']} of order {order} is {self.orders[order]['status']}."

        def refund_order(order: str, amount: float | None = None) -> str:
            """Pay the money for an order back, all of it or an amount."""
            self.orders[order]["status"] = "refunded"
            return f"Refunded {amount or self.orders[order]['paid']:.2f} euros to {self.orders[order]['customer']}."

        def list_orders(customer: str) -> list[str]:
            """List the orders of a customer, who is named by an email address."""
            return [number for number, order in self.orders.items() if order["customer"] == customer]

        def send_email(to: str, subject: str, body: str) -> str:
            """Send an email to a customer or a colleague."""
            self.outbox.append({"to": to, "subject": subject, "body": body})
            return f"Sent to {to}."

        def check_stock(product: str) -> int:
            """Count how many pieces of a product are in the warehouse."""
            return self.stock[product]

        def order_supplies(product: str, pieces: int) -> int:
            """Buy more pieces of a product from the supplier; the answer is the new stock."""
            self.stock[product] += pieces
            return self.stock[product]

        def change_address(customer: str, address: str) -> str:
            """Change the address that a customer's parcels are sent to."""
            self.addresses[customer] = address
            return f"{customer} is at {address} now."

        return [track_parcel, refund_order, list_orders, send_email, check_stock, order_supplies, change_address]
