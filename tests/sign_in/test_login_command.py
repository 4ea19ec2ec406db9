"""`toolscout login`, `logout` and `accounts` on a laptop, as processes of their own."""

import json
import subprocess
import sys
from typing import Any

import httpx2
import pytest

from guarantees import guarantee
from protected_server import running_protected_server
from sign_ins import desk, protected
from toolscout.models import Scope

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def home(authorization_server, protected_server, empty_home):
    """A home folder with a config that lists the server."""
    authorization_server.switch(approve="ann")
    write_config(empty_home, protected_server, authorization_server)
    return empty_home


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """A home folder of somebody who works without a screen."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write_config(home, server, issuer):
    options = {"private": True, "oauth": {"issuer": issuer.url}}
    servers = {"notes": {"type": "http", "url": server.url, "toolscout": options}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")


def command(home, verb, *arguments, config=True):
    where = ["--config", str(home / "mcp.json")] if config else []
    store = f"sqlite:///{home / 'catalogue.db'}"
    return [sys.executable, "-m", "toolscout", verb, *arguments, *where, "--store", store]


def run(home, verb, *arguments, config=True):
    return subprocess.run(
        command(home, verb, *arguments, config=config), capture_output=True, text=True, timeout=60, check=False
    )


class Login:
    """A `toolscout login` that has printed its link."""

    def __init__(self, home, *arguments):
        self.process = subprocess.Popen(
            command(home, "login", "notes", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.printed = ""

    def line(self, start):
        for line in self.stdout:
            self.printed += line
            if line.startswith(start):
                return line.strip()
        raise AssertionError(self.printed)

    def end(self):
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, self.printed + out


def get(url, **options):
    return httpx2.get(url, trust_env=False, **options)


def accounts(home):
    return json.loads(run(home, "accounts", "--json", config=False).stdout)["accounts"]


def test_a_person_signs_in_with_a_browser_and_a_gateway_calls_as_them(home, authorization_server, protected_server):
    assert run(home, "index").returncode == 1
    login = Login(home)
    page = get(login.line("http"), follow_redirects=True)
    assert "You are signed in to notes" in page.text
    assert "close this page" in page.text
    status, printed = login.end()
    assert status == 0
    assert "You are signed in to notes" in printed
    (account,) = accounts(home)
    assert (account["server"], account["state"], account["issuer"]) == ("notes", "signed_in", authorization_server.url)
    call = run(home, "call", "notes__whoami", "--json")
    assert json.loads(call.stdout)["result"]["structuredContent"]["sub"] == "ann", call.stderr


async def test_a_person_signs_in_with_a_real_browser_at_an_issuer_of_another_make(
    empty_home, independent_issuer, browser_page
):
    independent_issuer.register_user("eve")
    with running_protected_server(independent_issuer.url) as server:
        write_config(empty_home, server, independent_issuer)
        login = Login(empty_home)
        await browser_page.goto(login.line("http"))
        await browser_page.get_by_placeholder("Enter any login").fill("eve")
        await browser_page.get_by_placeholder("and password").fill("any")
        await browser_page.get_by_role("button", name="Sign-in").click()
        await browser_page.get_by_role("button", name="Continue").click()
        await browser_page.get_by_text("You are signed in to notes").wait_for()
        assert login.end()[0] == 0
        call = run(empty_home, "call", "notes__whoami", "--json")
        assert json.loads(call.stdout)["result"]["structuredContent"]["sub"] == "eve", call.stderr
        out = run(empty_home, "logout", "notes")
        assert out.returncode == 0, out.stderr
        assert accounts(empty_home) == []


def test_over_ssh_the_address_of_the_callback_is_pasted(home, monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "1")
    login = Login(home)
    callback = get(login.line("http")).headers["location"]
    for pasted in ("http://[", "nonsense", callback):
        login.stdin.write(f"{pasted}\n")
    login.stdin.flush()
    assert login.end()[0] == 0
    assert [account["server"] for account in accounts(home)] == ["notes"]


def test_a_login_opens_the_browser_and_a_gateway_never_does(home, monkeypatch):
    script = home / "browser.py"
    script.write_text("import sys, pathlib\npathlib.Path(sys.argv[1]).write_text(sys.argv[2])\n", "utf-8")
    opened = home / "opened"
    monkeypatch.setenv("BROWSER", f"{sys.executable} {script} {opened} %s")
    monkeypatch.setenv("DISPLAY", ":0")
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "call_tool", "arguments": {"name": "notes__whoami"}}},
    ]
    with subprocess.Popen(
        command(home, "serve"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as serve:
        assert serve.stdin
        assert serve.stdout
        for message in asked:
            serve.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        answer = next(line for line in serve.stdout if '"id":2' in line.replace(" ", ""))
        serve.stdin.close()
        assert "notes" in answer
        assert '"isError":true' in answer.replace(" ", "")
    assert serve.returncode == 0
    assert run(home, "doctor").returncode == 1
    assert not opened.exists()
    login = Login(home)
    link = login.line("http")
    get(link, follow_redirects=True)
    assert login.end()[0] == 0
    assert opened.read_text("utf-8") == link


def test_a_callback_with_another_state_or_twice_the_code_does_not_end_the_sign_in(home):
    login = Login(home)
    link = login.line("http")
    callback = get(link).headers["location"]
    base, _, query = callback.partition("?")
    state = dict(item.split("=") for item in query.split("&"))["state"]
    for forged in (f"{base}?code=attackers&state=guessed", f"{base}?code=attackers", f"{callback}&code=attackers"):
        answer = get(forged)
        assert answer.status_code == 400
        assert "signed in" not in answer.text
        assert state not in answer.text
    assert get(callback, headers={"Host": "attacker.example"}).status_code == 403
    assert "You are signed in" in get(callback).text
    assert login.end()[0] == 0


def test_a_device_code_signs_in_without_a_browser_here(home, authorization_server):
    authorization_server.switch(device_interval_s=1)
    login = Login(home, "--device-code")
    authorization_server.decide_device(login.line("Open").split()[-1], "bob")
    assert login.end()[0] == 0
    assert authorization_server.grants()[-1]["user"] == "bob"
    assert len(accounts(home)) == 1


def test_logging_out_deletes_and_revokes_the_tokens(home, authorization_server):
    login = Login(home)
    get(login.line("http"), follow_redirects=True)
    login.end()
    out = run(home, "logout", "notes")
    assert out.returncode == 0, out.stderr
    assert accounts(home) == []
    assert authorization_server.grants()[0]["revoked"]
    again = run(home, "logout", "notes")
    assert again.returncode == 1
    assert "nobody is signed in to notes" in again.stderr
    login = Login(home)
    get(login.line("http"), follow_redirects=True)
    assert login.end()[0] == 0
    assert authorization_server.counts()["register"] == 1, "the client and its port are used again"


def test_the_doctor_and_the_index_name_the_command_that_helps(home):
    for verb in ("doctor", "index"):
        out = run(home, verb)
        assert out.returncode == 1
        assert "toolscout login notes" in out.stdout
    call = run(home, "call", "notes__whoami", "--json")
    assert json.loads(call.stdout)["error"]["code"] == "needs_login"


def test_tokens_are_encrypted_and_the_key_is_the_owners_alone(home, authorization_server):
    login = Login(home)
    get(login.line("http"), follow_redirects=True)
    _, printed = login.end()
    (home / "toolscout" / "token.key").chmod(0o644)
    refused = run(home, "accounts", config=False)
    assert refused.returncode == 2
    assert "chmod 600" in refused.stderr
    (home / "toolscout" / "token.key").chmod(0o600)
    key = (home / "toolscout" / "token.key").read_text()
    assert "encrypted 1 accounts" in run(home, "token-key", "rotate", config=False).stdout
    assert (home / "toolscout" / "token.key").read_text() != key
    call = run(home, "call", "notes__whoami", "--json")
    assert json.loads(call.stdout)["result"]["structuredContent"]["sub"] == "ann"
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"eyJ" not in everything, "a token in clear text"
    assert b"refresh_token" not in everything
    assert "eyJ" not in printed


def test_an_account_whose_key_is_lost_is_shown_and_deleted_by_its_name(home):
    login = Login(home)
    get(login.line("http"), follow_redirects=True)
    login.end()
    (home / "toolscout" / "token.key").unlink()
    (lost,) = accounts(home)
    assert (lost["server"], lost["state"], lost["tenant"]) == ("notes", "unreadable", "local")
    assert "toolscout logout notes" in run(home, "accounts", config=False).stdout
    rotated = run(home, "token-key", "rotate", config=False)
    assert rotated.returncode == 0
    assert "left out the account at notes" in rotated.stderr
    out = run(home, "logout", "notes")
    assert out.returncode == 0, out.stderr
    assert accounts(home) == []


def test_a_server_that_nobody_signs_in_to_is_refused(home):
    for verb in ("login", "logout"):
        out = run(home, verb, "nothing")
        assert out.returncode == 2
        assert "no server of the config is called 'nothing'" in out.stderr


async def test_accounts_of_a_server_that_left_the_config_and_of_users_are_seen_and_deleted(
    home, authorization_server, protected_server, monkeypatch
):
    settings = {"store": f"sqlite:///{home / 'catalogue.db'}", "token_key_file": ""}
    config = protected(protected_server, authorization_server)
    users = [Scope(tenant="acme", owner=name) for name in ("ann", "bob")]
    async with desk(config, home, **settings) as here:
        for scope in (Scope(), *users):
            await here.sign_in(scope)
    entries = json.loads((home / "mcp.json").read_text())
    listed, gone = json.dumps(entries), json.dumps({"mcpServers": {"other": {"command": "x"}}})
    (home / "mcp.json").write_text(gone, "utf-8")
    shown = run(home, "accounts").stdout
    assert "notes is not in this config. `toolscout logout notes` deletes its account." in shown
    assert "`toolscout logout notes --tenant acme --user ann`" in shown
    out = run(home, "logout", "notes")
    assert out.returncode == 0, out.stderr
    assert [account["user"] for account in accounts(home)] == ["ann", "bob"]

    (home / "mcp.json").write_text(listed, "utf-8")
    out = run(home, "logout", "notes", "--user", "ann", "--tenant", "acme")
    assert "ann is signed out of notes." in out.stdout
    out = run(home, "accounts", "--remove-user", "bob", "--tenant", "acme")
    assert "bob is removed: 1 accounts and 0 tools." in out.stdout
    assert accounts(home) == []
    assert [grant["revoked"] for grant in authorization_server.grants()] == [False, True, True]
    again = run(home, "logout", "notes", "--user", "ann", "--tenant", "acme")
    assert again.returncode == 1
    assert "ann is not signed in to notes" in again.stderr


def imported(home, monkeypatch, servers):
    """Import the servers of Claude Code. What it keeps of its tokens makes no difference."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("HOME", str(home))
    (home / ".claude").mkdir()
    tokens = {"mcpOAuth": {f"{title}|0123": {"accessToken": "c4n4ry"} for title in servers}}
    (home / ".claude" / ".credentials.json").write_text(json.dumps(tokens), "utf-8")
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    out = subprocess.run(
        [sys.executable, "-m", "toolscout", "import", "claude-code", "--write", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "c4n4ry" not in out.stdout + out.stderr
    (change,) = json.loads(out.stdout)["changes"]
    return change


def test_importing_a_host_asks_its_servers_and_names_those_that_want_a_sign_in(home, protected_server, monkeypatch):
    other = {"type": "http", "url": f"{protected_server.origin}/nothing"}
    change = imported(home, monkeypatch, {"My notes": {"type": "http", "url": protected_server.url}, "other": other})
    assert change["servers"] == ["My notes", "other"]
    assert [note for note in change["notes"] if "sign in" in note] == [
        "My-notes wants you to sign in: run `toolscout login My-notes`"
    ]
    assert [seen["sub"] for seen in protected_server.seen()] == [None]


def test_a_server_that_refuses_and_names_no_issuer_stays_with_its_host(home, protected_server, monkeypatch):
    protected_server.switch(resource_metadata="", metadata={"authorization_servers": None})
    plain = {"command": "uvx", "args": ["mcp-server-time"]}
    change = imported(home, monkeypatch, {"keyed": {"type": "http", "url": protected_server.url}, "clock": plain})
    assert change["servers"] == ["clock"]
    assert "keyed stays: it refuses toolscout, and does not say where to sign in" in change["notes"]


def test_accounts_shows_the_page_at_which_users_sign_in(home, protected_server, monkeypatch):
    login = Login(home)
    get(login.line("http"), follow_redirects=True)
    login.end()
    shared = json.loads((home / "mcp.json").read_text())
    shared["mcpServers"]["Our notes"] = {"url": protected_server.url, "toolscout": {"per_user": True}}
    (home / "mcp.json").write_text(json.dumps(shared), "utf-8")
    assert "Users sign in to Our-notes at the gateway, once TOOLSCOUT_PUBLIC_URL is set" in run(home, "accounts").stdout
    monkeypatch.setenv("TOOLSCOUT_PUBLIC_URL", "https://tools.example.com")
    shown = json.loads(run(home, "accounts", "--json").stdout)
    assert shown["pages"] == {"Our-notes": "https://tools.example.com/connect/Our-notes"}
    assert [account["server"] for account in shown["accounts"]] == ["notes"]
    refused = run(home, "login", "Our notes")
    assert refused.returncode == 1
    assert "each user signs in to Our notes for themselves" in refused.stderr
    assert "open https://tools.example.com/connect/Our-notes and sign in" in refused.stderr
