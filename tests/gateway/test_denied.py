"""Refused requests are logged with address and reason, without secrets, and at a limited rate."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from guarantees import guarantee
from guarded import Clock, Guarded, guarded
from toolscout.gateway.denied import DeniedLog

pytestmark = guarantee("auth:token", "secret:nowhere")

START = "a request from 127.0.0.1 was refused with "


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, logger="toolscout")
    return caplog


async def refused(served: Guarded, token: str | None, logged: pytest.LogCaptureFixture, **headers: str) -> str:
    """Send a request that is refused, and return its log line."""
    logged.clear()
    assert (await served.post(token, {}, **headers)).status_code in (401, 403)
    (line,) = logged.messages
    assert line.startswith(START)
    assert not token or token.split("_", 2)[-1] not in line
    return line.removeprefix(START)


async def test_every_reason_to_refuse_a_key_is_in_the_log_with_its_id_and_without_its_secret(
    logged: pytest.LogCaptureFixture,
) -> None:
    async with guarded(reindex_interval_s=60) as served:
        good, old = await served.key("acme"), await served.key("acme", expires_at=1.0)
        number = good.split("_")[1]
        assert await refused(served, None, logged) == "401: no valid key or token was sent"
        assert await refused(served, "letmein", logged) == "401: no valid key or token was sent"
        assert await refused(served, "tsk_nonsense", logged) == "401: the key is malformed"
        unknown = f"tsk_{'a' * 10}_{'s' * 43}"
        assert await refused(served, unknown, logged) == "401: no key has the id aaaaaaaaaa"
        wrong = f"tsk_{number}_{'s' * 43}"
        assert await refused(served, wrong, logged) == f"401: the secret of the key {number} is wrong"
        assert await refused(served, old, logged) == f"401: the key {old.split('_')[1]} has expired"
        await served.scout.api_keys.revoke(number)
        served.clock.now += 2
        assert await refused(served, good, logged) == f"401: the key {number} was revoked"


async def test_a_missing_scope_a_foreign_host_and_a_foreign_page_are_in_the_log(
    logged: pytest.LogCaptureFixture,
) -> None:
    async with guarded(reindex_interval_s=60, auth_scope="tools") as served:
        key = await served.key("acme")
        assert await refused(served, key, logged) == "403: the key or token does not allow this"
        line = await refused(served, key, logged, Host="evil.example")
        assert line == "403: the Host 'evil.example' is not served here"
        line = await refused(served, key, logged, Origin="https://evil.example/\x1b[31m" + "x" * 500)
        assert line.startswith("403: the Origin 'https://evil.example/\\x1b[31mxxx")
        assert len(line) < 300


async def test_a_flood_is_counted_and_does_not_fill_the_log(logged: pytest.LogCaptureFixture) -> None:
    async def denies(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": []})

    async def send(message: Any) -> None:
        del message

    async def many(count: int) -> list[str]:
        logged.clear()
        for _ in range(count):
            await door({"type": "http", "client": ("10.0.0.1\n", 7)}, None, send)  # type: ignore[arg-type]
        return logged.messages

    clock = Clock()
    door = DeniedLog(denies, clock=clock)
    lines = await many(1_000)
    assert len(lines) == 30
    assert lines[0] == "a request from 10.0.0.1\\n was refused with 401: no valid key or token was sent"
    assert lines[-1].endswith("(further refusals in this minute are only counted)")
    clock.now += 60
    lines = await many(1)
    assert lines[0] == "970 more requests were refused"
    assert len(lines) == 2


async def test_an_unready_response_is_not_logged_as_a_refusal(logged: pytest.LogCaptureFixture) -> None:
    async def unready(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": []})

    async def send(message: Any) -> None:
        del message

    await DeniedLog(unready)({"type": "http"}, None, send)  # type: ignore[arg-type]
    assert logged.messages == []
