"""Politeness of whole crawls, judged by the servers' own request logs, over kill -9 and restart."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fakeweb.request_log import RequestLog
from faults.crawling import kill_group, run_config, start, wait_for_requests
from quadloom.stores.backends import DATABASE
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from waiting import wait_until

HOST_DELAY = 0.5
ADDRESS_DELAY = 0.1
WINDOW = 20
HANGS = 120.0  # seconds


@pytest.mark.timing
def test_no_host_and_no_address_is_asked_early_also_after_a_crash(tmp_path: Path) -> None:
    web = FakeWeb(
        WebSpec(seed=9, pages=400, hosts=200, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.6)
    )
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
        config = run_config(
            tmp_path,
            serving,
            crawl={"max_wait": 2.0},
            politeness={"delay": HOST_DELAY, "ip_delay": ADDRESS_DELAY, "per_site": 1, "max_crawl_delay": 5.0},
        )
        warehouse = tmp_path / "warehouse"
        for requests_more in (30, 30, 40):
            process = start(warehouse, config, "crawl", *serving.web.homes)
            wait_for_requests(serving, serving.load().requests + requests_more, process, seconds=HANGS)
            kill_group(process)
    log = RequestLog(serving.log_path)
    # The server stamps a request when it has read it. On a loaded machine it may read two late ones together, so a
    # single gap proves little; over many requests a stall cannot make the whole come faster than the delay allows.
    assert not log.never_earlier_than(HOST_DELAY, tolerance=0.3)
    times = [one.monotonic for one in log.requests]
    for first, last in zip(times, times[WINDOW:], strict=False):
        assert last - first >= WINDOW * ADDRESS_DELAY - 0.9, (first, last)
    gaps = [second - one for one, second in itertools.pairwise(times)]
    assert statistics.median(gaps) >= ADDRESS_DELAY * 0.8
    assert not log.disallowed_hits(serving.web)
    assert not log.robots_first()


PER_SITE = 4
RETRY_AFTER = 3.0


class Storm:
    """A host that answers 429 to every page. It answers the first ones when as many are in flight as the client may
    have: from then on every request is one that the client sends after it has read an answer."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.answered: list[float] = []
        self._all_in_flight = threading.Barrier(PER_SITE)
        storm = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/robots.txt":
                    self.send_error(404)
                    return
                if self.path == "/":
                    body = "".join(f'<a href="/page/{number}">{number}</a>' for number in range(40)).encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "text/html")
                else:
                    body = b""
                    storm.asked.append(time.time())
                    if len(storm.asked) <= PER_SITE:
                        storm._all_in_flight.wait(HANGS)
                    storm.answered.append(time.time())
                    self.send_response(429)
                    self.send_header("Retry-After", str(int(RETRY_AFTER)))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


def test_a_429_storm_is_answered_with_silence_and_remembered_over_a_crash(tmp_path: Path) -> None:
    storm = Storm()
    config = tmp_path / "quadloom.toml"
    config.write_text(
        '[crawl]\ncontact = "t@quadloom.invalid"\nworkers = 1\nmax_wait = 20.0\n[politeness]\ndelay = 0.05\n'
        f'ip_delay = 0.0\nper_site = {PER_SITE}\nretries = 5\n[guard]\nallow = ["127.0.0.0/8"]\n',
        encoding="utf-8",
    )
    try:
        process = start(tmp_path / "w", config, "crawl", f"http://{storm.host}/")
        wait_until(lambda: len(storm.asked) == PER_SITE and _is_blocked(tmp_path / "w", storm.host), seconds=HANGS)
        kill_group(process)
        assert len(storm.asked) == PER_SITE
        process = start(tmp_path / "w", config, "crawl")
        wait_until(lambda: len(storm.asked) >= PER_SITE + 2, seconds=HANGS)
        kill_group(process)
    finally:
        storm.server.shutdown()
    # A window begins when the client has read the answer, so it cannot begin before the answer is written.
    later = storm.asked[PER_SITE:]
    for asked, answered_before in zip(later, storm.answered[PER_SITE - 1 :], strict=False):
        assert asked - answered_before >= RETRY_AFTER - 0.01, (storm.asked, storm.answered)


def _is_blocked(warehouse: Path, host: str) -> bool:
    """Whether the crawl has written down that the host is to be left alone."""
    if not (warehouse / DATABASE).exists():
        return False
    with Warehouse.read(warehouse) as reading:
        row = reading.stores.frontier.hosts.get(host)
    return row is not None and row.blocked_until > 0.0
