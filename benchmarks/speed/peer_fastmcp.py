"""FastMCP's BM25 search transform, engine only, in an environment of its own; prints its latencies as JSON.

Run by `benchmarks.speed.catalogue` with `uv run --no-project --with fastmcp`.
"""

import asyncio
import json
import sys
import time

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool


async def measure(tools_path: str, queries: list[str]) -> list[float]:
    """Time `_search` alone: the catalogue is built and indexed before."""
    tools = []
    with open(tools_path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            name = f"{row.get('server') or 'local'}__{row['name']}"
            schema = row.get("input_schema") or {}
            tools.append(Tool(name=name, description=row.get("description") or "", parameters=schema))
    engine = BM25SearchTransform(max_results=10)
    await engine._search(tools, "warm")
    times = []
    for query in queries:
        started = time.perf_counter()
        await engine._search(tools, query)
        times.append((time.perf_counter() - started) * 1_000)
    return times


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], json.loads(sys.stdin.read())))))
