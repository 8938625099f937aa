"""kill -9 under the same conditions: Quadloom, Scrapy with JOBDIR and crawlee-python with its file storage.

    pip install --target /tmp/peers scrapy 'crawlee[parsel,httpx]'
    python -m quadloom_lab.benchmarks.kills --peers /tmp/peers [--kills 20] [--pages 600]

One site on loopback, whose pages link to each other; every answer takes 20 ms, and each crawler has 16 requests in
flight. Each is started, killed with its whole process group after a random number of further requests, and started
again in the same folder; at last it may run to its end. The server's log is the judge: a page that was never asked for
is lost, and every further request for a page is a repetition.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

IN_FLIGHT = 16
_ANSWER_SECONDS = 0.02
_LAST_SECONDS = 120.0  # for the run that is not killed
_START_SECONDS = 60.0  # in which a crawler has to ask for something


class KilledCrawl(NamedTuple):
    """What became of a crawl. `stuck`: its last run had to be ended."""

    kills: int
    requested: int
    lost: int
    repeated: int
    stuck: bool


class LoggedSite:
    """A site of `pages` pages; page n links to 2n + 1, 2n + 2 and three others."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.log: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.port = 0

    @property
    def requests(self) -> int:
        with self.lock:
            return self.log.total()

    def body(self, number: int) -> bytes:
        chance = random.Random(number)
        targets = [2 * number + 1, 2 * number + 2, *(chance.randrange(self.pages) for _ in range(3))]
        links = "".join(f'<a href="/page/{target}">{target}</a> ' for target in targets if target < self.pages)
        return f"<html><title>Page {number}</title><body><p>Some words of page {number}.</p>{links}".encode()

    @contextmanager
    def serving(self) -> Iterator[None]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                number = self.path.removeprefix("/page/")
                found = number.isdigit() and int(number) < site.pages
                if found:
                    with site.lock:
                        site.log[self.path] += 1
                time.sleep(_ANSWER_SECONDS)
                body = site.body(int(number)) if found else b""
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """The log is `site.log`."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Clients are killed here; that is no error."""

        server = Server(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()


def quadloom_command(site: LoggedSite, folder: Path) -> list[str]:
    config = folder / "quadloom.toml"
    config.write_text(
        f'[crawl]\ncontact = "bench@quadloom.invalid"\nin_flight = {IN_FLIGHT}\nmax_wait = 2.0\nsitemaps = false\n'
        f"[politeness]\ndelay = 0.0\nip_delay = 0.0\nadaptive = 0.0\nper_site = {IN_FLIGHT}\n"
        '[guard]\nallow = ["127.0.0.0/8"]\n',
        encoding="utf-8",
    )
    seed = f"http://127.0.0.1:{site.port}/page/0"
    return [sys.executable, "-m", "quadloom", "-w", str(folder / "w"), "--config", str(config), "crawl", seed]


def peer_command(name: str, site: LoggedSite, folder: Path) -> list[str]:
    script = Path(__file__).with_name("rival_kills.py")
    return [sys.executable, str(script), name, str(site.port), str(folder)]


def killed_crawl(site: LoggedSite, command: list[str], kills: int, peers: str) -> KilledCrawl:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), peers])}
    chance = random.Random(20266)
    done = 0
    for _ in range(kills):
        process = _start(command, environment)
        target = site.requests + chance.randrange(IN_FLIGHT, max(IN_FLIGHT + 1, site.pages // kills))
        until = time.monotonic() + _START_SECONDS
        while site.requests < target and process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        done += process.poll() is None
        _kill(process)
    process = _start(command, environment)
    try:
        process.wait(_LAST_SECONDS)
        stuck = False
    except subprocess.TimeoutExpired:
        stuck = True
    _kill(process)
    asked = len(site.log)
    return KilledCrawl(done, site.requests, site.pages - asked, site.requests - asked, stuck)


def _start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="kill -9 of three crawlers, judged by the server's log.")
    parser.add_argument("--peers", required=True, help="folder where the others were installed with pip --target")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--only", choices=("quadloom", "scrapy", "crawlee"), help="one of them instead of all")
    chosen = parser.parse_args()
    print(f"{chosen.pages} pages, {IN_FLIGHT} requests in flight, {chosen.kills} kills", flush=True)
    for name in [chosen.only] if chosen.only else ["quadloom", "scrapy", "crawlee"]:
        site = LoggedSite(chosen.pages)
        with site.serving(), tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            command = quadloom_command(site, place) if name == "quadloom" else peer_command(name, site, place)
            found = killed_crawl(site, command, chosen.kills, chosen.peers)
        stuck = ", and its last run did not end" if found.stuck else ""
        print(
            f"  {name:9} killed {found.kills:3} times: {found.lost:4} of {chosen.pages} pages lost,"
            f" {found.repeated:4} requests repeated{stuck}",
            flush=True,
        )


if __name__ == "__main__":
    main()
