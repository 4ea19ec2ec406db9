"""API keys: the secret is not stored, and a revocation is final."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from toolscout import InvalidValueError, Scout, Settings, ToolNotFoundError
from toolscout.errors import AuthError, ConflictError
from toolscout.policy.api_keys import caller_of_key, mint_key, opens, split_token
from toolscout.policy.claims import ClaimMap, caller_from_claims


def test_a_key_opens_with_its_own_secret_until_it_ends() -> None:
    text, key = mint_key(tenant="acme", user="ann", groups=["g"], scopes=["s"], now=1.0, expires_at=10.0)
    number, secret = split_token(text) or ("", "")
    assert number == key.id
    assert opens(key, secret, 9.0)
    assert not opens(key, secret, 10.0)
    assert not opens(replace(key, revoked_at=5.0), secret, 6.0)
    assert not opens(key, secret[:-1] + ("a" if secret[-1] != "a" else "b"), 9.0)
    assert secret not in json.dumps(asdict(key))
    caller = caller_of_key(key)
    assert (caller.tenant, caller.user, caller.groups, caller.scopes, caller.key) == (
        "acme",
        "ann",
        {"g"},
        {"s"},
        key.id,
    )


def test_no_two_keys_are_alike() -> None:
    made = [mint_key(tenant="acme", now=1.0)[0] for _ in range(1_000)]
    assert len({split_token(text) for text in made} - {None}) == 1_000


@pytest.mark.parametrize("text", ["", "tsk_", "tsk_ab12cd34ef", "tsk_ab12cd34ef_short", "tsk_AB12CD34EF_" + "x" * 43])
def test_what_has_not_the_form_of_a_key_is_none(text: str) -> None:
    assert split_token(text) is None


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x1b[31m", "\u202ea", "\udcff", "x" * 257])
def test_a_name_that_is_not_printable_is_refused(name: str) -> None:
    for wrong in ({"tenant": name}, {"tenant": "t", "user": name}, {"tenant": "t", "groups": [name]}):
        with pytest.raises(InvalidValueError):
            mint_key(now=1.0, **wrong)
    with pytest.raises(AuthError):
        caller_from_claims({"sub": name}, ClaimMap())
    with pytest.raises(AuthError):
        caller_from_claims({"sub": "ann", "org": name}, ClaimMap(tenant="org"))
    assert caller_from_claims({"sub": "ann", "groups": [name, "good"]}, ClaimMap()).groups <= {"good", *name.split()}


@pytest.fixture
async def scout() -> Any:
    async with Scout.open(settings=Settings(store="memory:", embedder="none")) as opened:
        yield opened


async def test_the_last_use_is_remembered_and_undoes_no_revocation(scout: Scout) -> None:
    text, key = await scout.api_keys.create(tenant="acme")
    _, secret = split_token(text) or ("", "")
    assert (await scout.api_keys.list_all())[0].last_used_at is None
    await asyncio.gather(*(scout.api_keys.find(key.id, secret) for _ in range(5)), scout.api_keys.revoke(key.id))
    (kept,) = await scout.api_keys.list_all("acme")
    assert kept.revoked_at is not None
    assert kept.last_used_at is not None
    record = await scout.api_keys.find(key.id, secret)
    assert record is not None
    assert not record.usable(0.0)


async def test_keys_are_listed_the_newest_first_and_by_tenant(scout: Scout) -> None:
    made = [(await scout.api_keys.create(tenant=tenant))[1].id for tenant in ("a", "b", "a")]
    assert [key.id for key in await scout.api_keys.list_all()] == made[::-1]
    assert [key.id for key in await scout.api_keys.list_all("a")] == [made[2], made[0]]
    assert await scout.api_keys.find("nothing", "") is None
    with pytest.raises(ToolNotFoundError) as caught:
        await scout.api_keys.revoke(made[0][:-1])
    assert made[0] in caught.value.suggestions


async def test_revoking_twice_keeps_the_first_moment(scout: Scout) -> None:
    _, key = await scout.api_keys.create(tenant="acme")
    first = await scout.api_keys.revoke(key.id)
    assert (await scout.api_keys.revoke(key.id)).revoked_at == first.revoked_at


async def test_rotating_replaces_a_key_of_which_nothing_else_changes(scout: Scout) -> None:
    _, old = await scout.api_keys.create(
        tenant="acme", user="ann", groups=["g"], scopes=["s"], note="n", expires_at=9e9
    )
    text, new = await scout.api_keys.rotate(old.id)
    assert opens(new, (split_token(text) or ("", ""))[1], new.created_at)
    own = {"id", "digest", "created_at"}
    assert {name: value for name, value in asdict(new).items() if name not in own} == {
        name: value for name, value in asdict(old).items() if name not in own
    }
    kept = {key.id: key.revoked_at is None for key in await scout.api_keys.list_all()}
    assert kept == {old.id: False, new.id: True}


@pytest.mark.parametrize("state", ["revoked", "expired"])
async def test_a_key_that_opens_nothing_is_not_rotated(scout: Scout, state: str) -> None:
    _, key = await scout.api_keys.create(tenant="acme", expires_at=1.0 if state == "expired" else None)
    if state == "revoked":
        await scout.api_keys.revoke(key.id)
    with pytest.raises(ConflictError, match=state):
        await scout.api_keys.rotate(key.id, expires_at=9e9)
    assert len(await scout.api_keys.list_all()) == 1
