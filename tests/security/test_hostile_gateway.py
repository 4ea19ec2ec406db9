"""Hostile servers attack a running gateway while a healthy server is called 50 times a second. None of the calls fails.

A second gateway, without hostile servers, is called as often at the same time. How long its calls take counts as quiet,
however busy the machine is.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from downstreams import FAKE, WAIT_S, alive, resident_mib, until
from guarantees import guarantee
from servers import free_port
from serving import Serving, serving

pytestmark = [pytest.mark.process, pytest.mark.timing]

TESTS = Path(__file__).parent.parent
MODERN = "2026-07-28"
CALLS, CALLS_PER_S = 100, 50
WINDOWS = 3
"""How often the times are measured while an attack goes on, until they are as they should be."""
SHORTEST_S = 0.05
"""Shorter times are those of a scheduler that other tests keep busy, and no measure of ours."""
MOST_MIB = 100.0
MOST_WORKER_MIB = 150.0
"""How large one of the processes may be that examine definitions and check arguments."""


@dataclass
class Gateways:
    """The gateway that is attacked, and the one that is left alone."""

    folder: Path
    attacked: Serving
    quiet: Serving
    http: httpx2.AsyncClient

    async def ask(self, method: str, *, of: Serving | None = None, **params: Any) -> Any:
        """Send one request and return the response."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": params.get("name", "")}
        answer = await self.http.post((of or self.attacked).url, content=json.dumps(body).encode(), headers=headers)
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        return json.loads(lines[-1] if lines else answer.text)

    async def call(self, key: str, arguments: Any, *, of: Serving | None = None) -> Any:
        """Call a tool and return its result."""
        arguments = {"name": key, "arguments": arguments}
        return (await self.ask("tools/call", of=of, name="call_tool", arguments=arguments))["result"]

    async def times(self, of: Serving) -> list[float]:
        """Call the healthy server of a gateway for some seconds, and return how long each call took."""
        loop = asyncio.get_running_loop()

        async def call() -> float:
            started = loop.time()
            result = await self.call("healthy__echo", {"text": "hello"}, of=of)
            assert not result.get("isError"), result
            return loop.time() - started

        first, calls = loop.time(), []
        for number in range(CALLS):
            calls.append(asyncio.create_task(call()))
            await asyncio.sleep(first + (number + 1) / CALLS_PER_S - loop.time())
        return sorted(await asyncio.gather(*calls))

    async def check_times(self) -> None:
        """Check that of the calls to the healthy server none fails, and few take longer than without an attack."""
        measured = []
        for _ in range(WINDOWS):
            times, quiet = await asyncio.gather(self.times(self.attacked), self.times(self.quiet))
            measured.append((p95(times), p95(quiet)))
            if p95(times) <= 2 * max(p95(quiet), SHORTEST_S):
                return
        raise AssertionError(f"p95 with and without the attack: {measured}")

    def configure(self, **hostile: Any) -> None:
        """Write the config of the attacked gateway, which follows it."""
        write_config(self.folder, **hostile)


def p95(times: list[float]) -> float:
    return times[len(times) * 95 // 100]


def write_config(folder: Path, **servers: Any) -> None:
    healthy = {"command": sys.executable, "args": [FAKE, str(folder / "healthy.log"), "--names", "echo"]}
    text = json.dumps({"mcpServers": {"healthy": healthy, **servers}})
    (folder / "new.json").write_text(text)
    (folder / "new.json").replace(folder / "mcp.json")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Serving, Serving]]:
    """Start both gateways. The one that is attacked must survive all attacks, and log none of their escapes."""
    folder, other = tmp_path_factory.mktemp("attacked"), tmp_path_factory.mktemp("quiet")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("TOOLSCOUT_EMBEDDER", "none")
        patch.setenv("TOOLSCOUT_REINDEX_INTERVAL_S", "0.1")
        patch.setenv("TOOLSCOUT_AUDIT", "none")
        write_config(folder)
        write_config(other)
        attacked, quiet = (stack.enter_context(serving(each)) for each in (folder, other))
        yield folder, attacked, quiet
        assert attacked.process.poll() is None
        log = attacked.log.read_text()
    assert "Traceback" not in log
    assert "\x1b" not in log
    assert "\nERROR" not in log


@pytest.fixture
async def gateways(served: tuple[Path, Serving, Serving]) -> AsyncIterator[Gateways]:
    """Wait until both gateways call their healthy server."""
    async with httpx2.AsyncClient(timeout=WAIT_S, limits=httpx2.Limits(max_connections=None)) as http:
        both = Gateways(*served, http=http)
        for each in served[1:]:
            async with asyncio.timeout(WAIT_S):
                while (await both.call("healthy__echo", {"text": "hello"}, of=each)).get("isError"):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        yield both


@contextmanager
def bounded_gateway(gateway: Serving) -> Iterator[None]:
    """Fail if a gateway grows by more than it may while the block runs, or if one of its workers is too large."""
    pid = gateway.process.pid
    before, peak, worker, stop = resident_mib(pid), [0.0], [0.0], threading.Event()

    def look() -> None:
        while not stop.wait(0.02):
            peak[0] = max(peak[0], resident_mib(pid))
            worker[0] = max(worker[0], *map(resident_worker_mib, children(pid)), 0.0)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    assert peak[0] - before <= MOST_MIB, f"{before:.0f} MiB became {peak[0]:.0f} MiB"
    assert worker[0] <= MOST_WORKER_MIB, f"a worker has {worker[0]:.0f} MiB"


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def resident_worker_mib(pid: int) -> float:
    """Return how large a worker is, 0 for other processes and one that has just ended."""
    with suppress(OSError):
        if b"toolscout.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return resident_mib(pid)
    return 0.0


def is_running(sign: Path) -> bool:
    """Return whether the process that has written its id into a file is running."""
    text = sign.read_text() if sign.exists() else ""
    return bool(text) and alive(int(text))


@contextmanager
def hostile_url(name: str, sign: Path) -> Iterator[dict[str, Any]]:
    """Run a hostile server behind a URL, and return its config."""
    port = free_port()
    server = subprocess.Popen([sys.executable, str(TESTS / "hostile_http.py"), name, str(port), str(sign)])
    try:
        yield {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "toolscout": {"private": True}}
    finally:
        server.kill()
        server.wait()


@asynccontextmanager
async def attack(
    gateways: Gateways, hostile: dict[str, Any], sign: Path, *, meanwhile: Callable[[], Awaitable[bool]] | None = None
) -> AsyncIterator[None]:
    """Put a hostile server behind the gateway until the end of the block, which begins when the attack has begun.

    `meanwhile` is done again and again until then. It says whether it was of any use.
    """
    gateways.configure(hostile=hostile)
    ended, useful = asyncio.Event(), asyncio.Event()

    async def repeat() -> None:
        while meanwhile is not None and not ended.is_set():
            if await meanwhile():
                useful.set()
            await asyncio.sleep(0.3)

    task = asyncio.create_task(repeat())
    try:
        async with asyncio.timeout(WAIT_S):
            await until(sign.exists)
            if meanwhile is not None:
                await useful.wait()
        yield
    finally:
        ended.set()
        await task
        gateways.configure()
        await until(lambda: not is_running(sign))


def stdio(name: str, sign: Path) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(TESTS / "hostile_server.py"), name, str(sign)]}


DEFINITIONS = ("meta", "dense", "many", "values", "endless_tools", "escapes")
FLOODS = ("pings", "changes", "garbage", "blanks", "endless", "large", "standard_error")
ANSWERS = ("long_text", "many_items", "long_error", "many_questions")
LISTS = ("endless_resources", "many_prompts")
STREAMS = (
    "stream_of_pings",
    "stream_of_garbage",
    "stream_that_ends",
    "endless_error",
    "endless_metadata",
    "dense_list",
)


@guarantee("fault:index")
@pytest.mark.parametrize("name", DEFINITIONS)
async def test_no_definition_delays_the_calls_of_another_server(gateways, tmp_path, name):
    sign = tmp_path / "sign"
    with bounded_gateway(gateways.attacked):
        async with attack(gateways, stdio(name, sign), sign):
            await gateways.check_times()


@guarantee("fault:flood")
@pytest.mark.parametrize("name", FLOODS)
async def test_no_flood_of_messages_delays_the_calls_of_another_server(gateways, tmp_path, name):
    sign = tmp_path / "sign"
    with bounded_gateway(gateways.attacked):
        async with attack(gateways, stdio(name, sign), sign):
            await gateways.check_times()


@guarantee("fault:flood", "fault:body")
@pytest.mark.parametrize("name", STREAMS)
async def test_no_stream_of_a_url_delays_the_calls_of_another_server(gateways, tmp_path, name):
    sign = tmp_path / "sign"
    with hostile_url(name, sign) as entry, bounded_gateway(gateways.attacked):
        async with attack(gateways, entry, sign):
            await gateways.check_times()


@guarantee("fault:huge")
@pytest.mark.parametrize("name", ANSWERS)
async def test_no_answer_delays_the_calls_of_another_server(gateways, tmp_path, name):
    sign = tmp_path / "sign"

    async def called() -> bool:
        return "tool_not_found" not in json.dumps(await gateways.call(f"hostile__{name}", {}))

    with bounded_gateway(gateways.attacked):
        async with attack(gateways, stdio(name, sign), sign, meanwhile=called):
            await gateways.check_times()


@guarantee("fault:huge")
@pytest.mark.parametrize("name", LISTS)
async def test_no_list_of_resources_or_prompts_delays_the_calls_of_another_server(gateways, tmp_path, name):
    sign = tmp_path / "sign"

    async def listed() -> bool:
        answers = [await gateways.ask(f"{kind}/list") for kind in ("resources", "prompts")]
        return sign.exists() and all("result" in answer for answer in answers)

    with bounded_gateway(gateways.attacked):
        async with attack(gateways, stdio(name, sign), sign, meanwhile=listed):
            await gateways.check_times()


SCHEMAS: dict[str, tuple[str, dict[str, Any]]] = {
    "schemas": (
        "cannot be checked",
        {
            "pattern": {"a": "a" * 64 + "b"},
            "ladder": {"a": 1},
            "unique": {"a": [{"n": number} for number in range(20_000)]},
        },
    ),
    "long_schemas": ("", {"required": {}, "enum": {"a": ["x"] * 200}, "unused": {}}),
}
"""What is given to the tools of each server, and what every answer says."""


@guarantee("fault:schema")
@pytest.mark.parametrize("name", SCHEMAS)
async def test_no_schema_delays_the_calls_of_another_server(gateways, tmp_path, name):
    sign, (answer, attempts) = tmp_path / "sign", SCHEMAS[name]

    async def called() -> bool:
        results = await asyncio.gather(*(gateways.call(f"hostile__{key}", given) for key, given in attempts.items()))
        texts = [json.dumps(result) for result in results]
        return all(answer in text and "tool_not_found" not in text for text in texts)

    with bounded_gateway(gateways.attacked):
        async with attack(gateways, stdio(name, sign), sign, meanwhile=called):
            await gateways.check_times()
