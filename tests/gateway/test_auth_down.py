"""While the database is down, verified callers keep access, and no valid key is called invalid."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import psycopg
import pytest
from starlette.authentication import AuthenticationError

from guarantees import guarantee
from guarded import Clock, guarded
from postgres_server import PostgresServer, with_database
from raw_client import raw_client
from scripted import Scripted
from toolscout.errors import StoreError, StoreUnreachableError
from toolscout.gateway.auth.bearer import BearerVerifier
from toolscout.models import ApiKey
from toolscout.policy.api_keys import mint_key
from waiting import eventually

RECOVERY_S = 5.0
ASK_AGAIN_S = 5.01


@pytest.fixture
def tools() -> Scripted:
    """Return a server with one tool."""
    server = Scripted("demo")
    server.tool("echo", description="Say back what was said")
    return server


@guarantee("store:down")
async def test_cached_keys_still_work_while_the_database_is_down(fragile: PostgresServer, tools: Scripted) -> None:
    with psycopg.connect(fragile.url, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS keys_down WITH (FORCE)")
        admin.execute("CREATE DATABASE keys_down")
    async with guarded({"acme": [tools]}, store=with_database(fragile.url, "keys_down"), surface="all") as served:
        known, stranger, revoked = [await served.key("acme") for _ in range(3)]
        expired = await served.key("acme", expires_at=time.time() - 1)
        await served.scout.api_keys.revoke(revoked.split("_")[1])
        unknown = "tsk_" + "a" * 10 + "_" + "b" * 43
        wrong = known[:-1] + ("A" if known[-1] != "A" else "B")
        assert await served.names(known) == ["demo__echo"]
        for bad in (revoked, expired, unknown, wrong):
            assert (await served.ask(bad, "tools/list")).status_code == 401

        await asyncio.to_thread(fragile.stop)
        for _ in range(2):
            served.clock.now += ASK_AGAIN_S
            assert await served.names(known) == ["demo__echo"]
        for bad in (revoked, expired, wrong):
            assert (await served.ask(bad, "tools/list")).status_code == 401
        for unsure in (stranger, unknown):
            later = await served.ask(unsure, "tools/list")
            assert (later.status_code, later.headers["retry-after"]) == (503, "1")
            assert later.json()["error"]["code"] == "store_unavailable"
            assert "www-authenticate" not in later.headers
            assert str(fragile.port) not in later.text, "who is not let in is not told where the database is"

        await asyncio.to_thread(fragile.start)

        async def opens() -> bool:
            return (await served.ask(stranger, "tools/list")).status_code == 200

        await eventually(opens, RECOVERY_S)
        await served.scout.api_keys.revoke(known.split("_")[1])
        served.clock.now += ASK_AGAIN_S
        assert (await served.ask(known, "tools/list")).status_code == 401


@guarantee("store:restore")
@pytest.mark.parametrize("damage", ["gone", "garbage"])
async def test_no_key_is_accepted_while_the_file_is_gone_or_garbage(tmp_path: Path, tools: Scripted, damage) -> None:
    file, kept = tmp_path / "catalogue.db", tmp_path / "kept.db"
    async with guarded({"acme": [tools]}, store=f"sqlite:///{file}", surface="all") as served:
        known = await served.key("acme")
        assert await served.names(known) == ["demo__echo"]
        kept.hardlink_to(file)
        if damage == "gone":
            file.unlink()
        else:
            put_garbage(file)
        for _ in range(2):
            served.clock.now += ASK_AGAIN_S
            refused = await served.ask(known, "tools/list")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert str(tmp_path) not in refused.text
        kept.replace(file)
        served.clock.now += ASK_AGAIN_S
        assert await served.names(known) == ["demo__echo"]


def put_garbage(file: Path) -> None:
    """Let a file that is no catalogue take the place of one."""
    garbage = file.with_name("garbage.db")
    garbage.write_bytes(b"not a catalogue" * 1_000)
    garbage.replace(file)


@guarantee("store:down")
async def test_a_key_works_even_if_its_last_use_cannot_be_stored(tools: Scripted) -> None:
    async with guarded({"acme": [tools]}) as served:
        good = await served.key("acme")
        served.store.connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError):
            await served.key("acme")
        assert (await served.ask(good, "tools/list")).status_code == 200


@guarantee("store:restore")
async def test_callers_are_not_told_where_the_file_is(open_gateway, demo, tmp_path: Path) -> None:
    file = tmp_path / "catalogue.db"
    async with (
        open_gateway(demo, store=f"sqlite:///{file}") as opened,
        raw_client(opened.server, "2026-07-28") as client,
    ):
        put_garbage(file)
        got = await client.request("tools/call", {"name": "search_tools", "arguments": {"query": "echo"}})
    error = got["structuredContent"]["error"]
    assert error["code"] == "store_unavailable"
    assert error["message"].startswith("the catalogue")
    assert str(tmp_path) not in json.dumps(got)


@guarantee("store:down")
async def test_an_outage_does_not_fill_the_log_with_retries(
    fragile: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(fragile.url, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS keys_logged WITH (FORCE)")
        admin.execute("CREATE DATABASE keys_logged")
    async with guarded(store=with_database(fragile.url, "keys_logged"), reindex_interval_s=60) as served:
        stranger = await served.key("acme")
        await asyncio.to_thread(fragile.stop)
        caplog.clear()
        answers = await asyncio.gather(*(served.post(stranger, {}) for _ in range(40)))
        assert {answer.status_code for answer in answers} == {503}
        lines = [line for line in caplog.messages if "a key cannot be looked up now" in line]
        assert len(lines) == 30
        assert lines[0].startswith("a request from 127.0.0.1 was refused with 503: a key cannot be looked up now: ")
        assert lines[-1].endswith("(further refusals in this minute are only counted)")
        assert stranger.split("_", 2)[-1] not in caplog.text
        await asyncio.to_thread(fragile.start)


@guarantee("store:down", "auth:token")
async def test_keys_that_do_not_exist_push_out_none_that_does() -> None:
    text, key = mint_key(tenant="acme", now=time.time())
    kept, down = {key.id: key}, False

    async def find(number: str, _secret: str) -> ApiKey | None:
        if down:
            raise StoreUnreachableError("away", hint="")
        return kept.get(number)

    clock = Clock()
    door = BearerVerifier(find, None, clock=clock)
    assert await door.verify_token(text)
    for number in range(5_000):
        assert await door.verify_token(f"tsk_{number:010}_{'s' * 43}") is None
    clock.now += ASK_AGAIN_S
    down = True
    assert await door.verify_token(text), "what was known of it last is still true"

    clock.now += ASK_AGAIN_S
    down = False
    kept.clear()
    assert await door.verify_token(text) is None
    clock.now += ASK_AGAIN_S
    down = True
    with pytest.raises(AuthenticationError):
        await door.verify_token(text)
