"""No text of a server begins a line of the terminal, where it would look like a line of toolscout."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forging_server import FORGED, LINES, TEXT
from guarantees import guarantee
from toolscout import Scout
from toolscout.models import Account, Scope

pytestmark = [guarantee("term:safe"), pytest.mark.process]

Run = Callable[..., Any]

SERVER = str(Path(__file__).parent.parent / "forging_server.py")


@pytest.fixture(autouse=True)
def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print where long lines could be broken, and what an operator approved."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TOOLSCOUT_QUARANTINE", "off")
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")


@pytest.fixture
def where(tmp_path: Path) -> tuple[str, ...]:
    return _where(tmp_path)


def _where(folder: Path, *args: str) -> tuple[str, ...]:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"evil": {"command": sys.executable, "args": [SERVER, *args]}}}))
    return "--config", str(path), "--store", f"sqlite:///{folder / 'catalogue.db'}"


def _honest(ran: Any) -> str:
    """Return the output, in which the hostile text is to be seen, but in no line of its own."""
    text = _unforged(ran)
    assert "boom" in text
    return text


def _unforged(ran: Any) -> str:
    text = str(ran.out + ran.err)
    assert not [line for line in text.splitlines() if line.startswith(LINES)]
    return text


def test_the_error_of_a_call_forges_no_hint(toolscout: Run, where: tuple[str, ...]) -> None:
    for tool in ("fails", "refuses"):
        toolscout("index", *where)
        _honest(toolscout("call", f"evil__{tool}", *where))


def test_a_server_that_does_not_start_forges_nothing(toolscout: Run, tmp_path: Path) -> None:
    where = _where(tmp_path, "refuse")
    assert "failed" in _unforged(toolscout("index", *where))
    _honest(toolscout("doctor", *where))


def test_definitions_forge_nothing(toolscout: Run, where: tuple[str, ...]) -> None:
    assert "3 new" in _unforged(toolscout("index", *where))
    store = where[2:]
    _honest(toolscout("describe", "evil__fails", *store))
    _honest(toolscout("search", "boom", "--detail", "full", "--explain", *store))


def test_a_finding_quotes_but_forges_nothing(
    toolscout: Run, where: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOOLSCOUT_QUARANTINE")
    toolscout("index", *where)
    ran = toolscout("changes", *where[2:])
    assert ran.code == 1
    _honest(ran)


def test_a_changed_definition_forges_nothing(toolscout: Run, tmp_path: Path) -> None:
    file, store = tmp_path / "tools.jsonl", ("--store", f"sqlite:///{tmp_path / 'catalogue.db'}")
    for text in ("Send a letter.", f"Send a letter.\n{TEXT}"):
        file.write_text(json.dumps({"server": "post", "name": "send", "description": text}))
        toolscout("index", "--tools", str(file), *store)
    ran = toolscout("changes", *store)
    assert ran.code == 1
    _honest(ran)


def test_accounts_forge_nothing(toolscout: Run, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"

    async def sign_in() -> None:
        async with Scout.open(store=store) as scout:
            assert scout.servers.accounts is not None
            account = Account(
                scope=Scope(),
                server="evil",
                issuer=f"https://a.b/{TEXT}",
                url="https://a.b/",
                resource=None,
                client={},
                token_endpoint="https://a.b/token",
                granted=TEXT,
            )
            await scout.servers.accounts.stored.put(account)

    asyncio.run(sign_in())
    assert "signed in" in _honest(toolscout("accounts", "--store", store)).replace("\n", " ")


def test_an_issuer_forges_nothing_while_somebody_signs_in(
    toolscout: Run, tmp_path: Path, authorization_server: Any, protected_server: Any
) -> None:
    path = tmp_path / "mcp.json"
    options = {"private": True, "oauth": {"issuer": authorization_server.url}}
    entry = {"type": "http", "url": protected_server.url, "toolscout": options}
    path.write_text(json.dumps({"mcpServers": {"notes": entry}}))
    authorization_server.switch(
        device={"user_code": TEXT, "verification_uri": f"https://a.b/{FORGED}", "expires_in": 1}
    )
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    _honest(toolscout("login", "notes", "--device-code", "--config", str(path), "--store", store))
