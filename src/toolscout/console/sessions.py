"""Sessions of the console: a sealed cookie that holds the caller's key or token, and a proof that the page keeps.

The gateway remembers nothing. With each request it takes the key or token out of the cookie and treats it as if the
request had carried it, so a revoked key ends its sessions, and a session never has other rights than its key.

Browsers send a cookie to every port of a host, so that another local server would see it, and a page of that server
could cause requests with it. Therefore a cookie counts only with the proof, a random text that the page of the console
makes and keeps in its own storage, where no other origin can read it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from toolscout.errors import InvalidValueError

SESSION_S = 12 * 3_600.0
"""How long a session lasts. The key or token in it may end earlier."""

PROOF_HEADER = "x-toolscout-page"
"""The header with the proof of the page."""

LOCAL = "local"
"""What a session holds in place of a key where callers need not authenticate: the local user."""

_LARGEST_COOKIE = 3_800
_NONCE_BYTES = 12


class ConsoleSessions:
    """Seals and opens cookies."""

    def __init__(self, key: Callable[[], bytes], *, https: bool) -> None:
        """Take a function that returns the key for sealing, and whether browsers reach the console by https."""
        self._key = key
        self._https = https

    def begin(self, request: Request, response: Response, authorization: str, proof: str) -> None:
        """Set the cookie of a session."""
        self.set(request, response, "session", {"authorization": authorization}, proof, SESSION_S)

    def authorization(self, request: Request) -> str | None:
        """Return what the session of a request holds, or None if it has no session or does not prove its page."""
        session = self.get(request, "session")
        proof = request.headers.get(PROOF_HEADER, "")
        if session is None or not secrets.compare_digest(str(session["proof"]), digest(proof)):
            return None
        return str(session["authorization"])

    def set(
        self, request: Request, response: Response, name: str, value: Mapping[str, str], proof: str, lasts_s: float
    ) -> None:
        """Set a sealed cookie. Raise InvalidValueError if the value is too large for one."""
        content = {**value, "proof": digest(proof), "until": time.time() + lasts_s}
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + AESGCM(self._key()).encrypt(nonce, json.dumps(content).encode(), name.encode())
        text = base64.urlsafe_b64encode(sealed).decode()
        if len(text) > _LARGEST_COOKIE:
            raise InvalidValueError(
                "the token is too large for a cookie", hint="have the issuer leave claims out, or sign in with a key"
            )
        # A sign-in at the issuer ends with a request that another site causes, which `strict` would leave out.
        response.set_cookie(
            self._cookie(request, name),
            text,
            max_age=int(lasts_s),
            path="/",
            secure=self._https,
            httponly=True,
            samesite="strict" if name == "session" else "lax",
        )

    def get(self, request: Request, name: str) -> dict[str, Any] | None:
        """Return what a sealed cookie holds, or None if there is none that is valid now."""
        text = request.cookies.get(self._cookie(request, name), "")
        try:
            sealed = base64.urlsafe_b64decode(text)
            content = json.loads(
                AESGCM(self._key()).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], name.encode())
            )
        except (InvalidTag, ValueError, binascii.Error):
            return None
        return content if isinstance(content, dict) and content["until"] > time.time() else None

    def end(self, request: Request, response: Response, name: str) -> None:
        """Delete a cookie."""
        response.delete_cookie(self._cookie(request, name), path="/", secure=self._https, httponly=True)

    def _cookie(self, request: Request, name: str) -> str:
        """Return the name of a cookie. It has the port, because gateways of one machine share its cookies."""
        if self._https:
            return f"__Host-toolscout-{name}"
        port = request.headers.get("host", "").rpartition(":")[2]
        return f"toolscout-{name}-{port}" if port.isdigit() else f"toolscout-{name}"


def json_response(body: Mapping[str, Any]) -> JSONResponse:
    """Write a body that no cache keeps."""
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


def digest(proof: str) -> str:
    """Return what a cookie holds of a proof."""
    return hashlib.sha256(f"page {proof}".encode()).hexdigest()
