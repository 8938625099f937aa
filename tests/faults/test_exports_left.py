"""Clients that leave an export take nothing with them: by the real server, with connections that are reset."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from servers import free_port
from unit.web.web_fixture import store_page
from waiting import wait_until

ITEMS = 16_000
SECONDS = 120.0
AT_A_TIME = 4


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A server over some megabytes of statements, which has to end when it is asked to."""
    graph = [{"@type": "Event", "@id": f"#{n}", "name": f"Concert {n} " + "x" * 1000} for n in range(ITEMS)]
    data = json.dumps({"@context": "https://schema.org", "@graph": graph})
    with Warehouse.open(tmp_path / "data", settings=Settings()) as warehouse:
        markup = f'<title>All</title><script type="application/ld+json">{data}</script>'
        store_page(warehouse, "http://a.example/", markup, 1.7e9)
        warehouse.stores.text.commit()
    found = free_port()
    command = [sys.executable, "-m", "quadloom", "-w", str(tmp_path / "data"), "--quiet", "serve", "--port", str(found)]
    server = subprocess.Popen(command, env={**os.environ, "QUADLOOM_WEB__RATE": "0", "QUADLOOM_WEB__CONCURRENCY": "0"})
    try:
        wait_until(
            lambda: get(found, "/health/live")[0] == 200,
            "the server did not come up",
            seconds=SECONDS,
            alive=server,
            ignoring=suppress(OSError),
        )
        yield found
        server.terminate()
        assert server.wait(SECONDS) == 0
    finally:
        server.kill()
        server.wait()


def get(port: int, path: str) -> tuple[int, bytes]:
    client = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()


def begin(port: int) -> socket.socket:
    """An export of which only the status line was read."""
    client = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(b"GET /export.nq HTTP/1.1\r\nHost: localhost\r\n\r\n")
    client.recv(15)
    return client


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def whole_export(port: int) -> bytes:
    """Ask again while exports of those who left are still ending."""
    answers: list[tuple[int, bytes]] = []

    def answered() -> bool:
        answers.append(get(port, "/export.nq"))
        return answers[-1][0] != 503

    wait_until(answered, "exports do not end", seconds=SECONDS)
    assert answers[-1][0] == 200
    return answers[-1][1]


def test_who_leaves_an_export_ends_nothing_but_that(port: int) -> None:
    expected = whole_export(port)
    assert expected.count(b"Concert") == ITEMS
    for _ in range(40):
        reset(begin(port))
    assert whole_export(port) == expected
    status, answer = get(port, "/sparql?query=SELECT%20%2A%20%7B%3Fs%20%3Fp%20%3Fo%7D")
    assert status == 200
    assert len(answer) > 1 << 20, "so it was streamed"
    assert get(port, "/sparql?query=ASK%7B%7D")[0] == 200


def test_exports_that_nobody_reads_are_few(port: int) -> None:
    reading = []
    while True:
        client = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /export.nq HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = client.recv(4096)
        if not head.startswith(b"HTTP/1.1 200"):
            break
        reading.append(client)
        assert len(reading) <= AT_A_TIME
    assert head.startswith(b"HTTP/1.1 503") and b"retry-after:" in head.lower()
    assert get(port, "/search?q=concert")[0] == 200
    client.close()
    for client in reading:
        reset(client)
    assert whole_export(port).count(b"Concert") == ITEMS
