"""How quick the console is on a large catalogue, by the browser's clock: for a test and for `benchmarks.console`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import Page

ROWS = 50
TYPED = ("send email", "create issue", "weather")
WATCH_ROWS = f"""new MutationObserver((_changes, observer) => {{
    if (document.querySelectorAll("tbody tr").length < {ROWS}) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => {{ window.rowsAt = performance.now(); }}));
}}).observe(document, {{childList: true, subtree: true}})"""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
TYPE = """async (text) => {
    const input = document.querySelector("input[type=search]");
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    const shown = () => document.querySelector("main").innerText;
    const times = [];
    for (let length = 1; length <= text.length; length += 1) {
        const before = shown(), started = performance.now();
        set.call(input, text.slice(0, length));
        input.dispatchEvent(new Event("input", {bubbles: true}));
        await new Promise((changed) => {
            const look = () => {
                if (shown() !== before) requestAnimationFrame(() => setTimeout(() => changed(true)));
                else if (performance.now() - started > 1_000) changed(false);
                else requestAnimationFrame(look);
            };
            look();
        }).then((done) => { if (done) times.push(performance.now() - started); });
    }
    return times;
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSpeed:
    """Medians in milliseconds."""

    empty_page_ms: float
    """First paint of a page with nothing on it, from the same gateway."""
    first_paint_ms: float
    rows_ms: float
    """From the start of the navigation until the first rows of the tools are painted."""
    typing_ms: float
    """From a typed letter until the list that fits it is painted. Letters that change nothing do not count."""


async def measure_tools_page(page: Page, url: str, rounds: int) -> ConsoleSpeed:
    """Open the tools of a gateway as its operator, who is signed in, and type into the search."""
    await page.add_init_script(WATCH_ROWS)
    empty = [await _opened(page, f"{url}/health", _first_paint) for _ in range(rounds)]
    await _opened(page, f"{url}/#/tools", _rows)  # the catalogue is read once
    paints, rows = [], []
    for _ in range(rounds):
        rows.append(await _opened(page, f"{url}/#/tools", _rows))
        paints.append(await _first_paint(page))
    typed = [time for text in TYPED for time in await page.evaluate(TYPE, text)]
    return ConsoleSpeed(
        empty_page_ms=median(empty), first_paint_ms=median(paints), rows_ms=median(rows), typing_ms=median(typed)
    )


async def _opened(page: Page, address: str, time: Callable[[Page], Awaitable[float]]) -> float:
    await page.goto("about:blank")
    await page.goto(address)
    return await time(page)


async def _first_paint(page: Page) -> float:
    return await _number(page, FIRST_PAINT)


async def _rows(page: Page) -> float:
    return await _number(page, "window.rowsAt")


async def _number(page: Page, expression: str) -> float:
    look = f"const look = () => {{ const value = {expression}; value ? done(value) : setTimeout(look, 10); }}; look();"
    return float(await page.evaluate(f"() => new Promise((done) => {{ {look} }})"))
