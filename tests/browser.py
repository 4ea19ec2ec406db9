"""A real Chromium without a window, as fixtures. It reaches loopback and nothing else.

The browser comes from npm with the system libraries that it needs, and is unpacked once into build/servers.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers import FOLDER, installing, node, npm_package, run

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

CHROMIUM = ("chromium", "@sparticuz/chromium", "153.0.0")
PATIENCE_MS = 20_000
UNPACK = 'import chromium from "@sparticuz/chromium"; await chromium.executablePath()'
ARGUMENTS = [
    "--no-sandbox",
    "--no-zygote",
    "--headless=shell",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--no-proxy-server",
]


def chromium() -> Path:
    """Return the folder that holds the browser and its libraries."""
    package = npm_package(*CHROMIUM)
    with installing("chromium", CHROMIUM[2]) as folder:
        if folder is not None:
            # The package unpacks the libraries only where it believes to be in the cloud that it was made for.
            lambda_host = {"TMPDIR": str(folder), "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x"}
            run(node(), "--input-type=module", "--eval", UNPACK, cwd=package, env=lambda_host)
    return FOLDER / "chromium"


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Give a browser. A test with several people opens a context of its own for each: `await browser.new_context()`."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("the packaged Chromium is for Linux on x86-64")
    from playwright.async_api import async_playwright

    folder = chromium()
    environment: dict[str, str | float | bool] = {**os.environ, "LD_LIBRARY_PATH": str(folder / "al2023" / "lib")}
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(
            executable_path=folder / "chromium",
            args=ARGUMENTS,
            env=environment,
        )
        yield opened
        await opened.close()


@pytest.fixture
async def browser_page(browser: Browser) -> AsyncIterator[Page]:
    """Give an empty page, with cookies of its own."""
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield await context.new_page()
    await context.close()
