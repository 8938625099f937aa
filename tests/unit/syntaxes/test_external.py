"""External services over real HTTP on loopback: who is asked, what is kept, what happens when one is ill."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from quadloom.errors import FetchError, SyntaxInvalid
from quadloom.model.document import Transformed
from quadloom.phases.loaders import service_sender
from quadloom.phases.transform import transform
from quadloom.settings import ServiceSettings, Settings
from quadloom.syntaxes.external import FAILURES, FIRST_QUARANTINE, ServicePool, ServiceReply
from quadloom.syntaxes.plugins import assemble
from quadloom.syntaxes.registry import Registry

URL = "https://site.example/picture.png"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
TURTLE = b"<> <http://vocab.example/width> 20 ."
Answer = Callable[[dict[str, str], bytes], tuple[int, str, bytes]]


class Instance:
    """One running service: its address, and the requests it got."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[dict[str, str], bytes]] = []


@contextmanager
def running(answer: Answer) -> Iterator[Instance]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            instance.requests.append((headers, body))
            status, media_type, data = answer(headers, body)
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with suppress(OSError):  # a client that gave up has closed its end
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    instance = Instance(f"http://127.0.0.1:{server.server_address[1]}/")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield instance
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Instance]]:
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(running(answer))


def always(status: int, media_type: str, body: bytes) -> Answer:
    return lambda _headers, _body: (status, media_type, body)


def read(*services: ServiceSettings, body: bytes = PNG, content_type: str = "image/png") -> Transformed:
    settings = Settings(service=list(services))
    made = assemble(Registry({}), settings, service_sender(settings))
    return transform(body, url=URL, content_type=content_type, settings=settings, syntaxes=made.registry)


def codes(result: Transformed) -> list[str]:
    return [finding.code for finding in result.findings]


def test_the_body_goes_out_and_rdf_comes_back(serve: Callable[[Answer], Instance]) -> None:
    instance = serve(always(200, "text/turtle; charset=utf-8", TURTLE))
    result = read(ServiceSettings(url=instance.url, kinds=["image"]))
    assert (
        result.nquads
        == f'<{URL}> <http://vocab.example/width> "20"^^<http://www.w3.org/2001/XMLSchema#integer> <{URL}> .\n'.encode()
    )
    headers, body = instance.requests[0]
    assert body == PNG
    assert headers["content-type"] == "image/png"
    assert headers["content-location"] == URL
    assert "text/turtle" in headers["accept"]


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        ("application/n-triples", b"<http://a.example/> <http://p.example/> _:b0 .", "<http://p.example/>"),
        ("application/ld+json", b'{"http://p.example/": "x"}', '<http://p.example/> "x"'),
        ("application/xml", b"<thing><size>3</size></thing>", '<urn:quadloom:xml#size> "3"'),
        (
            "application/xml",
            b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
            b'xmlns:p="http://p.example/" p:q="x"/></rdf:RDF>',
            f'<{URL}> <http://p.example/q> "x"',
        ),
    ],
)
def test_every_syntax_of_an_answer_is_kept(
    serve: Callable[[Answer], Instance], media_type: str, body: bytes, expected: str
) -> None:
    result = read(ServiceSettings(url=serve(always(200, media_type, body)).url))
    assert expected in result.nquads.decode()
    assert codes(result) == []


@pytest.mark.parametrize(
    ("status", "media_type", "body", "code"),
    [
        (200, "text/plain", b"hello", "service-type"),
        (200, "text/turtle", b"<broken", "rdf-syntax"),
        (200, "application/xml", b"<broken", "xml"),
        (422, "text/plain", b"", "service-failed"),
        (500, "text/plain", b"", "service-failed"),
        (302, "text/plain", b"", "service-failed"),
    ],
)
def test_a_bad_answer_is_a_finding(
    serve: Callable[[Answer], Instance], status: int, media_type: str, body: bytes, code: str
) -> None:
    result = read(ServiceSettings(url=serve(always(status, media_type, body)).url))
    assert codes(result) == [code]
    assert result.nquads == b""


def test_other_kinds_are_not_sent(serve: Callable[[Answer], Instance]) -> None:
    instance = serve(always(200, "text/turtle", TURTLE))
    assert read(ServiceSettings(url=instance.url, kinds=["pdf", "image/gif"])).nquads == b""
    assert read(ServiceSettings(url=instance.url, kinds=["image/png"])).nquads != b""
    assert len(instance.requests) == 1


def test_a_failed_request_is_repeated_on_another_instance(serve: Callable[[Answer], Instance]) -> None:
    ill, well = serve(always(503, "text/plain", b"")), serve(always(200, "text/turtle", TURTLE))
    service = ServiceSettings(url=f"{ill.url} {well.url}", retries=1)
    for _ in range(3):
        assert read(service).nquads != b""
    assert well.requests


@pytest.mark.timing
def test_a_slow_service_ends_at_its_timeout(serve: Callable[[Answer], Instance]) -> None:
    def slow(_headers: dict[str, str], _body: bytes) -> tuple[int, str, bytes]:
        time.sleep(8.0)
        return 200, "text/turtle", TURTLE

    started = time.monotonic()
    assert codes(read(ServiceSettings(url=serve(slow).url, timeout=0.3, retries=0))) == ["service-failed"]
    assert time.monotonic() - started < 7.0


def test_who_is_free_is_asked() -> None:
    """One instance is stuck with a page; the other takes all that comes meanwhile."""
    release, began = threading.Event(), threading.Event()

    def send(url: str, body: bytes, _headers: object, _seconds: float) -> ServiceReply:
        if body == b"slow":
            began.set()
            release.wait(10)
        return ServiceReply(200, url, b"")

    pool = ServicePool(ServiceSettings(url="http://one.example/ http://two.example/"), send)
    stuck: list[str] = []
    thread = threading.Thread(target=lambda: stuck.append(pool.ask(b"slow", ()).content_type))
    thread.start()
    assert began.wait(10)
    others = {pool.ask(b"quick", ()).content_type for _ in range(5)}
    release.set()
    thread.join(10)
    assert others == {"http://two.example/"}
    assert stuck == ["http://one.example/"]
    assert {pool.ask(b"quick", ()).content_type for _ in range(2)} == {"http://one.example/", "http://two.example/"}


class IllService:
    """An instance that fails until it is cured, on a clock of the test's."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ill = True
        self.asked = 0

    def send(self, url: str, body: bytes, headers: object, seconds: float) -> ServiceReply:
        self.asked += 1
        if self.ill:
            raise FetchError("connect", "refused")
        return ServiceReply(200, "text/turtle", TURTLE)


def test_quarantine_grows_and_one_probe_ends_it() -> None:
    service = IllService()
    pool = ServicePool(ServiceSettings(url="http://one.example/", retries=0), service.send, clock=lambda: service.now)
    for _ in range(10):
        with pytest.raises(SyntaxInvalid):
            pool.ask(b"", ())
    assert service.asked == FAILURES, "an instance in quarantine is not asked"
    service.now += FIRST_QUARANTINE
    for _ in range(3):
        with pytest.raises(SyntaxInvalid):
            pool.ask(b"", ())
    assert service.asked == FAILURES + 1, "one probe, then the next quarantine"
    service.now += FIRST_QUARANTINE
    with pytest.raises(SyntaxInvalid):
        pool.ask(b"", ())
    assert service.asked == FAILURES + 1, "the second quarantine is twice as long"
    service.now += FIRST_QUARANTINE
    service.ill = False
    for _ in range(3):
        assert pool.ask(b"", ()).status == 200
