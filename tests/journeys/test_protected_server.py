"""The server of the tests that demands tokens refuses those that are not for it."""

import httpx2
import pytest

from authorization_server import running_authorization_server

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def claims(server, **other):
    return {"sub": "ann", "client_id": "app", "aud": server.url, "scope": "tools:read", **other}


async def sent(server, token, method, params, **headers):
    headers["Accept"] = "application/json, text/event-stream"
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        return await http.post(server.url, json=message, headers=headers)


async def called(server, token=None, name="count_notes", **headers):
    return await sent(server, token, "tools/call", {"name": name, "arguments": {}}, **headers)


async def test_the_challenge_leads_to_the_metadata_and_to_the_issuer(authorization_server, protected_server):
    answer = await called(protected_server)
    assert answer.status_code == 401
    where = f"{protected_server.origin}/.well-known/oauth-protected-resource/mcp"
    assert answer.headers["www-authenticate"] == f'Bearer scope="tools:read", resource_metadata="{where}"'
    async with httpx2.AsyncClient(trust_env=False) as http:
        document = (await http.get(where)).json()
        assert document["resource"] == protected_server.url
        assert document["authorization_servers"] == [authorization_server.url]
        protected_server.switch(
            resource_metadata="http://192.0.2.1/", metadata={"authorization_servers": ["http://192.0.2.2"]}
        )
        assert (await http.get(where)).json()["authorization_servers"] == ["http://192.0.2.2"]
        protected_server.switch(metadata_redirect="http://192.0.2.3/")
        assert (await http.get(where)).headers["location"] == "http://192.0.2.3/"
    assert 'resource_metadata="http://192.0.2.1/"' in (await called(protected_server)).headers["www-authenticate"]


@pytest.mark.parametrize(
    "wrong", [{"aud": "https://other.example.com/mcp"}, {"iss": "https://attacker.example"}, {"exp": 1}, {"sub": None}]
)
async def test_a_token_that_is_not_for_this_server_is_refused(authorization_server, protected_server, wrong):
    answer = await called(protected_server, authorization_server.token(**claims(protected_server, **wrong)))
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


async def test_the_faults_of_an_issuer_make_its_tokens_worthless(authorization_server, protected_server):
    good = authorization_server.token(**claims(protected_server))
    assert (await called(protected_server, good)).status_code != 401
    with running_authorization_server() as other:
        assert (await called(protected_server, other.token(**claims(protected_server)))).status_code == 401
    for switches in ({"clock_skew_s": 3_600}, {"clock_skew_s": -3_600}, {"token_iss": "https://attacker.example"}):
        authorization_server.reset()
        authorization_server.switch(**switches)
        token = authorization_server.token(**claims(protected_server))
        assert (await called(protected_server, token)).status_code == 401, switches
    protected_server.reject_known_tokens()
    assert (await called(protected_server, good)).status_code == 401


async def test_a_tool_that_needs_another_scope_names_it(authorization_server, protected_server):
    answer = await called(protected_server, authorization_server.token(**claims(protected_server)), name="add_note")
    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="tools:write"' in answer.headers["www-authenticate"]
    (seen,) = protected_server.seen("tools/call")
    assert (seen["tool"], seen["status"], seen["sub"]) == ("add_note", 403, "ann")


async def test_a_session_belongs_to_the_user_who_opened_it(authorization_server, protected_server):
    ann, bob = (authorization_server.token(**claims(protected_server, sub=user)) for user in ("ann", "bob"))
    opened = await sent(protected_server, ann, "initialize", INITIALIZE)
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    assert (await called(protected_server, ann, **session)).status_code == 200
    assert (await called(protected_server, bob, **session)).status_code == 404
    users = [(seen["sub"], seen["session"]) for seen in protected_server.seen("tools/call")]
    assert users == [("ann", session["mcp-session-id"]), ("bob", session["mcp-session-id"])]
