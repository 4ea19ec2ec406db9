"""Every store keeps accounts alike: encrypted, by tenant, user, server and issuer, and until user or server goes."""

import json

import pytest

from guarantees import guarantee
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.errors import SettingError, StoreError
from toolscout.models import ACCOUNT_KIND, Account, Scope
from toolscout.settings import Settings
from toolscout.token_cipher import TokenCipher, new_key, open_cipher

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
    assert await both.reseal() == 1
    assert await both.reseal() == 0
    assert await AccountStore(store, lambda: TokenCipher([new])).find(ANN, "notes") == account(ANN)
    with pytest.raises(StoreError, match="which is not here"):
        await AccountStore(store, lambda: TokenCipher([old])).find(ANN, "notes")


def test_a_gateway_on_postgresql_needs_a_key_that_its_replicas_share(tmp_path):
    with pytest.raises(SettingError, match="TOOLSCOUT_TOKEN_KEY is not set"):
        open_cipher(Settings(store="postgresql://db/tools"))
    open_cipher(Settings(store="postgresql://db/tools", token_key=new_key()))
    with pytest.raises(SettingError, match="not a key") as failed:
        open_cipher(Settings(token_key="hush"))
    assert "hush" not in str(failed.value)
