"""FastMCP's BM25 search transform with its default settings, ten results: ranks requests read as JSON.

Run by `benchmarks.quality.peers`; arguments: a tools.jsonl file; standard input: a JSON list of requests.
"""

import asyncio
import json
import sys
import time
from importlib.metadata import version

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool


async def measure(tools_path: str, queries: list[str]) -> dict[str, object]:
    """Index the tools under their namespaced names, then search."""
    ids: dict[str, str] = {}
    tools = []
    with open(tools_path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            name = f"{row.get('server') or 'local'}__{row['name']}"
            ids[name] = str(row.get("id") or name)
            schema = row.get("input_schema") or {}
            tools.append(Tool(name=name, description=row.get("description") or "", parameters=schema))
    engine = BM25SearchTransform(max_results=10)
    await engine._search(tools, "warm")
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        hits = await engine._search(tools, query)
        times.append((time.perf_counter() - started) * 1_000)
        found.append([ids[hit.name] for hit in hits])
    return {"version": f"fastmcp {version('fastmcp')}", "found": found, "took_ms": times}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], json.loads(sys.stdin.read())))))
