"""graph-tool-call with its default settings, in an environment of its own: ranks requests read as JSON.

Run by `benchmarks.quality.peers`; arguments: a tools.jsonl file; standard input: a JSON list of requests.
"""

import json
import sys
import time
from importlib.metadata import version

from graph_tool_call import ToolGraph


def measure(tools_path: str, queries: list[str]) -> dict[str, object]:
    """Register the tools as an MCP server would list them, then retrieve."""
    ids: dict[str, str] = {}
    tools = []
    with open(tools_path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            name = f"{row.get('server') or 'local'}__{row['name']}"
            ids[name] = str(row.get("id") or name)
            schema = row.get("input_schema") or {"type": "object", "properties": {}}
            tools.append({"name": name, "description": row.get("description") or "", "inputSchema": schema})
    graph = ToolGraph()
    graph.ingest_mcp_tools(tools)
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        hits = graph.retrieve(query, top_k=10)
        times.append((time.perf_counter() - started) * 1_000)
        found.append([ids[hit.name] for hit in hits if hit.name in ids])
    return {"version": f"graph-tool-call {version('graph-tool-call')}", "found": found, "took_ms": times}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], json.loads(sys.stdin.read()))))
