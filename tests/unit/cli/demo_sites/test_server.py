"""The demo's server over real sockets: what depends on the request."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fakeweb.reader import Reader
from quadloom.cli.demo_sites import DemoServer
from quadloom.cli.demo_sites.server import preferred
from quadloom_lab.fakeweb import demo_web
from quadloom_lab.fakeweb.web import RDF_TYPES
from quadloom_lab.fakeweb.web import preferred as preferred_ending


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer() as running:
        yield running


def test_all_homes_answer_with_links_to_this_port(server: DemoServer) -> None:
    reader = Reader(server.port)
    assert len(server.homes) == 6
    for home in server.homes:
        page = reader.get(home)
        assert page.status == 200
        assert f":{server.port}/".encode() in page.body


def test_a_plain_crawler_finds_what_the_generator_plans(server: DemoServer) -> None:
    reader = Reader(server.port)
    web = demo_web(server.port)
    assert {reader.get(url).status for url in web.reachable()} == {200, 303}


def test_what_the_reader_has_is_not_sent_again(server: DemoServer) -> None:
    reader = Reader(server.port)
    url = next(url for url in sorted(demo_web(server.port).reachable()) if "/events/0-" in url)
    page = reader.get(url)
    again = reader.get(url, If_None_Match=page.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert reader.get(url, If_None_Match='"other"').status == 200
    assert reader.get(url, If_Modified_Since=page.headers["last-modified"]).status == 304
    assert reader.get(url, If_Modified_Since="no date").status == 200
    # RFC 9110, 13.2.2: the tag decides.
    assert reader.get(url, If_None_Match='"x"', If_Modified_Since=page.headers["last-modified"]).status == 200


def test_unknown_pages_and_hosts_are_missing_and_queries_are_ignored(server: DemoServer) -> None:
    reader = Reader(server.port)
    home = server.homes[0]
    assert reader.get(home + "no-such-page").status == 404
    assert reader.get(f"http://www.other.example:{server.port}/").status == 404
    assert reader.get(home + "about?x=1").body == reader.get(home + "about").body


def test_the_registry_negotiates(server: DemoServer) -> None:
    reader = Reader(server.port)
    base = f"http://id.registry.example:{server.port}"
    assert reader.get(f"{base}/id/person/3").headers["location"] == f"{base}/page/person/3"
    turtle = reader.get(f"{base}/id/person/3", Accept="text/html;q=0.5, text/turtle")
    assert (turtle.status, turtle.headers["location"]) == (303, f"{base}/data/person/3.ttl")
    assert reader.get(turtle.headers["location"]).headers["content-type"].startswith("text/turtle")


@pytest.mark.parametrize(
    "accept", ["", "*/*", "text/html", "text/turtle", "text/turtle;q=0.5, text/html;q=0.5", "application/ld+json;q=0"]
)
def test_preferences_agree_with_the_generators(accept: str) -> None:
    assert RDF_TYPES.get(preferred(accept, RDF_TYPES), "") == preferred_ending(accept)


def test_heads_have_no_body_and_connections_stay_open(server: DemoServer) -> None:
    authority = server.homes[0].removeprefix("http://").rstrip("/")
    request = f" / HTTP/1.1\r\nHost: {authority}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as sock:
        sock.sendall(f"HEAD{request}\r\nGET{request}Connection: close\r\n\r\n".encode())
        data = b""
        while piece := sock.recv(65536):
            data += piece
    heads = data.split(b"HTTP/1.1 200 OK\r\n")
    assert len(heads) == 3
    assert heads[1].endswith(b"\r\n\r\n") and b"Content-Length" in heads[1]
    assert heads[2].rstrip().endswith(b"</html>")
