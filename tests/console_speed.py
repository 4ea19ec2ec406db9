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
LONGEST_MS = 1_000
"""What a letter counts whose list is not there by then."""
TYPE = """async ({text, longest}) => {
    const input = document.querySelector("input[type=search]");
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    const answered = new Set(), plainFetch = window.fetch;
    window.fetch = async (url, options) => {
        const response = await plainFetch(url, options), read = response.json.bind(response);
        const words = new URL(url, location.href).searchParams.get("text");
        response.json = () => read().then((body) => { answered.add(words); return body; });
        return response;
    };
    const times = [];
    for (let length = 1; length <= text.length; length += 1) {
        const words = text.slice(0, length), started = performance.now();
        set.call(input, words);
        input.dispatchEvent(new Event("input", {bubbles: true}));
        await new Promise((done) => {
            const look = () => {
                if (answered.has(words)) requestAnimationFrame(() => setTimeout(done));
                else if (performance.now() - started > longest) done();
                else requestAnimationFrame(look);
            };
            look();
        });
        times.push(answered.has(words) ? Math.min(performance.now() - started, longest) : longest);
    }
    window.fetch = plainFetch;
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
    """From a typed letter until the list that fits it is painted, 1,000 if that takes longer."""


async def measure_tools_page(page: Page, url: str, rounds: int) -> ConsoleSpeed:
    """Open the tools of a gateway as its operator, who is signed in, and type into the search."""
    await page.add_init_script(WATCH_ROWS)
    empty = [await _opened(page, f"{url}/health", _first_paint) for _ in range(rounds)]
    await _opened(page, f"{url}/#/tools", _rows)  # the catalogue is read once
    paints, rows = [], []
    for _ in range(rounds):
        rows.append(await _opened(page, f"{url}/#/tools", _rows))
        paints.append(await _first_paint(page))
    typed = [time for text in TYPED for time in await typing_times(page, text)]
    return ConsoleSpeed(
        empty_page_ms=median(empty), first_paint_ms=median(paints), rows_ms=median(rows), typing_ms=median(typed)
    )


async def typing_times(page: Page, text: str) -> list[float]:
    """Type a text into the search, and return how long each letter took until its list was painted."""
    times: list[float] = await page.evaluate(TYPE, {"text": text, "longest": LONGEST_MS})
    return times


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
