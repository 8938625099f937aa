"""Signing in to one's own sites: what their hosts ask for reaches them, and no other host, archive or message."""

from __future__ import annotations

import datetime as dt
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fetch_server import Seen, Server, reply

from command_line import quadloom
from quadloom.errors import SettingsError
from quadloom.fetching.http.sign_in import SignIn
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.model.page import Failure, Page
from quadloom.process.clock import unix_time
from quadloom.settings import GuardSettings, PolitenessSettings, Settings, SiteSettings

SECRET = "wald:geheim-7311"
TOKEN = "token-7311"


@pytest.fixture
def site(tmp_path: Path) -> SiteSettings:
    (tmp_path / "login").write_text(SECRET + "\n", encoding="utf-8")
    (tmp_path / "headers").write_text(f"# staging\nX-Staging: {TOKEN}\n", encoding="utf-8")
    return SiteSettings(match="own.test", own=True, login=str(tmp_path / "login"), headers=str(tmp_path / "headers"))


def settings(site: SiteSettings, authorities: str = "") -> Settings:
    return Settings(
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"}, authorities=authorities),
        politeness=PolitenessSettings(ip_delay=0.0),
        site=[site],
    )


def fetch(settings: Settings, *hrefs: str) -> list[Result]:
    results: dict[str, Result] = {}
    with closing(CurlTransport(settings)) as client:
        for href in hrefs:
            client.submit(FetchRequest(href=href, redirects=5), partial(results.__setitem__, href))
            while client.in_flight:
                client.step(1.0)
    return [results[href] for href in hrefs]


def test_only_the_host_itself_receives_them(site: SiteSettings) -> None:
    def answer(seen: Seen) -> bytes:
        if seen.path == "/away":
            return f"HTTP/1.1 302 Found\r\nLocation: {away}\r\nContent-Length: 0\r\n\r\n".encode()
        return reply(b"x")

    with Server(answer) as server:
        away = server.url("/end", "other.test")
        paths = [server.url("/", "own.test"), server.url("/away", "own.test"), server.url("/", "other.test")]
        fetch(settings(site), *paths, server.url("/again", "own.test"))
        got = {(seen.host.partition(":")[0], seen.path): seen.headers for seen in server.log}
    basic = f"Basic {b64encode(SECRET.encode()).decode()}"
    for path in ("/", "/away", "/again"):
        assert got["own.test", path]["authorization"] == basic and got["own.test", path]["x-staging"] == TOKEN
    for path in ("/end", "/"):
        assert "authorization" not in got["other.test", path] and "x-staging" not in got["other.test", path]


def test_nothing_of_it_is_in_the_warehouse(site: SiteSettings, tmp_path: Path) -> None:
    def answer(seen: Seen) -> bytes:
        if seen.path == "/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        known = seen.headers.get("x-staging") == TOKEN
        return reply(b"<title>inside</title>" if known else b"<title>outside</title>", content_type="text/html")

    with Server(answer) as server:
        (tmp_path / "quadloom.toml").write_text(
            f'[crawl]\ncontact = "bot@example.org"\n[politeness]\ndelay = 0\n'
            f'[guard]\nallow = ["127.0.0.0/8"]\nhosts = {{ "*.test" = "127.0.0.1" }}\n'
            f'[[site]]\nmatch = "own.test"\nown = true\nlogin = "{site.login}"\nheaders = "{site.headers}"\n',
            encoding="utf-8",
        )
        done = quadloom("-w", "wh", "crawl", server.url("/", "own.test"), cwd=tmp_path)
        shown = quadloom("-w", "wh", "search", "inside", cwd=tmp_path)
        listed = quadloom("-w", "wh", "config", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "inside" in shown.stdout
    written = b"".join(path.read_bytes() for path in (tmp_path / "wh").rglob("*") if path.is_file())
    output = (done.stdout + done.stderr + shown.stdout + listed.stdout).encode()
    for secret in (SECRET.encode(), TOKEN.encode(), b64encode(SECRET.encode())):
        assert secret not in written and secret not in output


@pytest.fixture
def certificates(tmp_path: Path) -> Iterator[Path]:
    """`server.pem` for own.test, which is its own authority, and `client.pem`, each with its key."""
    for name in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        at, day = dt.datetime.fromtimestamp(unix_time(), dt.UTC), dt.timedelta(days=1)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        builder = (
            builder.serial_number(x509.random_serial_number()).not_valid_before(at - day).not_valid_after(at + day)
        )
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("own.test")]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        certificate = builder.sign(key, hashes.SHA256())
        (tmp_path / f"{name}.pem").write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    yield tmp_path


def test_a_client_certificate_opens_its_site_only(certificates: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem")
    context.load_verify_locations(certificates / "client.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    class TlsServer(Server):  # type: ignore[misc]
        def _serve(self, connection, number):  # type: ignore[no-untyped-def]
            try:
                super()._serve(context.wrap_socket(connection, server_side=True), number)
            except OSError:
                connection.close()

    with TlsServer(lambda seen: reply(b"inside")) as server:
        href = f"https://own.test:{server.port}/"
        pem = str(certificates / "client.pem")
        authorities = str(certificates / "server.pem")
        one, two = fetch(
            settings(SiteSettings(match="own.test", own=True, certificate=pem), authorities), href, f"{href}2"
        )
        (refused,) = fetch(settings(SiteSettings(match="else.test", own=True, certificate=pem), authorities), href)
    assert isinstance(one, Page) and isinstance(two, Page) and one.body == two.body == b"inside"
    assert isinstance(refused, Failure)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"own": False}, "for your own sites"),
        ({"login": "$QUADLOOM_NO_SUCH_VARIABLE"}, "is not set"),
        ({"login": "nowhere.txt"}, "cannot read nowhere.txt"),
        ({"certificate": "nowhere.pem"}, "there is no certificate"),
    ],
)
def test_mistakes_are_named(site: SiteSettings, change: dict[str, object], words: str) -> None:
    fields = {name: getattr(site, name) for name in ("match", "own", "login", "headers")} | change
    with pytest.raises(SettingsError, match=words):
        SignIn(settings(SiteSettings(**fields)))


@pytest.mark.parametrize("line", ["no colon", "Host: elsewhere", "X Y: z", "X-A: b\x01"])
def test_header_lines_are_checked(line: str, tmp_path: Path) -> None:
    (tmp_path / "headers").write_text(line, encoding="utf-8")
    with pytest.raises(SettingsError) as raised:
        SignIn(settings(SiteSettings(match="own.test", own=True, headers=str(tmp_path / "headers"))))
    assert "elsewhere" not in str(raised.value)
