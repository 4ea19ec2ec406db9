"""`python -m benchmarks.console`: the tools page of the console on 14.7k tools, in the browser of the tests."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, save
from toolscout.scout import InventoryFilter

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # where the browser and its gateway come from

ROUNDS = 15
ASKED = {"first_paint_ms": "< 1,000", "typing_ms": "< 100"}


async def measure(tools: Path) -> dict[str, Any]:
    """Serve the catalogue to a browser, and measure."""
    from playwright.async_api import async_playwright

    from browser import ARGUMENTS, chromium
    from console_gateway import console_gateway
    from console_speed import measure_tools_page

    folder = chromium()
    environment: dict[str, Any] = {**os.environ, "LD_LIBRARY_PATH": str(folder / "al2023" / "lib")}
    with tempfile.TemporaryDirectory() as place:
        async with console_gateway(Path(place), {}, tools=tools) as gateway, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=folder / "chromium", args=ARGUMENTS, env=environment
            )
            page = await browser.new_page(viewport={"width": 1280, "height": 800})
            await page.goto(gateway.link())
            await page.get_by_text("local · operator").wait_for()
            speed = await measure_tools_page(page, gateway.url, ROUNDS)
            listed = await gateway.scout.decisions.inventory.rows(gateway.scout.caller.scope, InventoryFilter())
            await browser.close()
    figures = {name: round(value, 1) for name, value in asdict(speed).items()}
    times = {f"{name}_ratio": round(figures[f"{name}_ms"] / speed.empty_page_ms, 2) for name in ("first_paint", "rows")}
    return {"tools": len(listed), **figures, **times}


def main() -> None:
    """Measure and write the table."""
    at = machine()
    figures = asyncio.run(measure(bench_folder() / "mcp_catalogue" / "tools.jsonl"))
    body = [[name, value, ASKED.get(name, "")] for name, value in figures.items()]
    text = (
        f"# The console on 14.7k tools\n\n`python -m benchmarks.console`; {at}\n\n"
        "Medians by the clock of Chromium, which runs on the same two cores as the gateway. `first_paint` and `rows`"
        "\n(the first 50 tools are painted) count from the navigation, `typing` from a letter in the search"
        "\nuntil the list that fits is painted. The ratios are to the first paint of a page with one line of text.\n\n"
    )
    save("console", {"machine": at, **figures}, text + markdown(["figure", "measured", "asked"], body))


if __name__ == "__main__":
    main()
