"""HTTP/2 servers that send frames without end instead of an answer, and TLS that is wrong or never done: each costs its
own request, in its time and in bounded memory, and others are answered meanwhile."""

from __future__ import annotations

import resource
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="makes the certificates; it comes with moto, a part of the `dev` extra")

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from quadloom.fetching.http import curl
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.model.page import Failure, Page
from quadloom.settings import GuardSettings, LimitSettings, PolitenessSettings, Settings

HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION, DATA = 1, 3, 4, 5, 6, 7, 8, 9, 0
END_STREAM, END_HEADERS = 1, 4
STATUS_200 = b"\x88"  # HPACK: an entry of the static table
SECONDS = 4.0
MEGABYTES = 80  # by which the memory of the process may grow

Send = Callable[[bytes], None]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes, *, indexed: bool = False) -> bytes:
    """A header field of HPACK, with a name and a value of up to 126 and 4000 bytes."""
    size = len(value)
    length = bytes((size,)) if size < 127 else bytes((127, (size - 127) % 128 | 128, (size - 127) // 128))
    return (b"\x40" if indexed else b"\x00") + bytes((len(name),)) + name + length + value


def forever(send: Send, data: bytes) -> None:
    while True:
        send(data)
        time.sleep(0.0005)  # client and servers share an interpreter


def continuations(send: Send) -> None:
    send(frame(HEADERS, 0, 1, STATUS_200))
    forever(send, frame(CONTINUATION, 0, 1, literal(b"x", b"a" * 4000)))


def empty_continuations(send: Send) -> None:
    send(frame(HEADERS, 0, 1, STATUS_200))
    forever(send, frame(CONTINUATION, 0, 1) * 1000)


def large_table(send: Send) -> None:
    """One entry of the dynamic table, named 16,000 times: 64 MB of headers in 16 KB."""
    send(frame(HEADERS, 0, 1, STATUS_200 + literal(b"x", b"a" * 4000, indexed=True)))
    forever(send, frame(CONTINUATION, 0, 1, b"\xbe" * 16_000))


def pushes(send: Send) -> None:
    promised = 2
    while True:
        send(
            frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", promised) + b"\x82\x84\x87" + literal(b"host", b"h"))
        )
        promised += 2


def interim_answers(send: Send) -> None:
    forever(send, frame(HEADERS, END_HEADERS, 1, b"\x08\x03103" + literal(b"link", b"a" * 1000)))


def go_away_again(send: Send) -> None:
    forever(send, frame(GOAWAY, 0, 0, struct.pack(">II", 0x7FFFFFFF, 0)) * 100)


def page(send: Send) -> None:
    send(frame(HEADERS, END_HEADERS, 1, STATUS_200) + frame(DATA, END_STREAM, 1, b"<title>page</title>"))


def bodies_without_bytes(send: Send) -> None:
    send(frame(HEADERS, END_HEADERS, 1, STATUS_200))
    forever(send, frame(DATA, 0, 1) * 1000)


def padding(send: Send) -> None:
    send(frame(HEADERS, END_HEADERS, 1, STATUS_200))
    forever(send, frame(DATA, 8, 1, b"\xff" + bytes(255)))


FLOODS: dict[str, Callable[[Send], None]] = {
    "continuations": continuations,
    "empty continuations": empty_continuations,
    "a large table": large_table,
    "pushes": pushes,
    "interim answers": interim_answers,
    "go away": go_away_again,
    "bodies without bytes": bodies_without_bytes,
    "padding": padding,
    "settings": lambda send: forever(send, frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 4096)) * 500),
    "a table of 4 GB": lambda send: forever(send, frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 0xFFFFFFFF))),
    "pings": lambda send: forever(send, frame(PING, 0, 0, bytes(8)) * 500),
    "resets of unknown streams": lambda send: forever(send, frame(RST_STREAM, 0, 3, bytes(4)) * 500),
    "windows beyond all bounds": lambda send: forever(send, frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 500),
    "windows of nothing": lambda send: forever(send, frame(WINDOW_UPDATE, 0, 0, bytes(4)) * 500),
    "frames of unknown kinds": lambda send: forever(send, frame(0xFA, 0, 0, bytes(16_000))),
    "a frame of 16 MB": lambda send: forever(send, b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(16_000)),
}


def make_certificate(folder: Path, ends: timedelta) -> Path:
    """key.pem and cert.pem of two names, signed by themselves, which end so long from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "h2.test")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("h2.test"), x509.DNSName("other.test")])
    unsigned = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=9), now + ends)
    signed = unsigned.add_extension(names, critical=False).sign(key, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    (folder / "cert.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    return folder


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("floods"), timedelta(days=2))


def run(authority: Path, seconds: float, *urls: str) -> list[Result]:
    client = CurlTransport(
        Settings(
            guard=GuardSettings(
                allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"}, authorities=str(authority / "cert.pem")
            ),
            limits=LimitSettings(total_seconds=seconds, body_bytes=1_000_000),
            politeness=PolitenessSettings(ip_delay=0.0),
        )
    )
    results: dict[str, Result] = {}
    for url in urls:
        client.submit(FetchRequest(href=url), partial(results.__setitem__, url))
    with closing(client):
        while client.in_flight:
            client.step(1.0)
    return [results[url] for url in urls]


class Serving:
    """`requests`: connections on which a handshake was done."""

    def __init__(self) -> None:
        self.port = 0
        self.requests = 0


@contextmanager
def serving(folder: Path, answer: Callable[[Send], None]) -> Iterator[Serving]:
    """A server which reads what comes, and sends what `answer` does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.set_alpn_protocols(["h2"])
    served = Serving()

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as stream:
            if not stream.recv(65536):
                return
            served.requests += 1
            threading.Thread(target=_drain, args=(stream,), daemon=True).start()
            stream.sendall(frame(SETTINGS, 0, 0))
            time.sleep(0.1)  # the request is in what is read meanwhile
            answer(stream.sendall)
            time.sleep(1.0)

    with _listening(serve) as served.port:
        yield served


def _drain(stream: ssl.SSLSocket) -> None:
    with suppress(OSError, ValueError):
        while stream.recv(65536):
            pass


@contextmanager
def _listening(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                connection.settimeout(10.0)
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_costs_its_own_request(certificate: Path, kind: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with serving(certificate, FLOODS[kind]) as flood, serving(certificate, page) as good:
        flooded, answered = run(
            certificate, SECONDS, f"https://h2.test:{flood.port}/", f"https://other.test:{good.port}/"
        )
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert isinstance(answered, Page) and answered.http_version == "2" and answered.body == b"<title>page</title>"
    assert isinstance(flooded, Failure) or flooded.truncated or not flooded.body
    assert flood.requests <= 3 and grown < MEGABYTES, f"{grown:.0f} MB for {kind}"


def test_a_connection_that_is_read_without_a_pause_is_ended() -> None:
    """libcurl reads until a socket is empty: GOAWAY frames as fast as a server can send them kept it there for good."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        guard = curl._ReadingGuard({ours.fileno()})
        guard.watch()
        for _ in range(20):  # many short reads are no long one
            guard.reading = [ours.fileno()]
            _burn(0.05)
        guard.reading = [ours.fileno()]
        time.sleep(1.0)  # nor is one that waits for a processor
        guard.reading = None
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        guard.reading = [ours.fileno()]
        used = time.thread_time()
        while time.thread_time() - used < 60.0:
            with suppress(BlockingIOError):
                assert theirs.recv(1) == b""
                break
        assert time.thread_time() - used < 30.0
        guard.close()


def _burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_expired_and_foreign_certificates_are_refused(certificate: Path, tmp_path: Path) -> None:
    make_certificate(tmp_path, timedelta(days=-1))
    with serving(tmp_path, page) as expired, serving(certificate, page) as foreign:
        (old,) = run(tmp_path, SECONDS, f"https://h2.test:{expired.port}/")
        (wrong,) = run(certificate, SECONDS, f"https://third.test:{foreign.port}/")
        assert isinstance(old, Failure) and (old.kind, old.transient) == ("tls", False) and "expired" in old.message
        assert isinstance(wrong, Failure) and (wrong.kind, wrong.transient) == ("tls", False)
        assert not expired.requests and not foreign.requests


def never(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(65536):
            pass


def drip(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.sendall(b"\x16\x03\x03\x40\x00")  # a record of 16 KB begins
        while True:
            connection.sendall(b"\x02")
            time.sleep(0.05)


@pytest.mark.parametrize("handshake", [never, drip])
def test_a_handshake_without_end_has_the_time_of_a_request(
    certificate: Path, handshake: Callable[[socket.socket], None]
) -> None:
    with _listening(handshake) as port:
        (result,) = run(certificate, 1.0, f"https://h2.test:{port}/")
    assert isinstance(result, Failure) and result.transient and result.seconds < 30.0
