"""Start the server in a process of its own and stop it again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

import msgspec

import quadloom
import quadloom_lab
from quadloom_lab.fakeweb.server.counters import ServerCounters, ServerLoad
from quadloom_lab.fakeweb.web import FakeWeb

_STOP_SECONDS = 10.0


class FakeWebServer:
    """A running server. `web` is the web that it serves, with its port: it says what to expect of each request."""

    def __init__(self, process: subprocess.Popen[bytes], web: FakeWeb, folder: Path, log_path: Path) -> None:
        self._process = process
        self._folder = folder
        self._counters = ServerCounters(folder / "counters")
        self.web = web
        self.port = web.spec.port
        self.log_path = log_path

    def turn(self, *, revision: int | None = None, robots_status: int | None = None) -> None:
        """Set the revision (the day of the web) or the status of every robots.txt (0 = planned), also on the server."""
        if revision is not None:
            self.web.revision = revision
        if robots_status is not None:
            self.web.robots_status = robots_status
        self._counters.set_state(self.web.revision, self.web.robots_status)

    def load(self) -> ServerLoad:
        """Requests served and CPU seconds used, updated every 10 ms under load."""
        return self._counters.load()

    def stop(self) -> None:
        """End the server; the request log is complete afterwards. Idempotent."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> FakeWebServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._counters.close()
        if self.log_path.parent != self._folder or not self.log_path.exists():
            shutil.rmtree(self._folder, ignore_errors=True)


def serve_in_process(
    web: FakeWeb, *, processes: int = 1, log: Path | None = None, logging: bool = True, prerender: bool = False
) -> FakeWebServer:
    """Serve `web` on loopback, on a free port if its spec has port 0. Returns when the server listens.

    `prerender` renders responses in advance (1 ms each), for benchmarks that must not wait for the server.
    Without `log`, the request log is in a temporary folder, which the caller has to remove.
    """
    folder = Path(tempfile.mkdtemp(prefix="quadloom-fakeweb-"))
    log_path = log or folder / "requests.jsonl"
    command = [
        sys.executable,
        "-m",
        "quadloom_lab.fakeweb.server.main",
        "--spec",
        msgspec.json.encode(web.spec).decode(),
        "--counters",
        str(folder / "counters"),
        "--processes",
        str(processes),
    ]
    if prerender:
        command.append("--prerender")
    if logging:
        log_path.touch()
        command += ["--log", str(log_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment())
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        raise OSError(f"the fake web's server did not start (exit code {process.returncode})")
    port: int = json.loads(line)["port"]
    served = FakeWeb(msgspec.structs.replace(web.spec, port=port))
    serving = FakeWebServer(process, served, folder, log_path)
    serving.turn(revision=web.revision, robots_status=web.robots_status)
    return serving


def _environment() -> dict[str, str]:
    """The child finds this package even if it is on the path of this process only, as under pytest."""
    here = str(Path(quadloom_lab.__file__).parents[1])
    source = str(Path(quadloom.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, source, os.environ.get("PYTHONPATH", "")]).rstrip(":")}
