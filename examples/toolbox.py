"""The tools of a small shop, for the examples. Orders, parcels and stock are in memory."""

from __future__ import annotations

from toolscout import ToolRegistry


def shop_tools() -> ToolRegistry:
    """Return a registry with the tools of a new shop. A registry is a provider, so a scout can index it."""
    registry = ToolRegistry()
    customers = {"1042": "ann@example.com"}
    parcels = {"1042": "on a ship to Bergen"}
    paid = {"1042": 39.0}
    stock = {"lamp": 3, "desk": 0, "chair": 12}

    @registry.tool
    def track_parcel(order: str) -> str:
        """Say where the parcel of an order is now."""
        return f"The parcel of order {order} is {parcels[order]}."

    @registry.tool
    def refund_order(order: str, amount: float | None = None) -> str:
        """Pay the money for an order back, all of it or an amount."""
        back = amount or paid[order]
        paid[order] -= back
        return f"Refunded {back:.2f} euros to {customers[order]}."

    @registry.tool
    def list_orders(customer: str) -> list[str]:
        """List the orders of a customer, who is named by an email address."""
        return [order for order, name in customers.items() if name == customer]

    @registry.tool(keywords=["mail", "message"])
    def send_email(to: str, subject: str, body: str) -> str:
        """Send an email to a customer or a colleague."""
        return f"Sent {subject!r} ({len(body)} characters) to {to}."

    @registry.tool
    def check_stock(product: str) -> int:
        """Count how many pieces of a product are in the warehouse."""
        return stock[product]

    @registry.tool
    def order_supplies(product: str, pieces: int) -> int:
        """Buy more pieces of a product from the supplier and return the new stock."""
        stock[product] += pieces
        return stock[product]

    @registry.tool
    def change_address(order: str, address: str) -> str:
        """Change the address that the parcel of an order is sent to."""
        parcels[order] = f"on its way to {address}"
        return f"The parcel of order {order} goes to {address} now."

    return registry
