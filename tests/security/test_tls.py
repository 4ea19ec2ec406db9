"""TLS verifies the name in the URL, while the connection goes to the address that was checked."""

import datetime
import socket
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from downstreams import opened
from fake_http import fake_http
from guarantees import guarantee
from toolscout.config import ServerConfig
from toolscout.downstream import egress

pytestmark = guarantee("egress:ssrf")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Make a certificate for `mcp.test`, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mcp.test")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("mcp.test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return str(file)


@pytest.fixture
def server(certificate, monkeypatch):
    """Return a server that speaks TLS and that every name resolves to."""
    with fake_http() as running:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        running.socket = context.wrap_socket(running.socket, server_side=True, do_handshake_on_connect=False)

        async def here(host, port):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        monkeypatch.setattr(egress, "lookup", here)
        yield running


def web(server, host):
    url = f"https://{host}:{server.server_address[1]}/mcp"
    return ServerConfig(title="web", transport="http", url=url, private=True)


async def test_a_certificate_without_a_trusted_issuer_is_refused(server):
    async with opened(web(server, "mcp.test"), ready=False) as here:
        assert "cannot connect to it" in (await here.state("web", "failed")).status.detail
    assert server.seen == []


async def test_the_certificate_must_be_for_the_name_in_the_url(server, certificate, monkeypatch):
    monkeypatch.setattr(egress, "tls_context", lambda: ssl.create_default_context(cafile=certificate))
    async with opened(web(server, "mcp.test")) as here:
        assert (await here.call("web", "echo"))["content"]
    server.seen.clear()
    async with opened(web(server, "other.test"), ready=False) as here:
        assert "cannot connect to it" in (await here.state("web", "failed")).status.detail
    assert server.seen == []
