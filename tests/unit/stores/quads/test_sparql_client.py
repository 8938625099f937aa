"""The client of a SPARQL server: retries, limits, users, and what it refuses to do."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from quadloom.errors import QuerySyntaxError, SettingsError, StoreError, StoreUnavailable
from quadloom.model.quads import Quads
from quadloom.settings import GuardSettings, LimitSettings, Settings, StoreSettings
from quadloom.stores.backends import open_quads, query_source
from quadloom.stores.protocols.queries import SparqlServer
from quadloom.stores.quads.sparql import SparqlQuads
from quadloom.stores.quads.sparql_client import ROWS, SparqlClient, servers_of
from servers import sparql_server

YES = b'{"head":{},"boolean":true}'
Script = Callable[[BaseHTTPRequestHandler, bytes], None]


class Scripted:
    """A server that does what the test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.script: Script = answer(200, YES, ROWS)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                outer.requests.append((self.path, dict(self.headers), body))
                outer.script(self, body)

            def log_message(self, format: str, *args: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def client(self, **values: object) -> SparqlClient:
        server = {"query": f"{self.url}/query", "update": f"{self.url}/update", **values}
        return SparqlClient(SparqlServer(**server), password="secret", sleep=lambda _seconds: None)  # type: ignore[arg-type]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def answer(status: int, body: bytes = b"", media_type: str = "text/plain", **headers: str) -> Script:
    def send(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": media_type, "Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return send


def in_turn(*scripts: Script) -> Script:
    left = list(scripts)
    return lambda handler, body: (left.pop(0) if len(left) > 1 else left[0])(handler, body)


def hang_up(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    made = Scripted()
    yield made
    made.close()


@pytest.mark.parametrize("trouble", [answer(503, b"starting"), answer(429), hang_up], ids=["503", "429", "hang-up"])
def test_passing_trouble_is_waited_out(scripted: Scripted, trouble: Script) -> None:
    scripted.script = in_turn(trouble, trouble, answer(200, YES, ROWS))
    with closing(scripted.client()) as client:
        assert client.query("ASK {}").whole() == YES
    assert len(scripted.requests) == 3


def test_lasting_trouble_is_told(scripted: Scripted) -> None:
    scripted.script = answer(503, b"overloaded\n today")
    with closing(scripted.client()) as client, pytest.raises(StoreError, match="503: overloaded today"):
        client.query("ASK {}")
    assert len(scripted.requests) == 6


def test_what_will_not_get_better_is_not_tried_again(scripted: Scripted) -> None:
    with closing(scripted.client()) as client:
        scripted.script = answer(400, b"parse error")
        with pytest.raises(QuerySyntaxError, match="parse error"):
            client.query("nonsense")
        with pytest.raises(StoreError, match="400: parse error"):
            client.update("nonsense")
        scripted.script = answer(500, b"no")
        with pytest.raises(StoreError, match="500"):
            client.query("ASK {}")
    assert len(scripted.requests) == 3


def test_redirects_are_not_followed(scripted: Scripted) -> None:
    scripted.script = answer(307, Location=f"{scripted.url}/elsewhere")
    with closing(scripted.client()) as client, pytest.raises(StoreError, match="307"):
        client.update("INSERT DATA {}")
    assert [path for path, _, _ in scripted.requests] == ["/update"]


def test_an_answer_is_read_up_to_its_limit(scripted: Scripted) -> None:
    scripted.script = answer(200, bytes(100_000), ROWS)
    with closing(scripted.client(most_bytes=50_000)) as client, pytest.raises(StoreError, match="longer than 50000"):
        client.query("ASK {}").whole()


def test_another_format_than_asked_for_is_refused(scripted: Scripted) -> None:
    scripted.script = answer(200, b"<html>", "text/html; charset=utf-8")
    with closing(scripted.client()) as client, pytest.raises(StoreError, match="text/html"):
        client.query("ASK {}").expect(ROWS)


def test_silence_is_not_waited_for_forever(scripted: Scripted) -> None:
    over = threading.Event()

    def silence(_handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        over.wait(600)

    scripted.script = silence
    with closing(scripted.client(seconds=0.3)) as client:
        try:
            with pytest.raises(StoreError, match=r"no data for 0\.3 seconds"):
                client.query("ASK {}")
        finally:
            over.set()


def test_an_answer_that_breaks_off_is_told(scripted: Scripted) -> None:
    def half(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", ROWS)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"head":{"vars":["g"]},"results":{"bindings":[')
        handler.wfile.flush()
        hang_up(handler, b"")

    scripted.script = in_turn(answer(200, YES, ROWS), half)
    server = SparqlServer(query=f"{scripted.url}/query", update="")
    with closing(SparqlQuads(server, client=scripted.client())) as quads, pytest.raises(StoreError):
        list(quads.graphs())


def test_the_password_goes_to_a_server_that_asks_and_nowhere_else(scripted: Scripted) -> None:
    wanted = "Basic " + base64.b64encode(b"me:secret").decode()

    def guarded(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if handler.headers["Authorization"] == wanted:
            answer(200, YES, ROWS)(handler, body)
        else:
            answer(401, b"who?", WWW_Authenticate='Basic realm="quads"')(handler, body)

    scripted.script = guarded
    with closing(scripted.client(user="me")) as client:
        assert client.query("ASK {}").whole() == YES
        assert "secret" not in repr(client.server)
    with closing(scripted.client()) as client, pytest.raises(StoreError, match="refuses the user") as caught:
        client.query("ASK {}")
    assert "QUADLOOM_QUADS_PASSWORD" in caught.value.hint


def test_the_union_is_asked_for_only_without_a_dataset(scripted: Scripted) -> None:
    with closing(scripted.client(union="union-default-graph=true")) as client:
        client.query("ASK {}", union=True).whole()
        client.query("ASK {}", union=True, default_graphs=["http://a.example/?x=1&y"], named_graphs=["x:n"]).whole()
        client.query("ASK {}").whole()
    assert [body for _, _, body in scripted.requests] == [
        b"union-default-graph=true&query=ASK+%7B%7D",
        b"default-graph-uri=http%3A%2F%2Fa.example%2F%3Fx%3D1%26y&named-graph-uri=x%3An&query=ASK+%7B%7D",
        b"query=ASK+%7B%7D",
    ]


def test_a_users_query_takes_the_servers_own_limit_along(scripted: Scripted) -> None:
    settings = Settings(
        stores=StoreSettings(quads="sparql+http://127.0.0.1:1", quads_timeout="timeout={seconds}s"),
        limits=LimitSettings(query_seconds=4.5),
    )
    assert servers_of(settings)[0].timeout == "timeout=5s"
    with closing(scripted.client(timeout="timeout=5s")) as client:
        client.query("ASK {}", limited=True).whole()
        client.query("ASK {}").whole()
    assert [body for _, _, body in scripted.requests] == [b"timeout=5s&query=ASK+%7B%7D", b"query=ASK+%7B%7D"]


def test_a_server_without_threads_is_waited_for_and_the_hint_names_the_cause(scripted: Scripted) -> None:
    scripted.script = answer(500, b"Resource temporarily unavailable (os error 11)")
    with closing(scripted.client()) as client, pytest.raises(StoreUnavailable) as caught:
        client.query("ASK {}")
    assert "--timeout-s" in caught.value.hint


def test_a_server_that_restarts_is_waited_for(tmp_path: Path) -> None:
    server = sparql_server("--location", str(tmp_path / "data"))
    address = SparqlServer(query=f"{server.url}/query", update=f"{server.url}/update")
    page = Quads.of("http://a.example/", b'<x:s> <x:p> "o" <http://a.example/> .\n')
    with closing(SparqlQuads(address)) as quads:
        server.stop()
        late = threading.Timer(0.3, server.start)
        late.start()
        quads.replace(page)
        assert quads.graph(page.graph) == page.nquads
        late.join()
    server.stop()


def test_a_reader_does_not_write() -> None:
    view = SparqlQuads(SparqlServer(query="http://127.0.0.1:9/", update="http://127.0.0.1:9/"), read_only=True)
    with pytest.raises(StoreError, match="read-only"):
        view.insert_new([Quads.of("x:g", b"<x:s> <x:p> <x:o> <x:g> .\n")])


def settings(quads: str, *, allow: tuple[str, ...] = (), **stores: str) -> Settings:
    return Settings(stores=StoreSettings(quads=quads, **stores), guard=GuardSettings(allow=list(allow)))  # type: ignore[arg-type]


def test_addresses_of_known_servers() -> None:
    (oxigraph,) = servers_of(settings("sparql+http://127.0.0.1:7878"))
    assert (oxigraph.query, oxigraph.update) == ("http://127.0.0.1:7878/query", "http://127.0.0.1:7878/update")
    (graphdb,) = servers_of(
        settings("sparql+https://db.example/repositories/w/", quads_query="../w", quads_update="statements")
    )
    assert (graphdb.query, graphdb.update) == (
        "https://db.example/repositories/w",
        "https://db.example/repositories/w/statements",
    )
    (virtuoso,) = servers_of(settings("sparql+https://v.example", quads_query="/sparql", quads_update="/sparql-auth"))
    assert (virtuoso.query, virtuoso.update) == ("https://v.example/sparql", "https://v.example/sparql-auth")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sparql+http://db.example/", "unencrypted"),
        ("sparql+http://10.0.0.7:7878/", "unencrypted"),
        ("sparql+https://me:pw@db.example/", "password"),
        ("sparql+http:", "no address"),
        ("sparql:", "is not a backend"),
    ],
)
def test_addresses_that_are_refused(url: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        open_quads(tmp_path, settings(url), writable=False)
    assert caught.value.hint
    assert "pw" not in f"{caught.value.message}{caught.value.hint}".replace("://me:pw@", "")


def test_a_trusted_network_may_be_plain(tmp_path: Path) -> None:
    source = query_source(tmp_path, settings("sparql+http://10.0.0.7:7878/", allow=("10.0.0.0/8",)))
    assert [server.query for server in source.servers] == ["http://10.0.0.7:7878/query"]
