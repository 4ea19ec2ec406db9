"""The browser of the tests is a real one, and stays on this machine."""

import pytest
from playwright.async_api import Error
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from web import serving

PAGE = """<button onclick="document.cookie = 'clicked=' + document.cookie; location = '/next'">Go on</button>"""


async def said(request):
    return HTMLResponse(f"<p>{request.headers.get('cookie', 'no cookie')}</p>")


async def test_a_button_is_clicked_and_each_person_has_cookies_of_their_own(browser):
    app = Starlette(routes=[Route("/", lambda _: HTMLResponse(PAGE)), Route("/next", said)])
    async with serving(app) as url:
        for _ in range(2):
            page = await (await browser.new_context()).new_page()
            await page.goto(url)
            await page.get_by_role("button", name="Go on").click()
            await page.wait_for_url("**/next")
            assert await page.locator("p").inner_text() == "clicked="
            await page.context.close()


async def test_nothing_beyond_loopback_is_reached(browser_page):
    for outside in ("http://example.com/", "http://192.0.2.1/"):
        with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
            await browser_page.goto(outside)
