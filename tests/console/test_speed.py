"""The tools page stays quick with 15,000 tools: compared with an empty page of the same gateway in the same browser."""

import pytest

from console_gateway import console_gateway
from console_speed import LONGEST_MS, measure_tools_page, typing_times

pytestmark = [pytest.mark.process, pytest.mark.timing]

VERBS = ("create", "read", "update", "delete", "send", "find")
THINGS = ("issue", "email", "invoice", "weather report", "branch")


def tools(count):
    for number in range(count):
        verb, thing = VERBS[number % len(VERBS)], THINGS[number % len(THINGS)]
        name = f"{verb}_{thing.replace(' ', '_')}_{number}"
        yield {"server": f"server {number % 60}", "name": name, "description": f"{verb.title()} the {thing} {number}."}


async def test_the_tools_page_of_15_000_tools_paints_and_follows_typing_nearly_as_quickly_as_an_empty_one(
    tmp_path, browser
):
    async with console_gateway(tmp_path, {}, tools=list(tools(15_000))) as gateway:
        page = await browser.new_page()
        await page.goto(gateway.link())
        await page.get_by_text("local · operator").wait_for()
        speed = await measure_tools_page(page, gateway.url, rounds=5)
        await page.route("**/inventory?*text=*", lambda route: route.abort())
        assert await typing_times(page, "x") == [LONGEST_MS], "a list that never comes does not pass for a quick one"
        await page.close()
    assert speed.first_paint_ms < 25 * speed.empty_page_ms, speed
    assert speed.rows_ms < 40 * speed.empty_page_ms, speed
    assert speed.typing_ms < 15 * speed.empty_page_ms, speed
