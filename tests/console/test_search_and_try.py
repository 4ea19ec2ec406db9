"""Searching in the lab and trying tools, in a real browser."""

import json

import pytest
from playwright.async_api import expect

pytestmark = pytest.mark.process


async def test_the_search_lab_shows_the_parts_of_scores_and_every_ranker(visit):
    await visit.open("search")
    await visit.page.get_by_label("Request").fill("open an issue")
    await visit.button("Search").click()
    hit = visit.page.get_by_role("listitem").filter(has_text="github__create_issue")
    await expect(hit).to_contain_text("matched")
    await visit.page.get_by_role("tab", name="Rankers").click()
    await expect(visit.page.get_by_role("columnheader", name="fuzzy")).to_be_visible()
    await expect(visit.row("create_issue").first).to_be_visible()


async def test_the_search_lab_explains_why_a_tool_is_not_found(visit, console):
    await console.scout.decisions.switch(console.scout.caller.scope, ["mail__send_mail"], enabled=False)
    await visit.open("search?query=send a mail")
    await visit.button("Search").click()
    await visit.page.get_by_role("tab", name="Why not?").click()
    await visit.page.get_by_label("Key of the tool").fill("mail__send_mail")
    await visit.button("Explain").click()
    await expect(visit.page.get_by_text("May be seen: no")).to_be_visible()
    await console.scout.decisions.switch(console.scout.caller.scope, ["mail__send_mail"], enabled=True)
    await visit.button("Explain").click()
    await expect(visit.page.get_by_text("May be seen: yes")).to_be_visible()


async def test_hits_are_saved_as_a_labelled_row_and_the_set_is_measured_written_and_read(visit, tmp_path):
    await visit.open("search")
    await visit.page.get_by_label("Request").fill("open an issue")
    await visit.button("Search").click()
    await visit.page.get_by_label("right for this request: github__create_issue").check()
    await visit.page.get_by_role("textbox", name="Request").fill("find mails")
    await visit.button("Search").click()
    await expect(visit.page.get_by_text("none right: nothing fits")).to_be_visible()
    await visit.page.get_by_label("right for this request: mail__search_mail").check()
    await visit.button("Save as labelled row").click()
    await visit.page.get_by_role("tab", name="Labelled set").click()
    await visit.button("Run 1 row").click()
    await expect(visit.row("find mails")).to_contain_text("1")
    await expect(visit.page.get_by_text("recall@1: right tool first")).to_be_visible()
    async with visit.page.expect_download() as download:
        await visit.button("Download").click()
    written = tmp_path / "queries.jsonl"
    await (await download.value).save_as(written)
    assert json.loads(written.read_text()) | {"id": ""} == {
        "id": "",
        "query": "find mails",
        "gold": ["mail__search_mail"],
    }
    rows = [
        {"query": "delete a branch", "gold": ["github__delete_branch"]},
        {"query": "read an issue", "gold": ["mail__send_mail"]},
    ]
    written.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    await visit.page.get_by_label("Load a file").set_input_files(written)
    await visit.button("Run 3 rows").click()
    await expect(visit.row("delete a branch").get_by_role("cell").nth(3)).to_have_text("github__delete_branch")
    await expect(visit.row("read an issue").get_by_role("cell").nth(3)).to_have_text("github__get_issue")
    await visit.row("find mails").get_by_role("button").click()
    await expect(visit.row("find mails")).to_have_count(0)
    await expect(visit.row("delete a branch")).to_be_visible()
    written.write_text('{"id": 7, "text": "of another kind"}\n')
    await visit.page.get_by_label("Load a file").set_input_files(written)
    await expect(visit.page.get_by_text("This is no queries.jsonl.")).to_be_visible()


@pytest.mark.parametrize("left", ["{", '{"a": 1}', '[null, {"query": 1}, {"query": "x", "gold": "y"}]'])
async def test_what_another_version_left_in_the_browser_breaks_no_screen(visit, left):
    for name in ("toolscout-labelled", "toolscout-tried"):
        await visit.page.evaluate(
            "([name, text]) => { localStorage[name] = sessionStorage[name] = text }", [name, left]
        )
    await visit.page.reload()
    await visit.open("search")
    await visit.page.get_by_role("tab", name="Labelled set").click()
    await expect(visit.page.get_by_text("No labelled rows yet")).to_be_visible()
    await visit.open("try?tool=mail__send_mail")
    await expect(visit.button("Call")).to_be_visible()


async def test_a_form_made_from_the_schema_calls_a_tool_and_remembers_it(visit, console):
    await visit.open("try")
    await visit.page.get_by_label("Tool").fill("report a bug")
    await visit.page.get_by_role("link", name="github__create_issue").click()
    await visit.page.get_by_label("repo").fill("site")
    await visit.page.get_by_label("title").fill("Broken login")
    await visit.page.get_by_label("labels").fill("bug\nlogin")
    await visit.page.get_by_label("priority").select_option("high")
    await visit.page.get_by_label("draft").select_option("true")
    await visit.page.get_by_label("form").fill('{"colour": [1, 2]}')
    await visit.button("Call").click()
    await expect(visit.page.get_by_text("create_issue was called with")).to_be_visible()
    sent = {"repo": "site", "title": "Broken login", "labels": ["bug", "login"], "priority": "high", "draft": True}
    assert console.calls[-1] == ("github", "create_issue", sent | {"votes": 1, "form": {"colour": [1, 2]}})

    await visit.page.reload()
    await visit.page.get_by_role("button", name="Broken login").click()
    await expect(visit.page.get_by_label("title")).to_have_value("Broken login")
    await visit.page.get_by_role("tab", name="JSON").click()
    await visit.page.get_by_label("Arguments").last.fill('{"repo": "site"')
    await visit.button("Call").click()
    await expect(visit.page.get_by_role("alert")).to_contain_text("The arguments are not JSON.")


async def test_a_form_has_fields_for_what_may_be_null_and_for_references(visit, console):
    await visit.open("try?tool=github__get_issue")
    await visit.page.get_by_label("note").fill("hello")
    await visit.page.get_by_label("author").fill("ann")
    await visit.page.get_by_label("state").select_option("closed")
    await visit.page.get_by_label("labels").fill("bug\nlogin")
    await expect(visit.page.get_by_placeholder("JSON")).to_have_count(1)  # the reference that leads to itself
    await visit.button("Call").click()
    await expect(visit.page.get_by_text("get_issue was called with")).to_be_visible()
    sent = {"note": "hello", "author": "ann", "state": "closed", "labels": ["bug", "login"]}
    assert console.calls[-1] == ("github", "get_issue", sent)


async def test_what_a_tool_refuses_and_how_it_fails_is_shown(visit):
    await visit.open("try?tool=github__create_issue")
    await visit.page.get_by_role("tab", name="JSON").click()
    await visit.page.get_by_label("Arguments").last.fill('{"titel": "x"}')
    with visit.expecting("422"):
        await visit.button("Call").click()
        await expect(visit.page.get_by_role("alert")).to_contain_text("titel")
    await visit.open("try?tool=mail__fail_always")
    await visit.button("Call").click()
    await expect(visit.page.get_by_text("it failed")).to_be_visible()
    await expect(visit.page.get_by_text("the tool failed")).to_be_visible()
    with visit.expecting("404"):
        await visit.open("try?tool=mail__send_mai")
        await expect(visit.page.get_by_role("alert")).to_contain_text("mail__send_mail")
