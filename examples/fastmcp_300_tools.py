"""A FastMCP server with 300 hidden tools: a client sees three tools and finds the others by searching.

Run it with `python examples/fastmcp_300_tools.py`. It speaks MCP on standard input and output.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

from fastmcp import FastMCP

from toolscout import ToolRegistry

UNITS: dict[str, dict[str, float]] = {  # one of each in metres, litres, grams, seconds, metres per second, pascals
    "length": {
        "millimetres": 0.001,
        "centimetres": 0.01,
        "metres": 1,
        "kilometres": 1_000,
        "inches": 0.0254,
        "feet": 0.3048,
        "yards": 0.9144,
        "miles": 1_609.344,
        "nautical_miles": 1_852,
        "light_years": 9.4607304725808e15,
    },
    "volume": {
        "millilitres": 0.001,
        "litres": 1,
        "cubic_metres": 1_000,
        "teaspoons": 0.00492892159375,
        "tablespoons": 0.01478676478125,
        "cups": 0.2365882365,
        "pints": 0.473176473,
        "quarts": 0.946352946,
        "gallons": 3.785411784,
    },
    "mass": {
        "milligrams": 0.001,
        "grams": 1,
        "kilograms": 1_000,
        "tonnes": 1_000_000,
        "ounces": 28.349523125,
        "pounds": 453.59237,
        "stones": 6_350.29318,
        "carats": 0.2,
    },
    "time": {
        "milliseconds": 0.001,
        "seconds": 1,
        "minutes": 60,
        "hours": 3_600,
        "days": 86_400,
        "weeks": 604_800,
        "years": 31_557_600,
    },
    "speed": {
        "metres_per_second": 1,
        "kilometres_per_hour": 1 / 3.6,
        "miles_per_hour": 0.44704,
        "knots": 1_852 / 3_600,
        "feet_per_second": 0.3048,
    },
    "pressure": {"pascals": 1, "bars": 100_000, "atmospheres": 101_325, "psi": 6_894.757293168, "torr": 133.322368421},
}

server: FastMCP[Any] = FastMCP("units")
registry = ToolRegistry()


@server.tool
def list_units() -> dict[str, list[str]]:
    """List the units that can be converted, by what they measure."""
    return {kind: list(units) for kind, units in UNITS.items()}


def converter(source: float, target: float) -> Callable[[float], str]:
    """Return the handler that converts an amount from one unit to another."""
    return lambda amount: f"{amount * source / target:.10g}"


for kind, units in UNITS.items():
    for source, target in permutations(units, 2):
        schema = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
        words = f"{source} to {target}".replace("_", " ")
        definition = {
            "name": f"convert_{source}_to_{target}",
            "description": f"Convert a {kind} from {words}.",
            "inputSchema": schema,
        }
        registry.register_tool(definition, converter(units[source], units[target]), kind, "convert", "unit")

registry.attach(server)

if __name__ == "__main__":
    server.run(show_banner=False)
