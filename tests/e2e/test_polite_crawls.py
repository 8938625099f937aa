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
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

HOST_DELAY = 0.5
ADDRESS_DELAY = 0.03
WINDOW = 40


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
        for requests_more in (60, 60, 120):
            process = start(warehouse, config, "crawl", *serving.web.homes)
            wait_for_requests(serving, serving.load().requests + requests_more, process, seconds=60)
            kill_group(process)
    log = RequestLog(serving.log_path)
    # The server stamps a request when it has read it. On a loaded machine it may read two late ones together, so a
    # single gap proves little; over many requests a stall cannot make the whole come faster than the delay allows.
    assert not log.never_earlier_than(HOST_DELAY, tolerance=0.3)
    times = [one.monotonic for one in log.requests]
    for first, last in zip(times, times[WINDOW:], strict=False):
        assert last - first >= WINDOW * ADDRESS_DELAY - 0.4, (first, last)
    gaps = [second - one for one, second in itertools.pairwise(times)]
    assert statistics.median(gaps) >= ADDRESS_DELAY * 0.8
    assert not log.disallowed_hits(serving.web)
    assert not log.robots_first()


class _Stormy(BaseHTTPRequestHandler):
    times: list[float] = []

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            self.send_error(404)
            return
        if self.path == "/":
            body = "".join(f'<a href="/page/{number}">{number}</a>' for number in range(40)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
        else:
            self.times.append(time.time())
            body = b""
            self.send_response(429)
            self.send_header("Retry-After", "3")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.mark.timing
def test_a_429_storm_is_answered_with_silence_and_remembered_over_a_crash(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stormy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        config = tmp_path / "quadloom.toml"
        config.write_text(
            '[crawl]\ncontact = "t@quadloom.invalid"\nworkers = 1\nmax_wait = 20.0\n[politeness]\ndelay = 0.05\n'
            'ip_delay = 0.0\nper_site = 4\nretries = 5\n[guard]\nallow = ["127.0.0.0/8"]\n',
            encoding="utf-8",
        )
        process = start(tmp_path / "w", config, "crawl", f"http://127.0.0.1:{server.server_port}/")
        _wait(lambda: _Stormy.times)
        time.sleep(1.0)
        kill_group(process)
        before = len(_Stormy.times)
        process = start(tmp_path / "w", config, "crawl")
        _wait(lambda: len(_Stormy.times) >= before + 2, 100)
        kill_group(process)
    finally:
        server.shutdown()
    times = sorted(_Stormy.times)
    # Up to per_site requests may be under way when the first 429 comes; after that one request per window.
    first = [at for at in times if at - times[0] < 0.5]
    later = times[len(first) :]
    assert len(first) <= 4
    assert len(later) >= 2, "the host was never asked again"
    assert later[0] - times[0] >= 2.9
    assert all(second - one >= 2.9 for one, second in itertools.pairwise(later)), times


def _wait(condition: object, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if callable(condition) and condition():
            return
        time.sleep(0.02)
    raise AssertionError("nothing happened")
