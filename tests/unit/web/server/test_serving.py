"""`quadloom serve` as a command: what it refuses to start with, and how tokens are made."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from quadloom.cli import serve
from quadloom.cli.main import run
from quadloom.web.server.tokens import FILE, Tokens
from servers import free_port
from waiting import wait_until


def test_listening_elsewhere_needs_a_token(
    warehouse_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quadloom.toml").write_text(f'[web]\ntoken_file = "{tmp_path / "none"}"\n')
    code = run(["-w", str(warehouse_path), "--config", str(tmp_path / "quadloom.toml"), "serve", "--host", "0.0.0.0"])
    assert code == 3
    assert "--new-token" in capsys.readouterr().err


def test_a_new_token_is_printed_once_and_stored_hashed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-w", str(tmp_path), "serve", "--new-token"]) == 0
    token = capsys.readouterr().out.strip()
    assert len(token) >= 43 and token not in (tmp_path / FILE).read_text()
    assert Tokens(tmp_path / FILE).accepts(token)


def test_nothing_to_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-w", str(tmp_path / "none"), "serve"]) == 6
    assert "quadloom crawl" in capsys.readouterr().err


def test_urls_are_for_crawling(warehouse_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-w", str(warehouse_path), "serve", "https://example.org/"]) == 2
    assert "--crawl" in capsys.readouterr().err


def test_a_head_without_end_is_cut_off(warehouse_path: Path) -> None:
    """By the real server: a client that sends header after header is refused at 256 KiB, and others are answered."""
    with _serving(warehouse_path) as place:
        endless = _connected(place)
        endless.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        sent = 0
        try:
            while sent < 64 << 20:  # the buffers of the system alone hold ten
                sent += endless.send(b"X-More: " + b"x" * 8000 + b"\r\n")
        except OSError:
            pass  # the server has closed the connection
        assert sent < 64 << 20, "nobody reads that many headers"
        endless.close()
        with _connected(place) as other:
            other.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert other.recv(15) == b"HTTP/1.1 200 OK"


def test_silent_connections_are_replaced_and_ended(warehouse_path: Path) -> None:
    """By the real server: sixty silent connections where twenty may be open, and others are answered."""
    with _serving(warehouse_path, QUADLOOM_WEB__CONNECTIONS="20", QUADLOOM_WEB__HEAD_SECONDS="1") as place:
        silent = [_connected(place) for _ in range(60)]
        for path in (b"/health/live", b"/about", b"/sparql?query=ASK%7B%7D"):
            with _connected(place) as other:
                other.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                other.settimeout(60)
                assert other.recv(15) == b"HTTP/1.1 200 OK", path
        for client in silent:
            with contextlib.suppress(ConnectionError), client:
                assert client.recv(1) == b"", "ended by the server"


def test_open_files_are_raised_or_connections_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, said = [(1024, 4096), (256, 700), (256, 300)], list[str]()
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits.pop(0))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: said.append(str(pair)))
    session = SimpleNamespace(say=said.append)
    assert serve._connections(session, 1000) == 1000  # type: ignore[arg-type]  # it only calls say
    assert said == ["(3560, 4096)"]
    assert serve._connections(session, 1000) == 188  # type: ignore[arg-type]
    assert said[1:] == [
        "(700, 700)",
        "at most 188 connections at a time: the system allows 700 open files (ulimit -Hn)",
    ]
    assert serve._connections(session, 1000) == 64  # type: ignore[arg-type]


@contextlib.contextmanager
def _serving(warehouse: Path, **environment: str) -> Iterator[tuple[str, int]]:
    place = ("127.0.0.1", free_port())
    command = [sys.executable, "-m", "quadloom", "-w", str(warehouse), "--quiet", "serve"]
    server = subprocess.Popen([*command, "--port", str(place[1])], env={**os.environ, **environment})
    try:
        yield place
    finally:
        server.terminate()
        assert server.wait(300) == 0


def _connected(place: tuple[str, int]) -> socket.socket:
    found: list[socket.socket] = []

    def connected() -> bool:
        found.append(socket.create_connection(place, timeout=300))
        return True

    wait_until(connected, "the server did not come up", seconds=300, ignoring=suppress(ConnectionRefusedError))
    return found[0]
