"""Real servers for tests, on free loopback ports: a SPARQL 1.1 server (Oxigraph's), an S3 server (moto's), and a proxy
that can be cut.

Each is started at its first use and ended with the test process. Where one is not installed, the tests that need it
say so and are skipped.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import closing, suppress
from pathlib import Path
from random import SystemRandom
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from quadloom.stores.archive.s3_bucket import S3Address
from waiting import wait_until

_START_SECONDS = 30.0
# Credentials of nobody: the server takes any.
S3_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
}  # fmt: skip

_PORTS = range(12_000, 32_000)  # below Linux' range for outgoing connections


class Server:
    """A child process that answers HTTP."""

    def __init__(self, command: list[str], port: int, environment: dict[str, str] | None = None) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._command = command
        self._environment = {**os.environ, **(environment or {})}
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self._environment
        )
        failure = f"{self._command[0]} ended or does not answer"
        wait_until(self._answers, failure, seconds=_START_SECONDS, alive=self.process)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def _answers(self) -> bool:
        try:
            with urlopen(self.url, timeout=5):
                return True
        except HTTPError:
            return True
        except (URLError, OSError):
            return False


class CuttableProxy:
    """A TCP proxy on loopback that can be cut: connections in progress end, new ones are refused, until `heal`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.port = free_port()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.heal()

    def heal(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._open |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()


def free_port() -> int:
    """A port for a server that starts later. The kernel's own choice would be given to a client or a server of another
    test meanwhile, so it is one of those that the kernel never chooses."""
    while True:
        port = SystemRandom().choice(_PORTS)
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def sparql_server(*options: str) -> Server:
    """A server of one's own; the caller stops it. `options`: of `oxigraph serve`."""
    program = Path(sys.executable).with_name("oxigraph")
    if not program.is_file():
        pytest.skip("needs a SPARQL server: pip install oxigraph")
    port = free_port()
    return Server([str(program), "serve", "--bind", f"127.0.0.1:{port}", *options], port)


@functools.cache
def shared_sparql_server(*options: str) -> Server:
    """One for all tests of this process, in memory; each test empties it first."""
    server = sparql_server(*options)
    atexit.register(server.stop)
    return server


@functools.cache
def shared_s3_server() -> Server:
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        pytest.skip("needs an S3 server: pip install 'moto[s3]' flask flask-cors")
    port = free_port()
    server = Server([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port, S3_ENVIRONMENT)
    atexit.register(server.stop)
    return server


def new_bucket() -> S3Address:
    """An empty bucket on the shared server; credentials of nobody are put into this process's environment."""
    server = shared_s3_server()
    os.environ.update(S3_ENVIRONMENT)
    name = f"test-{uuid.uuid4().hex}"
    with urlopen(Request(f"{server.url}/{name}", method="PUT"), timeout=10):
        return S3Address(bucket=name, prefix="crawls/one", endpoint=server.url, region="us-east-1")
