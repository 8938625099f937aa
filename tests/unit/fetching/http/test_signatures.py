"""Signed requests as servers see them, verified by another implementation with the keys that the site publishes."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from faults.fetch_server import Seen, Server
from quadloom.errors import SettingsError
from quadloom.fetching.http.signatures import DIRECTORY, RequestSigner, authority_of, key_directory, signing_keys
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.fetching.unit import open_transport
from quadloom.settings import CrawlSettings, GuardSettings, PolitenessSettings, Settings, WebSettings

pytest.importorskip("cryptography")
pytest.importorskip("http_message_signatures")
import http_message_signatures as signatures
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

AGENT = "https://crawler.example"
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nok"
ASKS = OK.replace(b"content-type", b'accept-signature: sig1=("@authority");tag="web-bot-auth"\r\ncontent-type', 1)


def make_key(folder: Path, name: str, at: float = 0.0) -> None:
    folder.mkdir(exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / name).write_bytes(pem)
    os.utime(folder / name, (at or time.time(),) * 2)


def settings_for(folder: Path, sign: str = "always", age: str = "365d") -> Settings:
    return Settings(
        crawl=CrawlSettings(sign=sign, sign_keys=str(folder), sign_key_age=age),  # type: ignore[arg-type]
        web=WebSettings(public_url=AGENT),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"}),
        politeness=PolitenessSettings(ip_delay=0.0),
    )


def get(transport: CurlTransport, *urls: str) -> list[Result]:
    results: list[Result] = []
    for url in urls:
        transport.submit(FetchRequest(href=url, redirects=5), results.append)
        until = time.monotonic() + 20
        while transport.in_flight:
            transport.step(0.5)
            assert time.monotonic() < until
    return results


def directory(folder: Path, now: float | None = None) -> dict[str, str]:
    """Published keys: id → x."""
    keys = signing_keys(settings_for(folder), time.time() if now is None else now)
    body, _ = key_directory(keys, "crawler.example", time.time())
    return {key["kid"]: key["x"] for key in msgspec.json.decode(body)["keys"]}


def verify(message: object, published: dict[str, str], tag: str, *components: str) -> str:
    """The id of the key; raises if the signature is not valid."""

    class Keys(signatures.HTTPSignatureKeyResolver):  # type: ignore[name-defined,misc]
        def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
            x = published[key_id]
            return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4)))

    verifier = signatures.HTTPMessageVerifier(signature_algorithm=signatures.algorithms.ED25519, key_resolver=Keys())
    (result,) = verifier.verify(message, expect_tag=tag, require_components=components)
    return str(result.parameters["keyid"])


def request_of(seen: Seen) -> object:
    return SimpleNamespace(method=seen.method, url=f"http://{seen.host}{seen.path}", headers=seen.headers)


def verify_request(seen: Seen, published: dict[str, str]) -> str:
    assert seen.headers["signature-agent"] == f'"{AGENT}"'
    return verify(request_of(seen), published, "web-bot-auth", "@authority", "signature-agent")


def test_every_hop_is_signed_for_its_own_host(tmp_path: Path) -> None:
    make_key(tmp_path / "keys", "a.pem")

    def answer(seen: Seen) -> bytes:
        if seen.host.startswith("a.test"):
            return f"HTTP/1.1 302 x\r\nlocation: {server.url('/b', 'b.test')}\r\ncontent-length: 0\r\n\r\n".encode()
        return OK

    with Server(answer) as server:
        get(open_transport(settings_for(tmp_path / "keys")), server.url("/?q=1", "a.test"))  # type: ignore[arg-type]
    assert [seen.host.partition(":")[0] for seen in server.log] == ["a.test", "b.test"]
    published = directory(tmp_path / "keys")
    assert {verify_request(seen, published) for seen in server.log} == set(published)
    for seen, other in (server.log, server.log[::-1]):
        forged = {**seen.headers, "signature": other.headers["signature"]}
        with pytest.raises(signatures.exceptions.InvalidSignature):
            verify_request(Seen(0, "GET", seen.path, seen.host, forged, 0), published)
        moved = Seen(0, "GET", seen.path, other.host, seen.headers, 0)
        with pytest.raises(signatures.exceptions.InvalidSignature):
            verify_request(moved, published)


def test_when_asked_no_other_server_gets_a_signature(tmp_path: Path) -> None:
    make_key(tmp_path / "keys", "a.pem")
    with Server(lambda seen: ASKS if seen.host.startswith("asks") else OK) as server:
        transport = open_transport(settings_for(tmp_path / "keys", "asked"))
        urls = [server.url("/", host) for host in ("asks.test", "quiet.test", "asks.test", "quiet.test")]
        get(transport, *urls)  # type: ignore[arg-type]
    signed = ["signature" in seen.headers for seen in server.log]
    assert signed == [False, False, True, False]
    verify_request(server.log[2], directory(tmp_path / "keys"))


def test_never_is_the_default_and_adds_nothing(tmp_path: Path) -> None:
    with Server(lambda _seen: ASKS) as server:
        settings = settings_for(tmp_path, "never")
        get(open_transport(settings), server.url("/"), server.url("/"))  # type: ignore[arg-type]
    assert not any(name.startswith("signature") for seen in server.log for name in seen.headers)
    assert Settings().crawl.sign == "never"


def test_a_new_key_takes_over_while_the_old_one_is_still_published(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    make_key(tmp_path, "old.pem", now[0] - 1000)
    old = set(directory(tmp_path, now[0]))
    signer = RequestSigner(settings_for(tmp_path), lambda: now[0])
    assert _key_of(signer) in old
    make_key(tmp_path, "new.pem", now[0] - 10)
    now[0] += 61
    assert _key_of(signer) not in old and old < set(directory(tmp_path, now[0]))


def test_keys_expire(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    make_key(tmp_path, "a.pem", now[0])
    signer = RequestSigner(settings_for(tmp_path, age="1h"), lambda: now[0])
    assert signer.lines("http://a.example/")
    now[0] += 3601
    assert not signer.lines("http://a.example/")
    assert not signing_keys(settings_for(tmp_path, age="1h"), now[0])
    with pytest.raises(SettingsError, match="no valid key"):
        RequestSigner(settings_for(tmp_path, age="1h"), lambda: now[0])


@pytest.mark.parametrize("change", [lambda path: (path / "bad.pem").write_text("no key"), lambda path: None])
def test_what_cannot_sign_is_refused_at_the_start(tmp_path: Path, change: Callable[[Path], object]) -> None:
    change(tmp_path)
    with pytest.raises(SettingsError):
        RequestSigner(settings_for(tmp_path), time.time)
    make_key(tmp_path / "good", "a.pem")
    without_site = msgspec.structs.replace(settings_for(tmp_path / "good"), web=WebSettings())
    with pytest.raises(SettingsError, match="publishes"):
        RequestSigner(without_site, time.time)


def test_the_directory_is_signed_by_each_key_it_publishes(tmp_path: Path) -> None:
    for name in ("a.pem", "b.pem"):
        make_key(tmp_path, name)
    keys = signing_keys(settings_for(tmp_path), time.time())
    body, headers = key_directory(keys, "crawler.example", time.time())
    published = {key["kid"]: key["x"] for key in msgspec.json.decode(body)["keys"]}
    assert len(published) == 2 and all(key["nbf"] < key["exp"] for key in msgspec.json.decode(body)["keys"])
    request = SimpleNamespace(method="GET", url=f"{AGENT}{DIRECTORY}", headers={"host": "crawler.example"})
    found = set()
    for label in ("sig1", "sig2"):
        only = {
            name: next(part for part in value.split(", ") if part.startswith(label))
            for name, value in headers.items()
            if name.startswith("Signature")
        }
        answer = SimpleNamespace(status_code=200, headers=only, request=request, url=request.url)
        found.add(verify(answer, published, "http-message-signatures-directory", '"@authority";req'))
    assert found == set(published)


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("http://Example.ORG/a", "example.org"),
        ("https://example.org:443/", "example.org"),
        ("https://example.org:8443/", "example.org:8443"),
        ("http://[2001:DB8::1]:81/", "[2001:db8::1]:81"),
        ("http://münchen.example/", "xn--mnchen-3ya.example"),
        ("http://[broken", ""),
    ],
)
def test_authority(url: str, authority: str) -> None:
    assert authority_of(url) == authority


def test_signing_costs_little(tmp_path: Path) -> None:
    make_key(tmp_path, "a.pem")
    signer = RequestSigner(settings_for(tmp_path), time.time)
    began = time.process_time()
    for number in range(1000):
        signer.lines(f"https://host-{number}.example/")
    assert (time.process_time() - began) / 1000 < 0.2e-3


def _key_of(signer: RequestSigner) -> str:
    line = next(line for line in signer.lines("http://a.example/") if line.startswith("Signature-Input"))
    return line.partition('keyid="')[2].partition('"')[0]
