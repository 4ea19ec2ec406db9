"""One gateway for each module, and a browser that is signed in to it. A journey that logs an error in it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from browser import PATIENCE_MS
from console_gateway import ConsoleGateway, console_gateway

if TYPE_CHECKING:
    from playwright.async_api import Browser, Locator, Page

REPOSITORY = {"type": "string", "description": "Name of the repository, without the owner"}
DEFINITIONS: dict[str, list[dict[str, Any]]] = {
    "github": [
        {
            "name": "create_issue",
            "description": "Open a new issue to report a bug or to ask for a change.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "repo": REPOSITORY,
                    "title": {"type": "string"},
                    "labels": {"type": "array", "items": {"type": "string"}},
                    "priority": {"enum": ["low", "high"]},
                    "votes": {"type": "integer", "default": 1},
                    "draft": {"type": "boolean"},
                    "form": {"type": "object"},
                },
                "required": ["repo", "title"],
            },
        },
        {
            "name": "get_issue",
            "description": "Read one issue: title, body, labels and its current state.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "repo": REPOSITORY,
                    "number": {"type": "integer"},
                    "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "author": {"type": ["string", "null"]},
                    "state": {"$ref": "#/$defs/state"},
                    "labels": {"oneOf": [{"$ref": "#/$defs/names"}, {"type": "null"}]},
                    "loop": {"$ref": "#/$defs/loop"},
                },
                "$defs": {
                    "state": {"enum": ["open", "closed"]},
                    "names": {"type": "array", "items": {"$ref": "#/$defs/name"}},
                    "name": {"type": "string"},
                    "loop": {"$ref": "#/$defs/loop"},
                },
            },
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": "delete_branch",
            "description": "Remove a branch for good.",
            "annotations": {"destructiveHint": True},
        },
    ],
    "mail": [
        {"name": "send_mail", "description": "Send a mail to somebody."},
        {"name": "search_mail", "description": "Find mails by words.", "annotations": {"readOnlyHint": True}},
        {"name": "fail_always", "description": "Fail in every case, as a test."},
    ],
}
POLICY = """
[[allow]]
who = ["user:ann", "user:eve"]

[[allow]]
who = ["user:bob"]
servers = ["github"]
"""
ENTRIES = {
    "broken": {"command": "/no/such/program"},
    "unused": {"command": "/no/such/program", "disabled": True},
}


@dataclass
class Visit:
    """A page of the console, and what it logged."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))

    async def open(self, screen: str) -> None:
        """Show a screen."""
        await self.page.goto(f"{self.url}/#/{screen}")
        await self.page.locator("main h1").wait_for()

    def button(self, name: str, **options: Any) -> Locator:
        """Return a button by its exact name."""
        return self.page.get_by_role("button", name=name, exact=True, **options)

    def row(self, text: str) -> Locator:
        """Return the row of a table with a text."""
        return self.page.get_by_role("row").filter(has_text=text)

    @contextmanager
    def expecting(self, *texts: str) -> Iterator[None]:
        """Let the browser log refused requests in the block, as it always does."""
        self.expected = texts
        yield
        self.expected = ()

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(item in text for item in self.expected):
            self.errors.append(text)


@pytest.fixture(scope="session", autouse=True)
def patient() -> None:
    """Wait on a busy machine for longer than the browser's driver does by default."""
    from playwright.async_api import expect

    expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
async def console(tmp_path_factory: pytest.TempPathFactory, embedder: Any) -> AsyncIterator[ConsoleGateway]:
    """Give the gateway of a laptop, where a link makes the operator."""
    folder = tmp_path_factory.mktemp("console")
    async with console_gateway(folder, DEFINITIONS, entries=ENTRIES, embedder=embedder) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ConsoleGateway]:
    """Give a gateway whose users have keys, and rules that let Ann alone send mails."""
    folder = tmp_path_factory.mktemp("team")
    async with console_gateway(folder, DEFINITIONS, authenticated=True, policy=POLICY) as gateway:
        yield gateway


@pytest.fixture
async def new_visit(browser: Browser) -> AsyncIterator[Callable[[str], Awaitable[Visit]]]:
    """Give what opens an address in a browser without cookies. A visit that logs an error fails."""
    visits = []

    async def open_address(url: str) -> Visit:
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(PATIENCE_MS)
        visit = Visit(await context.new_page(), url.partition("/#")[0].rstrip("/"))
        visits.append(visit)
        await visit.page.goto(url)
        return visit

    yield open_address
    for visit in visits:
        await visit.page.context.close()
    assert [error for visit in visits for error in visit.errors] == []


@pytest.fixture
async def visit(new_visit: Callable[[str], Awaitable[Visit]], console: ConsoleGateway) -> Visit:
    """Give a page whose visitor is the operator."""
    visit = await new_visit(console.link())
    await visit.page.locator("main h1").wait_for()
    return visit
