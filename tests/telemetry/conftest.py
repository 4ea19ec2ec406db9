"""A gateway that sends its spans and serves its metrics, and its servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from collector import CollectedSpan, Collector, collecting
from downstreams import Fake, fake, until
from fake_http import FakeHttp, fake_http
from scraping import samples, scrape, until_indexed
from servers import free_port
from serving import Serving, serving, write_config
from toolscout.config import ServerConfig


@dataclass(frozen=True)
class Traced:
    """A gateway that sends its spans, and its servers: one over stdio, one over HTTP, and one that is down."""

    gateway: Serving
    collector: Collector
    fake: Fake
    http: FakeHttp
    diagnostics: int

    async def call(self, name: str, arguments: Any = None, *, mode: Any = "auto", **headers: str) -> Any:
        """Call a tool of the gateway, with headers or `_meta` of the caller's."""
        meta: Any = {"traceparent": headers.pop("meta")} if "meta" in headers else None
        async with (
            httpx2.AsyncClient(headers=headers) as carrier,
            Client(streamable_http_client(self.gateway.url, http_client=carrier), mode=mode) as client,
        ):
            return await client.call_tool(name, arguments or {}, meta=meta)

    def metrics(self) -> dict[str, float]:
        """Read its metrics."""
        return samples(scrape(self.diagnostics))

    async def spans(self, name: str, trace: str) -> list[CollectedSpan]:
        """Wait until a span of that name has arrived in a trace; then return the trace."""
        await until(lambda: any(item.name == name and item.trace_id == trace for item in self.collector.spans()))
        return [item for item in self.collector.spans() if item.trace_id == trace]


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    folder, port = tmp_path_factory.mktemp("traced"), free_port()
    with ExitStack() as stack:
        collector, http = stack.enter_context(collecting()), stack.enter_context(fake_http())
        stdio = fake(folder, "fake", "--names", "echo,error")
        web = ServerConfig(title="web", transport="http", url=f"{http.origin}/mcp", private=True)
        gone = ServerConfig(title="gone", transport="http", url="http://127.0.0.1:9/mcp", private=True)
        write_config(folder, stdio.config, web, gone)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in collector.environment.items():
                patch.setenv(name, value)
            gateway = stack.enter_context(serving(folder, "--diagnostics", str(port)))
        until_indexed(port, 4)
        yield Traced(gateway, collector, stdio, http, port)
