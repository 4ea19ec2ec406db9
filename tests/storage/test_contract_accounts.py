"""Every store keeps accounts alike: encrypted, by tenant, user, server and issuer, and until user or server goes."""

import asyncio
import json

import pytest

from guarantees import guarantee
from guarded import WAIT_S, Counting
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.errors import SettingError, UnreadableAccountError
from toolscout.models import ACCOUNT_KIND, Account, Scope
from toolscout.settings import Settings
from toolscout.token_cipher import TokenCipher, new_key
from toolscout.token_keys import TokenKeys
from waiting import eventually

pytestmark = guarantee("signin:bound", "store:contract")

ANN, BOB = Scope(tenant="acme", owner="ann"), Scope(tenant="acme", owner="bob")
OTHER = Scope(tenant="zeta", owner="ann")


def account(scope, server="notes", issuer="https://issuer.example", token="secret-token"):
    return Account(
        scope=scope,
        server=server,
        issuer=issuer,
        url="https://notes.example/mcp",
        resource="https://notes.example/mcp",
        client={"client_id": "me"},
        token_endpoint=f"{issuer}/token",
        access_token=token,
        refresh_token="refresh-" + token,
    )


@pytest.fixture
def accounts(store):
    cipher = TokenCipher([b"k" * 32])
    return AccountStore(store, lambda: cipher)


async def test_accounts_are_apart_by_tenant_user_server_and_issuer(accounts):
    stored = [account(scope, token=f"{scope.tenant}-{scope.owner}-token") for scope in (ANN, BOB, OTHER)]
    for item in [*stored, account(ANN, "mail"), account(ANN, "notes-2")]:
        await accounts.put(item)
    for item in stored:
        assert await accounts.find(item.scope, "notes") == item
    assert await accounts.find(BOB, "mail") is None
    moved = account(ANN, issuer="https://other.example")
    await accounts.put(moved)
    assert await accounts.find(ANN, "notes") == moved
    assert len([item for item in await accounts.find_all(ANN) if item.server == "notes"]) == 1


async def test_no_store_holds_a_token_in_clear_text(accounts):
    await accounts.put(account(ANN))
    (record,) = await accounts.store.records(ACCOUNT_KIND)
    assert "secret-token" not in json.dumps(dict(record.body))
    assert set(record.body) == {"key_id", "wrapped", "sealed"}


async def test_removing_a_user_removes_their_accounts_alone(accounts):
    for scope in (ANN, BOB, OTHER):
        await accounts.put(account(scope))
    await accounts.store.remove_user("acme", "ann")
    assert {item.scope for item in await accounts.find_all()} == {BOB, OTHER}


async def test_a_rotated_key_opens_nothing_that_it_did_not_seal(store):
    old, new = b"o" * 32, b"n" * 32
    await AccountStore(store, lambda: TokenCipher([old])).put(account(ANN))
    both = AccountStore(store, lambda: TokenCipher([new, old]))
    assert (await both.reseal()).count == 1
    assert (await both.reseal()).count == 0
    assert await AccountStore(store, lambda: TokenCipher([new])).find(ANN, "notes") == account(ANN)
    with pytest.raises(UnreadableAccountError, match="which is not here"):
        await AccountStore(store, lambda: TokenCipher([old])).find(ANN, "notes")


async def test_an_account_that_changes_during_a_rotation_keeps_its_new_token(store):
    old, new = b"o" * 32, b"n" * 32
    await AccountStore(store, lambda: TokenCipher([old])).put(account(ANN))
    renewed, watched = account(ANN, token="renewed-token"), Counting(store)
    gateway = AccountStore(store, lambda: TokenCipher([old]))

    async def rotation_has_listed():
        return "lease" in watched.used

    async with gateway.changing(ANN, "notes"):
        rotation = asyncio.create_task(AccountStore(watched, lambda: TokenCipher([new, old])).reseal())
        await eventually(rotation_has_listed, WAIT_S)
        await gateway.put(renewed)
    assert (await rotation).count == 1
    assert await AccountStore(store, lambda: TokenCipher([new])).find(ANN, "notes") == renewed


async def test_a_gateway_that_runs_during_a_rotation_seals_with_the_new_key(store):
    old, new = b"o" * 32, b"n" * 32
    keys = [old]
    gateway = AccountStore(store, lambda: TokenCipher(keys))
    await gateway.put(account(ANN))
    keys[:] = [new, old]
    await AccountStore(store, lambda: TokenCipher(keys)).reseal()
    keys[:] = [new]
    await gateway.put(account(BOB))
    restarted = AccountStore(store, lambda: TokenCipher([new]))
    assert [item.scope for item in await restarted.find_all()] == [ANN, BOB]


async def test_an_account_that_is_stored_while_the_key_is_replaced_gets_the_new_one(store):
    old, new = b"o" * 32, b"n" * 32
    watched = Counting(store)
    racing = AccountStore(watched, lambda: TokenCipher([new] if "put_records" in watched.used else [old]))
    await racing.put(account(ANN))
    assert await AccountStore(store, lambda: TokenCipher([new])).find(ANN, "notes") == account(ANN)


async def test_an_account_whose_key_is_lost_leaves_the_others_usable_and_can_be_removed(store):
    await AccountStore(store, lambda: TokenCipher([b"lost" * 8])).put(account(ANN))
    old, new = b"o" * 32, b"n" * 32
    await AccountStore(store, lambda: TokenCipher([old])).put(account(BOB))
    accounts = AccountStore(store, lambda: TokenCipher([new, old]))
    assert [item.scope for item in await accounts.find_all()] == [BOB]
    (lost,) = await accounts.find_unreadable()
    assert (lost.scope, lost.server, lost.issuer) == (ANN, "notes", "https://issuer.example")
    resealed = await accounts.reseal()
    assert (resealed.count, resealed.unreadable) == (1, (lost,))
    with pytest.raises(UnreadableAccountError):
        await accounts.find(ANN, "notes")
    assert await accounts.look_up(ANN, "notes") == lost
    await accounts.remove(lost)
    assert await accounts.look_up(ANN, "notes") is None


def test_keys_in_the_data_folder_are_made_once_and_read_again_when_they_change(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    settings = Settings(store="memory:")
    keys, other = TokenKeys(settings), TokenKeys(settings)
    sealed = keys.cipher().seal({"a": 1}, "here")
    old = other.add_new()
    assert keys.cipher().open(sealed, "here") == {"a": 1}
    assert not keys.cipher().is_newest(sealed)
    other.remove(old)
    assert not keys.cipher().knows(sealed)
    (tmp_path / "toolscout" / "token.key").unlink()
    with pytest.raises(SettingError, match="cannot be read"):
        keys.cipher()
    assert not (tmp_path / "toolscout" / "token.key").exists(), "accounts may need the key that got lost"


def test_a_gateway_on_postgresql_needs_a_key_that_its_replicas_share(tmp_path):
    with pytest.raises(SettingError, match="TOOLSCOUT_TOKEN_KEY is not set"):
        TokenKeys(Settings(store="postgresql://db/tools")).cipher()
    TokenKeys(Settings(store="postgresql://db/tools", token_key=new_key())).cipher()
    with pytest.raises(SettingError, match="not a key") as failed:
        TokenKeys(Settings(token_key="hush")).cipher()
    assert "hush" not in str(failed.value)
