"""`python -m benchmarks.gateway.rest`: what a search over REST costs, beside the same searches of the library.

One process holds the catalogue of 14.7k tools. It searches itself, then serves the same searches to a client process
over one connection, in turns, so that the load of the machine affects both alike. No query comes from a cache.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, rows, save
from toolscout import Scout, Settings
from toolscout.api import RestApi
from toolscout.gateway.host_check import allowed_hosts
from toolscout.gateway.http import make_app
from toolscout.gateway.http_listener import bind, serve_in_background
from toolscout.gateway.server import Gateway

STORE = Path("build/bench/speed.db")
ROUNDS, QUERIES = 30, 20
ASKED = 1.15

CLIENT = """
import json, socket, sys
from time import perf_counter
host = b"127.0.0.1:" + sys.argv[1].encode()
for line in sys.stdin:
    times = []
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for query in json.loads(line):
            body = json.dumps({"query": query}).encode()
            head = b"POST /api/v1/search HTTP/1.1\\r\\nHost: %b\\r\\nContent-Type: application/json\\r\\n" % host
            request = head + b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body
            started, answer = perf_counter(), b""
            connection.sendall(request)
            while b"\\r\\n\\r\\n" not in answer:
                answer += connection.recv(65536)
            top, _, content = answer.partition(b"\\r\\n\\r\\n")
            length = int(top.lower().split(b"content-length: ")[1].split(b"\\r\\n")[0])
            while len(content) < length:
                content += connection.recv(65536)
            times.append((perf_counter() - started) * 1000)
            assert b" 200 " in top and json.loads(content)["tools"], answer
    print(json.dumps(times), flush=True)
"""


async def library_times(scout: Scout, queries: list[str]) -> list[float]:
    """Time whole searches of the library."""
    times = []
    for query in queries:
        started = perf_counter()
        await scout.search_tools(query)
        times.append((perf_counter() - started) * 1_000)
    return times


async def measure(queries: list[str]) -> dict[str, Any]:
    """Search in turns by the library and over REST. The first round of each is not counted."""
    settings = Settings(store=f"sqlite:///{STORE}", query_cache_size=0)
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    async with Scout.open(settings=settings) as scout:
        tools = (await scout.overview()).total
        api = RestApi(scout, settings, authenticated=False)
        app = make_app(Gateway(scout, settings=settings), settings, allowed_hosts("127.0.0.1", port), api=api.behind)
        async with serve_in_background(app, listener):
            client = await asyncio.create_subprocess_exec(
                sys.executable, "-c", CLIENT, str(port), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            assert client.stdin is not None
            assert client.stdout is not None
            library: list[list[float]] = []
            rest: list[list[float]] = []
            for number in range(ROUNDS + 1):
                start = number * QUERIES % len(queries)
                batch = (queries[start:] + queries[:start])[:QUERIES]
                library.append(await library_times(scout, batch))
                client.stdin.write(json.dumps(batch).encode() + b"\n")
                rest.append(json.loads(await client.stdout.readline()))
            client.stdin.close()
            await client.wait()
    ratios = [statistics.median(one) / statistics.median(two) for one, two in zip(rest[1:], library[1:], strict=True)]
    return {
        "tools": tools,
        "searches": ROUNDS * QUERIES,
        "library_p50_ms": round(statistics.median(chain(*library[1:])), 3),
        "rest_p50_ms": round(statistics.median(chain(*rest[1:])), 3),
        "ratio": round(statistics.median(ratios), 3),
    }


def main() -> None:
    """Measure and write the table."""
    if not STORE.exists():
        raise SystemExit("run `python -m benchmarks.speed.catalogue` first: it makes the catalogue")
    asked = rows(bench_folder() / "livemcp_step" / "queries.jsonl") + rows(
        bench_folder() / "azure_mcp" / "queries.jsonl"
    )
    at = machine()
    figures = asyncio.run(measure([row["query"] for row in asked]))
    body = [[name, value, f"<= {ASKED}" if name == "ratio" else ""] for name, value in figures.items()]
    text = (
        f"# A search over REST\n\n`python -m benchmarks.gateway.rest`; {at}\n\n"
        "Whole searches, query embedding included, no cache. The client is a process of its own with one open"
        "\nconnection, which sends a request and reads the answer. The ratio is the median over rounds.\n\n"
    )
    save("rest", {"machine": at, **figures}, text + markdown(["figure", "measured", "asked"], body))


if __name__ == "__main__":
    main()
