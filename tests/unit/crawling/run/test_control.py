"""Requests to a running crawl: what comes back if it cannot answer them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quadloom.crawling.run.control import ControlRequest, ControlServer, Value, ask, socket_path
from quadloom.errors import QuadloomError, StoreError, UsageError


def served(folder: Path, handle: Callable[[ControlRequest], Value], verb: str = "status") -> Value | None:
    server = ControlServer(folder, handle)
    try:
        return ask(folder, verb, number=1)
    finally:
        server.close()


def refuse(_request: ControlRequest) -> Value:
    raise UsageError("not this", hint="but that")


def be_slow(_request: ControlRequest) -> Value:
    raise TimeoutError  # as `Crawl.call` does when its thread has no time for it


def test_an_answer_comes_back(tmp_path: Path) -> None:
    assert served(tmp_path, lambda request: {"verb": request.verb, **request.arguments}) == {  # type: ignore[dict-item]
        "verb": "status",
        "number": 1,
    }
    assert ask(tmp_path, "status") is None, "nobody is there any more"


def test_a_refusal_comes_back_with_its_hint(tmp_path: Path) -> None:
    with pytest.raises(QuadloomError, match="not this") as refused:
        served(tmp_path, refuse)
    assert refused.value.hint == "but that"


def test_a_busy_crawl_is_not_reported_as_ended(tmp_path: Path) -> None:
    with pytest.raises(QuadloomError, match="did not answer within a minute") as busy:
        served(tmp_path, be_slow)
    assert "try again" in busy.value.hint


def test_a_socket_outside_the_warehouse_is_in_a_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path too long for a socket. Another user may have made the folder in the shared directory first."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    long = tmp_path / ("x" * 100)
    long.mkdir()
    assert served(long, lambda _request: "yes") == "yes"
    folder = socket_path(long).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="not a private directory"):
        socket_path(long)
    folder.rmdir()
    folder.symlink_to(long)
    with pytest.raises(StoreError, match="not a private directory"):
        ask(long, "status")


@pytest.mark.parametrize("line", [b'{"verb": "\xff"}\n', b'{"verb":' + b"[" * 100_000 + b"\n", b"null\n", b"\xff\n"])
def test_any_line_is_answered(tmp_path: Path, line: bytes) -> None:
    server = ControlServer(tmp_path, lambda _request: "yes")
    try:
        with socket.socket(socket.AF_UNIX) as client, client.makefile("rwb") as stream:
            client.connect(str(socket_path(tmp_path)))
            stream.write(line)
            stream.flush()
            assert b'"ok":false' in stream.readline()
    finally:
        server.close()


def test_many_commands_at_once_are_all_answered(tmp_path: Path) -> None:
    """The kernel queues sixteen of them; the others must wait, not fail."""
    server = ControlServer(tmp_path, lambda _request: "yes")
    try:
        with ThreadPoolExecutor(200) as pool:
            answers = list(pool.map(lambda _: ask(tmp_path, "status"), range(400)))
    finally:
        server.close()
    assert answers == ["yes"] * 400


def test_an_answer_that_was_cut_is_none(tmp_path: Path) -> None:
    """The crawl was killed while it wrote."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(socket_path(tmp_path)))
    listening.listen(1)

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b'{"ok":true,"da')

    thread = threading.Thread(target=answer)
    thread.start()
    with listening, pytest.raises(StoreError, match="ended before it answered"):
        ask(tmp_path, "status")
    thread.join()
