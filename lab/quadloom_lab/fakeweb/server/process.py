"""Start the server in a process of its own and stop it again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

import msgspec

from quadloom_lab.fakeweb.server.counters import ServerCounters, ServerLoad
from quadloom_lab.fakeweb.web import FakeWeb

_STOP_SECONDS = 10.0


class FakeWebServer:
    """A running server. `web` is the same web as the server's, with the port that it got: ask it what to expect."""

    def __init__(self, process: subprocess.Popen[bytes], web: FakeWeb, folder: Path, log_path: Path) -> None:
        self._process = process
        self._folder = folder
        self._dials = ServerCounters(folder / "dials")
        self.web = web
        self.port = web.spec.port
        self.log_path = log_path

    def turn(self, *, revision: int | None = None, robots_status: int | None = None) -> None:
        """Let days pass, or put every robots.txt out of order (0 = as planned), on the server and in `web`."""
        if revision is not None:
            self.web.revision = revision
        if robots_status is not None:
            self.web.robots_status = robots_status
        self._dials.turn(self.web.revision, self.web.robots_status)

    def load(self) -> ServerLoad:
        """Requests served and CPU seconds used, brought up to date every 10 ms under load."""
        return self._dials.load()

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
        self._dials.close()
        if self.log_path.parent != self._folder or not self.log_path.exists():
            shutil.rmtree(self._folder, ignore_errors=True)


def serve_in_process(
    web: FakeWeb, *, processes: int = 1, log: Path | None = None, logging: bool = True, prerender: bool = False
) -> FakeWebServer:
    """Serve `web` on loopback; where its spec has port 0, on a free port. Returns when the server listens.

    `prerender` makes responses in advance (1 ms each), for benchmarks that must not wait for the server.

    Without `log`, the request log is in a temporary folder that stays until the caller has read and removed it.
    """
    folder = Path(tempfile.mkdtemp(prefix="quadloom-fakeweb-"))
    log_path = log or folder / "requests.jsonl"
    command = [
        sys.executable,
        "-m",
        "quadloom_lab.fakeweb.server.main",
        "--spec",
        msgspec.json.encode(web.spec).decode(),
        "--dials",
        str(folder / "dials"),
        "--processes",
        str(processes),
    ]
    if prerender:
        command.append("--prerender")
    if logging:
        log_path.touch()
        command += ["--log", str(log_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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
