"""External services over real HTTP on loopback: who is asked, what is kept, what happens when one is ill."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from quadloom.crawling.workers.services.client import ask_now
from quadloom.documents.syntaxes.external import ServicesNeeded, with_services
from quadloom.documents.syntaxes.registry import Registry
from quadloom.documents.transform import transform
from quadloom.model.document import Transformed
from quadloom.model.service import ServiceAnswer
from quadloom.settings import ServiceSettings, Settings
from service_server import Answer, Instance, running

URL = "https://site.example/picture.png"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
TURTLE = b"<> <http://vocab.example/width> 20 ."


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Instance]]:
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(running(answer))


def always(status: int, media_type: str, body: bytes) -> Answer:
    return lambda _headers, _body: (status, media_type, body)


def read(*services: ServiceSettings, body: bytes = PNG, content_type: str = "image/png") -> Transformed:
    settings = Settings(service=list(services))
    registry = with_services(Registry({}), settings.service)

    def once(answers: tuple[ServiceAnswer, ...] | None = None) -> Transformed:
        return transform(
            body, url=URL, content_type=content_type, settings=settings, syntaxes=registry, answers=answers
        )

    try:
        return once()
    except ServicesNeeded as needed:
        return once(ask_now(settings, body, needed.requests))


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


def test_a_slow_service_ends_at_its_timeout(serve: Callable[[Answer], Instance]) -> None:
    over = threading.Event()

    def slow(_headers: dict[str, str], _body: bytes) -> tuple[int, str, bytes]:
        over.wait(600)
        return 200, "text/turtle", TURTLE

    service = ServiceSettings(url=serve(slow).url, timeout=0.3, retries=0)
    try:
        assert codes(read(service)) == ["service-failed"]
    finally:
        over.set()
