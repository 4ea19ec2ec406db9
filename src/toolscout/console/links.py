"""Links that sign in once: printed by a gateway whose callers need not authenticate, and made by `toolscout console`.

The gateway leaves a file in the user's data folder that only this user can read. Its secret makes further links, each
of which is valid for a short time and only once.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolscout.settings import data_folder

FIRST_LINK_S = 86_400.0
"""How long the printed link is valid, unless it was used."""

LINK_S = 120.0
"""How long a link is valid that `toolscout console` makes."""

FRAGMENT = "sign-in"
"""The parameter behind the `#` of a link. A browser does not send that part to a server, and no log contains it."""


class LinkTokens:
    """Checks tokens of links. Each is taken once."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._used: dict[str, float] = {}

    def take(self, token: str) -> bool:
        """Return whether a token is valid. It is not, a second time."""
        now = time.time()
        self._used = {used: until for used, until in self._used.items() if until > now}
        body, _, mark = token.rpartition(".")
        until = body.rpartition(".")[2]
        if token in self._used or not hmac.compare_digest(mark.encode(), _mark(self._secret, body).encode()):
            return False
        if float(until) <= now:
            return False
        self._used[token] = float(until)
        return True


@dataclass(frozen=True, slots=True)
class RunningConsole:
    """The console of a gateway that runs now."""

    url: str
    secret: str
    """What makes links, or "" where people sign in with a key."""
    pid: int

    def link(self, lasts_s: float = LINK_S) -> str:
        """Return a link that signs in once."""
        return f"{self.url}/#{FRAGMENT}={new_token(self.secret, lasts_s)}" if self.secret else f"{self.url}/"

    def write(self, folder: Path | None = None) -> Path:
        """Leave the file for `toolscout console`."""
        folder = folder or _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / f"{self.pid}.json"
        temporary = file.with_suffix(".new")
        text = json.dumps({"url": self.url, "secret": self.secret, "pid": self.pid})
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            stream.write(text)
        temporary.replace(file)
        return file


def new_token(secret: str, lasts_s: float) -> str:
    """Return a new token."""
    body = f"{secrets.token_urlsafe(16)}.{int(time.time() + lasts_s)}"
    return f"{body}.{_mark(secret, body)}"


def running_consoles(folder: Path | None = None) -> list[RunningConsole]:
    """Return the consoles of this user that run, the newest first. Files of gateways that are gone are removed."""
    found: list[tuple[float, RunningConsole]] = []
    for file in (folder or _folder()).glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            console = RunningConsole(**json.loads(file.read_text("utf-8")))
            if _is_running(console.pid):
                found.append((file.stat().st_mtime, console))
            else:
                file.unlink()
    return [console for _, console in sorted(found, key=lambda item: -item[0])]


def _folder() -> Path:
    return data_folder() / "console"


def _mark(secret: str, body: str) -> str:
    return hmac.digest(secret.encode(), body.encode(), "sha256").hex()


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        return True  # there, signal 0 would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
