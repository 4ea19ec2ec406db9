"""People sign in to the console with a link, a key, or at the issuer, and a session ends when its key does."""

import asyncio
import json
import subprocess
import sys

import pytest
from playwright.async_api import expect

from console_gateway import console_gateway
from guarantees import guarantee
from serving import serving
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("console:safe")]


async def sign_in(visit, key):
    await visit.page.get_by_label("API key or token").fill(key)
    await visit.button("Sign in").click()


async def run_command(*command):
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)


async def test_a_link_signs_in_once(console, new_visit):
    link = console.link()
    first = await new_visit(link)
    await expect(first.page.get_by_text("local · operator")).to_be_visible()
    assert "sign-in" not in first.page.url
    await first.page.reload()
    await expect(first.page.get_by_text("local · operator")).to_be_visible()

    second = await new_visit("about:blank")
    with second.expecting("401"):
        await second.page.goto(link)
        await expect(second.page.get_by_text("this link was used already")).to_be_visible()
    await expect(second.page.get_by_text("toolscout console", exact=True)).to_be_visible()


async def test_without_a_link_the_local_user_looks_but_does_not_operate(console, new_visit):
    visit = await new_visit(f"{console.url}/")
    await visit.button("Go on without operating").click()
    await expect(visit.page.get_by_text("local · user")).to_be_visible()
    await visit.open("servers")
    await expect(visit.page.get_by_label("mail", exact=True)).to_be_visible()
    await expect(visit.button("Add server")).to_have_count(0)
    await expect(visit.page.get_by_role("link", name="Access")).to_have_count(0)


async def test_a_key_signs_in_and_its_revocation_ends_the_session(team, new_visit):
    visit = await new_visit(f"{team.url}/")
    with visit.expecting("401"):
        await sign_in(visit, "tsk_wrong_key")
        await expect(visit.page.get_by_role("alert")).to_contain_text("This key is not valid.")
    key = await team.key(user="eve", operator=True)
    await sign_in(visit, key)
    await expect(visit.page.get_by_text("eve", exact=True)).to_be_visible()
    assert key not in json.dumps(await visit.page.context.cookies())
    assert await visit.page.evaluate("document.cookie") == ""
    with visit.expecting("401"):  # what the page asks in the moment when the key ends
        await team.scout.api_keys.revoke(key.split("_")[1])

        async def is_refused():  # a key is remembered for a second
            await visit.page.reload()
            await visit.page.locator("main h1").wait_for()
            return await visit.page.get_by_label("API key or token").is_visible()

        await eventually(is_refused, 10)


async def test_signing_out_ends_the_session(team, new_visit):
    visit = await new_visit(f"{team.url}/")
    await sign_in(visit, await team.key(user="ann"))
    await visit.button("Sign out").click()
    await expect(visit.page.get_by_label("API key or token")).to_be_visible()
    await visit.page.reload()
    await expect(visit.page.get_by_label("API key or token")).to_be_visible()


async def test_people_sign_in_at_the_issuer(authorization_server, tmp_path, new_visit):
    options = {
        "auth_issuer": authorization_server.url,
        "auth_audience": "https://tools.example.com/mcp",
        "console_client_id": "console",
        "operator_scope": "tools:write",
    }
    async with console_gateway(tmp_path, {}, authenticated=True, **options) as gateway:
        authorization_server.register_client("console", f"{gateway.url}/console/callback")
        visit = await new_visit("about:blank")
        await visit.page.goto(gateway.url)
        await visit.page.get_by_role("button", name="Sign in at").click()
        await visit.page.get_by_role("button", name="Allow").click()
        await expect(visit.page.get_by_text("local · operator")).to_be_visible()
        await expect(visit.page.get_by_text("ann", exact=True)).to_be_visible()
        await visit.page.goto("about:blank")


async def test_the_command_opens_the_console_of_a_gateway_without_servers_and_one_is_added_there(
    tmp_path, monkeypatch, new_visit
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    monkeypatch.setenv("TOOLSCOUT_LOG_LEVEL", "warning")  # the link is no line of the log
    command = [sys.executable, "-m", "toolscout", "console", "--no-browser"]
    with serving(tmp_path, "--store", "") as running:
        printed = next(word for word in running.log.read_text().split() if "#sign-in=" in word)
        made = (await run_command(*command)).stdout.strip()
        for link in (printed, made):
            visit = await new_visit(link)
            await expect(visit.page.get_by_text("local · operator")).to_be_visible()
        assert made != printed
        await visit.open("servers")
        await expect(visit.page.get_by_text("No servers yet")).to_be_visible()
        await visit.button("Add server").click()
        await visit.page.get_by_label("Name").fill("first")
        await visit.page.get_by_label("Command").fill("/no/such/program")
        await visit.button("Add").click()
        await expect(visit.page.get_by_label("first", exact=True)).to_contain_text("down")
        for page in (page for context in visit.page.context.browser.contexts for page in context.pages):
            await page.goto("about:blank")
    gone = await run_command(*command)
    assert "no gateway with a console runs on this machine" in gone.stderr


async def test_the_button_signs_in_to_a_server_for_everyone(
    authorization_server, protected_server, tmp_path, new_visit
):
    oauth = {"grant_type": "authorization_code", "issuer": authorization_server.url}
    entry = {"url": protected_server.url, "toolscout": {"private": True, "oauth": oauth}}
    async with console_gateway(tmp_path, {}, entries={"notes": entry}) as gateway:
        visit = await new_visit(gateway.link())
        await visit.open("servers")
        notes = visit.page.get_by_label("notes", exact=True)
        await expect(notes).to_contain_text("sign-in needed")
        await notes.get_by_role("button", name="Sign in").click()
        await visit.page.get_by_role("button", name="Allow").click()
        await expect(notes).to_contain_text("ready")
        await visit.page.goto("about:blank")
