"""No server, and nothing between it and a worker, may keep a thread waiting for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from postgres_server import postgres
from quadloom.errors import StoreUnavailable
from quadloom.stores.postgres import timeouts
from quadloom.stores.postgres.database import PostgresDatabase

pytestmark = pytest.mark.cluster


class Proxy:
    """Forwards bytes to the server. While `silent`, connections stay open and nothing passes."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.passing = threading.Event()
        self.passing.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self.passing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self.passing.set()
        self._listener.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy(postgres().port)
    yield made
    made.close()


def test_a_statement_that_takes_too_long_is_ended() -> None:
    database = PostgresDatabase(postgres().url(), writable=True, statement_seconds=0.2)
    with pytest.raises(StoreUnavailable, match="did not finish a statement"):
        database.execute("SELECT pg_sleep(60)")
    assert database.execute("SELECT 1") == [(1,)], "the connection is good"
    with database.unhurried():
        assert database.execute("SELECT pg_sleep(0.4)"), "what needs longer may"
    database.close()


def test_a_silent_peer_is_cut_off_and_later_used_again(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "_GRACE", 0.1)
    url = postgres().url().replace(f":{urlsplit(postgres().url()).port}/", f":{proxy.port}/") + "&connect_timeout=2"
    database = PostgresDatabase(url, writable=True, patience=0.5, statement_seconds=0.5)
    assert database.execute("SELECT 1") == [(1,)]
    proxy.passing.clear()
    with pytest.raises(StoreUnavailable):
        database.execute("SELECT 2")
    proxy.passing.set()
    assert database.execute("SELECT 3") == [(3,)]
    database.close()


def test_limits_of_the_url_win() -> None:
    assert timeouts.network("postgresql://db/crawl?connect_timeout=3")["keepalives_idle"] == 10
    assert "connect_timeout" not in timeouts.network("postgresql://db/crawl?connect_timeout=3")
