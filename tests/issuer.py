"""A real issuer of access tokens on loopback, with metadata and keys that rotate. It signs any claims for a test."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "https://tools.example.com/mcp"
CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/keys"

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class Issuer(ThreadingHTTPServer):
    """Signs with its newest key. `asked` holds the path of every request. With `down`, every answer is an error."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.down = False
        self.keys: dict[str, PrivateKey] = {}
        """The keys that are published, by id."""
        self.kid = ""
        self.rotate("RS256")

    @property
    def url(self) -> str:
        """Return what the issuer calls itself."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def rotate(self, algorithm: str = "ES256", *, keep: bool = False) -> str:
        """Sign with a new key from now on. The old keys are no longer published, unless `keep` is set."""
        self.kid = f"key-{len(self.keys)}-{time.monotonic_ns()}"
        key: PrivateKey = (
            rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
            if algorithm.startswith(("RS", "PS"))
            else ec.generate_private_key(ec.SECP256R1())
        )
        self.keys = {**(self.keys if keep else {}), self.kid: key}
        return self.kid

    def claims(self, **other: Any) -> dict[str, Any]:
        """Return valid claims. A claim that is None is omitted."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ann",
            "iat": now,
            "exp": now + 600,
            "tenant": "acme",
        } | other
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, *, headers: Mapping[str, Any] | None = None, key: PrivateKey | None = None, **claims: Any) -> str:
        """Sign a token, with the newest key unless another is given."""
        key = key or self.keys[self.kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(self.claims(**claims), key, algorithm, headers={"kid": self.kid, **(headers or {})})

    def forged(self, header: Mapping[str, Any], signature: bytes = b"", **claims: Any) -> str:
        """Write a token by hand, with any header and any signature."""
        parts = (json.dumps(dict(header)).encode(), json.dumps(self.claims(**claims)).encode(), signature)
        return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)

    def public_pem(self) -> bytes:
        """Return the newest public key as text, as an attacker would use it for a shared secret."""
        return (
            self.keys[self.kid]
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )

    def published(self) -> dict[str, Any]:
        """Return the document that holds the public keys."""
        return {"keys": [_public(kid, key) for kid, key in self.keys.items()]}


def _public(kid: str, key: PrivateKey) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", "alg": "RS256"}
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", "alg": "ES256"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Issuer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        documents = {
            CONFIGURATION: {"issuer": self.server.url, "jwks_uri": self.server.url + KEYS},
            KEYS: self.server.published(),
        }
        document = None if self.server.down else documents.get(self.path)
        body = json.dumps(document or {"error": "no"}).encode()
        self.send_response(200 if document else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Run an issuer for the time of the block."""
    issuer = Issuer()
    thread = threading.Thread(target=issuer.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        issuer.shutdown()
        issuer.server_close()
        thread.join()
