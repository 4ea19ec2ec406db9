"""Health checks: a replica is alive while it serves, and ready only while its store answers."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import time
from typing import cast

import pytest

from guarantees import guarantee
from servers import free_port
from serving import serve_command, serving
from toolscout import Scout
from toolscout.errors import StoreError
from toolscout.gateway import diagnostics
from toolscout.gateway.diagnostics import Readiness
from toolscout.models import Overview

WAIT_S = 10.0

pytestmark = guarantee("store:down")


class FakeScout:
    """A scout whose store does what the test says."""

    def __init__(self) -> None:
        self.ping_fails = self.never_loaded = False
        self.hangs = asyncio.Event()
        self.hangs.set()
        self.pings = 0

    async def ping(self) -> None:
        self.pings += 1
        await self.hangs.wait()
        if self.ping_fails:
            raise StoreError("connection to 10.1.2.3 as admin failed", hint="wait")

    async def overview(self) -> Overview:
        if self.never_loaded:
            raise StoreError("nothing is loaded", hint="wait")
        return Overview(total=0, tokens=0, categories=(), generation=0, model_id="")


async def test_a_store_that_answers_makes_a_replica_ready():
    assert await Readiness(cast("Scout", FakeScout())).reasons() == []


async def test_a_store_that_fails_makes_it_unready_and_one_that_is_back_ready_again():
    scout = FakeScout()
    readiness = Readiness(cast("Scout", scout))
    scout.ping_fails = True
    assert await readiness.reasons() == ["the store does not answer"]
    scout.ping_fails = False
    assert await readiness.reasons() == []


async def test_a_store_that_hangs_gets_one_ping_and_does_not_block_probes(monkeypatch):
    monkeypatch.setattr(diagnostics, "PING_S", 0.02)
    scout = FakeScout()
    readiness = Readiness(cast("Scout", scout))
    scout.hangs.clear()
    for _ in range(3):
        assert await readiness.reasons() == ["the store does not answer"]
    assert scout.pings == 1
    scout.hangs.set()
    assert await readiness.reasons() == []


async def test_a_replica_is_unready_until_it_has_loaded_a_catalogue_once():
    scout = FakeScout()
    readiness = Readiness(cast("Scout", scout))
    scout.never_loaded = scout.ping_fails = True
    assert await readiness.reasons() == ["the store does not answer", "no catalogue is loaded yet"]
    scout.never_loaded = scout.ping_fails = False
    assert await readiness.reasons() == []
    scout.never_loaded = True
    assert await readiness.reasons() == []


async def test_nothing_of_the_error_leaves_by_this_door():
    scout = FakeScout()
    scout.ping_fails = True
    assert "10.1.2.3" not in str(await Readiness(cast("Scout", scout)).reasons())


def ask(port: int, path: str, host: str = "") -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.process
def test_it_answers_on_a_port_of_its_own_and_the_main_port_has_only_health(tmp_path):
    port = free_port()
    with serving(tmp_path, "--diagnostics", str(port)) as gateway:
        assert ask(port, "/livez") == (200, {"status": "ok"})
        assert ask(port, "/readyz") == (200, {"status": "ok", "reasons": []})
        assert ask(port, "/readyz", host="evil.example")[0] == 403
        assert ask(gateway.port, "/health")[1]["status"] == "ok"
        for there, path in ((gateway.port, "/livez"), (gateway.port, "/readyz"), (port, "/mcp"), (port, "/health")):
            connection = http.client.HTTPConnection("127.0.0.1", there, timeout=WAIT_S)
            connection.request("GET", path)
            assert connection.getresponse().status == 404
            connection.close()


@pytest.mark.process
def test_sigterm_makes_it_unready_first_and_it_serves_on_until_it_has_drained(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSCOUT_DRAIN_S", "2")
    port = free_port()
    with serving(tmp_path, "--diagnostics", str(port)) as gateway:
        gateway.process.send_signal(signal.SIGTERM)
        ends = time.monotonic() + WAIT_S
        while ask(port, "/readyz")[0] == 200:
            assert time.monotonic() < ends
        assert ask(port, "/readyz") == (503, {"status": "unready", "reasons": ["the process is stopping"]})
        assert ask(port, "/livez")[0] == 200
        assert ask(gateway.port, "/health")[1]["status"] == "ok"
        assert gateway.process.wait(WAIT_S) == 0


@pytest.mark.process
def test_a_second_signal_ends_the_wait(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSCOUT_DRAIN_S", "600")
    port = free_port()
    with serving(tmp_path, "--diagnostics", str(port)) as gateway:
        gateway.process.send_signal(signal.SIGTERM)
        ends = time.monotonic() + WAIT_S
        while ask(port, "/readyz")[0] == 200:
            assert time.monotonic() < ends
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WAIT_S) == 0


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--diagnostics", "9000"], "--diagnostics requires --http"),
        (["--http", "0", "--diagnostics", "nine"], "--diagnostics takes [HOST:]PORT"),
    ],
)
def test_a_wrong_diagnostics_port_is_a_usage_error(tmp_path, options, said):
    ran = subprocess.run(serve_command(tmp_path, *options), capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 2
    assert said in ran.stderr
