"""Attacks on a sign-in: other issuers, forged answers, metadata that leads elsewhere, rows that are moved."""

import logging
from dataclasses import replace

import pytest
from starlette.applications import Starlette

from downstreams import QUICK, WAIT_S, until
from fake_http import fake_http
from guarantees import guarantee
from sign_ins import REDIRECT, consent, desk, protected, ready
from toolscout.config import ServerConfig
from toolscout.errors import SignInError, SignInRequiredError, StoreError
from toolscout.gateway.auth.authentication import authentication_for
from toolscout.gateway.connect import CALLBACK, CLIENT_DOCUMENT, ConnectPages
from toolscout.gateway.http_limits import Refusals
from toolscout.models import ACCOUNT_KIND, Account, Caller, Record, Scope
from toolscout.scout.transfer import export_catalogue
from waiting import eventually
from web import serving

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server)


@pytest.mark.parametrize("answered", ["https://attacker.example", ""])
async def test_an_answer_from_another_issuer_is_refused_before_the_code_is_sent_anywhere(
    config, tmp_path, authorization_server, answered
):
    authorization_server.switch(callback_iss=answered)
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError, match="another issuer"):
            await here.sign_in()
        assert await here.accounts.stored.find_all() == []
    assert "token:authorization_code" not in authorization_server.counts()


@pytest.mark.guarantee("egress:ssrf")
@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"issuer": "https://attacker.example"}, "calls itself by another name"),
        ({"token_endpoint": "http://169.254.169.254/token"}, "not an https address"),
        ({"token_endpoint": "http://attacker.example/token"}, "not an https address"),
        ({"authorization_endpoint": "http://attacker.example/authorize"}, "not an https address"),
        ({"revocation_endpoint": "http://127.0.0.1:1/revoke"}, "not an https address"),
        ({"registration_endpoint": "https://127.0.0.1:1/register"}, "may not connect to"),
        ({"token_endpoint": "https://10.0.0.1/token"}, "may not connect to"),
        ({"token_endpoint": "https://169.254.169.254/token"}, "may not connect to"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
    ],
)
async def test_metadata_of_an_issuer_that_leads_elsewhere_is_refused(
    config, tmp_path, authorization_server, metadata, told
):
    authorization_server.switch(metadata=metadata)
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError, match=told):
            await here.sign_in()
        assert await here.accounts.stored.find_all() == []


@pytest.mark.guarantee("egress:ssrf")
@pytest.mark.parametrize(
    ("switches", "told"),
    [
        ({"resource_metadata": "http://10.0.0.1/metadata"}, "not an https address"),
        ({"resource_metadata": "https://10.0.0.1/metadata"}, "may not connect to"),
        ({"metadata": {"resource": "https://bank.example/mcp"}}, "about another server"),
        ({"metadata": {"authorization_servers": ["https://attacker.example"]}}, "another issuer than its config"),
    ],
)
async def test_metadata_of_a_server_that_leads_elsewhere_is_refused(config, tmp_path, protected_server, switches, told):
    protected_server.switch(**switches)
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError, match=told):
            await here.sign_in()


@pytest.mark.guarantee("egress:ssrf")
async def test_an_issuer_at_a_private_address_needs_to_be_named_in_the_config(config, tmp_path):
    async with desk(replace(config, oauth=None), tmp_path) as here:
        with pytest.raises(SignInError, match="not an https address"):
            await here.sign_in()


async def test_a_code_of_another_sign_in_is_of_no_use(config, tmp_path):
    async with desk(config, tmp_path) as here:
        accounts = here.accounts
        attackers = await accounts.begin("notes", config, Scope(), REDIRECT)
        victims = await accounts.begin("notes", config, Scope(), REDIRECT)
        stolen = await consent(attackers.link)
        with pytest.raises(SignInError, match="belongs to another sign-in"):
            await accounts.finish(config, victims, stolen)
        with pytest.raises(SignInError, match="gave no token"):
            await accounts.finish(config, victims, {**stolen, "state": victims.state})
        assert await accounts.stored.find_all() == []


async def test_a_person_who_declines_is_not_signed_in(config, tmp_path):
    async with desk(config, tmp_path) as here:
        accounts = here.accounts
        pending = await accounts.begin("notes", config, Scope(), REDIRECT)
        answer = {"state": pending.state, "error": "access_denied", "iss": config.oauth.issuer}
        with pytest.raises(SignInError, match="was declined"):
            await accounts.finish(config, pending, answer)


async def test_a_row_that_is_moved_to_another_user_or_server_cannot_be_opened(config, tmp_path):
    async with desk(config, tmp_path) as here:
        await here.sign_in()
        stored = here.accounts.stored
        (record,) = await stored.store.records(ACCOUNT_KIND)
        bob = Scope(owner="bob")
        moved = [
            Record(kind=ACCOUNT_KIND, scope=bob, name=record.name, body=record.body),
            Record(kind=ACCOUNT_KIND, scope=Scope(), name=f"other {config.oauth.issuer}", body=record.body),
        ]
        await stored.store.put_records(moved)
        for scope, server in ((bob, "notes"), (Scope(), "other")):
            with pytest.raises(StoreError, match="damaged"):
                await stored.find(scope, server)


@pytest.mark.guarantee("secret:nowhere")
async def test_no_token_is_in_the_store_an_archive_any_log_or_an_error(
    config, tmp_path, capfd, caplog, protected_server
):
    caplog.set_level(logging.DEBUG)
    async with desk(config, tmp_path, audit=str(tmp_path / "audit.jsonl")) as here:
        await ready(here)
        (first,) = await here.accounts.stored.find_all()
        await here.call()
        protected_server.reject_known_tokens()
        await here.call()
        (account,) = await here.accounts.stored.find_all()
        pending = await here.accounts.begin("notes", config, Scope(), REDIRECT)
        tokens = {item for each in (first, account) for item in (each.access_token, str(each.refresh_token))}
        secrets = {*tokens, pending.verifier, pending.state}
        assert len(secrets) == 6
        assert not any(secret in repr(account) for secret in secrets)

        async def listed():
            return (await here.scout.overview()).total > 0

        await eventually(listed, WAIT_S)
        with (tmp_path / "archive.jsonl").open("wb") as out:
            await export_catalogue(here.accounts.stored.store, out)
        archive = (tmp_path / "archive.jsonl").read_text("utf-8")
        assert "notes__whoami" in archive
        assert not any(word in archive for word in ("sealed", "wrapped", account.issuer))
        await here.accounts.sign_out(account, config)
    logged = "".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    assert "notes" in logged
    assert not any(secret in logged for secret in secrets)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    out = "".join(capfd.readouterr())
    assert "accounts.sign_in" in everything.decode("latin-1")
    for secret in secrets:
        assert secret.encode() not in everything
        assert secret not in out


@pytest.mark.parametrize("secret", [None, "hush"])
async def test_a_client_of_the_config_signs_in_where_registration_is_closed(
    config, tmp_path, authorization_server, protected_server, secret
):
    authorization_server.switch(registration=False, client_documents=False)
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError, match="registered by hand"):
            await here.sign_in()
    authorization_server.register_client("by-hand", REDIRECT, secret=secret)
    oauth = {"client_id": "by-hand", "client_secret": secret or ""}
    known = protected(protected_server, authorization_server, oauth=oauth)
    async with desk(known, tmp_path) as here:
        await here.sign_in()
    assert authorization_server.grants()[-1]["client_id"] == "by-hand"


async def test_an_account_of_another_issuer_than_the_config_names_is_not_used_nor_given_its_secret(
    config, tmp_path, authorization_server, protected_server
):
    authorization_server.register_client("by-hand", REDIRECT, secret="hush")
    config = replace(config, oauth=replace(config.oauth, client_id="by-hand", client_secret="hush"))
    async with desk(config, tmp_path) as here:
        await ready(here)
        assert (await here.call())["sub"] == "ann"
    calls = len(protected_server.seen("tools/call"))
    moved = replace(config, oauth=replace(config.oauth, issuer=f"{config.oauth.issuer}/other"))
    async with desk(moved, tmp_path) as here:
        assert here.scout.servers.statuses()[0].state == "needs_login"
        with pytest.raises(SignInRequiredError):
            await here.call()
        assert await here.accounts.usable(Scope(), "notes", moved) is None
        assert not await here.accounts.forget(Scope(), "notes", moved), "its issuer wants the secret"
        assert await here.accounts.stored.find_all() == []
    assert len(protected_server.seen("tools/call")) == calls


async def test_a_server_does_not_decide_who_gets_the_secret_of_a_client(config, tmp_path, authorization_server):
    oauth = replace(config.oauth, client_id="by-hand", client_secret="hush", issuer=None)
    async with desk(replace(config, oauth=oauth), tmp_path) as here:
        with pytest.raises(SignInError, match="who gets the client_secret"):
            await here.sign_in()
    assert authorization_server.counts() == {}


@pytest.mark.guarantee("secret:nowhere")
async def test_a_token_that_a_server_quotes_is_hidden_from_the_caller(tmp_path):
    with fake_http() as server:
        server.token = "T1-a-token-of-ann"
        config = ServerConfig(title="notes", transport="http", url=f"{server.origin}/mcp", private=True)
        async with desk(config, tmp_path) as here:
            account = Account(
                scope=Scope(),
                server="notes",
                issuer=server.origin,
                url=config.url,
                resource=None,
                client={"client_id": "me"},
                token_endpoint=f"{server.origin}/token",
                access_token=server.token,
            )
            await here.accounts.stored.put(account)
            await until(lambda: here.scout.servers.statuses()[0].state == "ready")
            live = here.scout.servers.get("notes")
            assert live is not None
            result = await live.call_tool("echo", {"text": f"you sent Bearer {server.token}"}, caller=Caller())
    assert result["content"][0]["text"] == "you sent Bearer ***"


async def test_a_gateway_with_an_https_address_is_known_by_its_document(
    config, tmp_path, authorization_server, protected_server
):
    origin = "https://tools.example.com"
    async with desk(config, tmp_path, public_url=origin) as here:
        settings = replace(QUICK, public_url=origin)
        authentication = authentication_for(settings, here.scout.api_keys.find)
        pages = ConnectPages(here.scout, settings, authentication, Refusals())
        async with serving(Starlette(routes=pages.routes())) as where:
            authorization_server.switch(origins={origin: where})
            redirect = f"{origin}{CALLBACK.format(server='notes')}"
            document = f"{origin}{CLIENT_DOCUMENT.format(server='notes')}"
            pending = await here.accounts.begin("notes", config, Scope(), redirect, metadata_url=document)
            account = await here.accounts.finish(config, pending, await consent(pending.link))
    assert account.client["client_id"] == document
    assert "register" not in authorization_server.counts()
