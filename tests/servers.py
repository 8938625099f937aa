"""Real servers for tests, on free loopback ports: a SPARQL 1.1 server (Oxigraph's) and an S3 server (moto's).

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
import time
import uuid
from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from quadloom.stores.archive.s3_bucket import S3Address

_START_SECONDS = 30.0
# Credentials of nobody: the server takes any.
S3_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
}  # fmt: skip


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
        until = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, f"{self._command[0]} ended with {self.process.returncode}"
            assert time.monotonic() < until, f"{self._command[0]} does not answer"
            time.sleep(0.02)

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


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
