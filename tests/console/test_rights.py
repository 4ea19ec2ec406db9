"""Two people with different rights use one console: each sees and does what their key may, and REST decides."""

import pytest
from playwright.async_api import expect

from guarantees import guarantee

pytestmark = [pytest.mark.process, guarantee("console:safe", "access:one-predicate")]

OPERATING = ["Activity", "Approvals", "Access"]
REFUSED = [
    ("GET", "/inventory"),
    ("GET", "/keys"),
    ("GET", "/activity"),
    ("GET", "/changes"),
    ("GET", "/servers/github/log"),
    ("POST", "/servers/github/restart"),
    ("DELETE", "/servers/github"),
]


@pytest.fixture
async def people(team, new_visit):
    """Sign in Ann, who operates, and Bob, who may use one server."""
    visits = []
    for user, operator in (("ann", True), ("bob", False)):
        visit = await new_visit(f"{team.url}/")
        await visit.page.get_by_label("API key or token").fill(await team.key(user=user, operator=operator))
        await visit.button("Sign in").click()
        await expect(visit.page.get_by_text(user, exact=True)).to_be_visible()
        visits.append(visit)
    return visits


async def test_each_sees_their_own_tools_servers_and_screens(people):
    ann, bob = people
    for screen in OPERATING:
        await expect(ann.page.get_by_role("link", name=screen)).to_be_visible()
        await expect(bob.page.get_by_role("link", name=screen)).to_have_count(0)
    await ann.open("tools")
    await expect(ann.page.get_by_role("row")).to_have_count(7)
    await bob.open("tools")
    await expect(bob.page.get_by_role("row")).to_have_count(4)
    await expect(bob.page.get_by_role("checkbox")).to_have_count(0)
    await bob.page.get_by_label("Search").fill("iss")
    await expect(bob.page.get_by_role("row")).to_have_count(3)
    await bob.page.get_by_label("Search").fill("mail")
    await expect(bob.page.get_by_text("No tool fits")).to_be_visible()
    await bob.open("servers")
    await expect(bob.page.get_by_label("github", exact=True)).to_be_visible()
    await expect(bob.page.get_by_label("mail", exact=True)).to_have_count(0)
    await expect(bob.button("Restart")).to_have_count(0)
    await bob.open("activity")
    await expect(bob.page.get_by_role("heading", name="Overview")).to_be_visible()


async def test_a_forbidden_tool_looks_like_one_that_does_not_exist(people, team):
    _, bob = people
    with bob.expecting("404"):
        texts = []
        for key in ("mail__send_mail", "mail__no_such_tool"):
            await bob.open(f"try?tool={key}")
            texts.append((await bob.page.get_by_role("alert").inner_text()).replace(key, "KEY"))
    assert texts[0] == texts[1]
    assert team.calls == []


async def test_the_session_of_a_user_is_refused_what_the_page_does_not_offer(people):
    _, bob = people
    statuses = """async (requests) => Promise.all(requests.map(async ([method, path]) => (await fetch(`/api/v1${path}`,
        {method, headers: {"X-Toolscout-Page": localStorage.getItem("toolscout-proof")}})).status))"""
    with bob.expecting("403"):
        assert await bob.page.evaluate(statuses, REFUSED) == [403] * len(REFUSED)


async def test_the_lab_searches_as_another_user(people):
    ann, _ = people
    await ann.open("search")
    await ann.page.get_by_label("Request").fill("send a mail to somebody")
    await ann.button("Search").click()
    await expect(ann.page.get_by_role("listitem").filter(has_text="mail__send_mail")).to_be_visible()
    await ann.page.get_by_role("tab", name="Rankers").click()
    await expect(ann.row("send_mail").first).to_be_visible()
    await ann.page.get_by_label("As user").fill("bob")
    await ann.button("Search").click()
    await expect(ann.row("send_mail")).to_have_count(0)
    await ann.page.get_by_role("tab", name="Hits").click()
    await expect(ann.page.get_by_role("listitem").filter(has_text="mail__send_mail")).to_have_count(0)
    await ann.page.get_by_role("tab", name="Why not?").click()
    await ann.page.get_by_label("Key of the tool").fill("mail__send_mail")
    await ann.button("Explain").click()
    await expect(ann.page.get_by_text("May be seen: no")).to_be_visible()
