"""`toolscout login`, `logout` and `accounts` on a laptop, as processes of their own."""

import json
import subprocess
import sys

import httpx2
import pytest

from guarantees import guarantee
from protected_server import running_protected_server

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
    login.stdin.write(f"{callback}\n")
    login.stdin.flush()
    assert login.end()[0] == 0
    assert [account["server"] for account in accounts(home)] == ["notes"]


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


def test_a_server_that_nobody_signs_in_to_is_refused(home):
    out = run(home, "login", "nothing")
    assert out.returncode == 2
    assert "no server of the config is called 'nothing'" in out.stderr


def test_importing_a_host_names_the_servers_that_want_a_sign_in(home, protected_server, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    options = {"private": True}
    closed = {"url": protected_server.url, "toolscout": options}
    other = {"url": f"{protected_server.origin}/nothing", "toolscout": options}
    file = home / "host.json"
    file.write_text(json.dumps({"mcpServers": {"My notes": closed, "other": other}}), "utf-8")
    out = subprocess.run(
        [sys.executable, "-m", "toolscout", "import", str(file), "--write", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (change,) = json.loads(out.stdout)["changes"]
    assert change["done"] == "moved"
    assert [note for note in change["notes"] if "sign in" in note] == [
        "My-notes wants you to sign in: run `toolscout login My-notes`"
    ]
