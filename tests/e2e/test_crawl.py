"""A whole crawl as a user runs it: its last line, its control from outside, Ctrl-C and resumption, the library."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import quadloom
from command_line import quadloom as run
from fakeweb.request_log import RequestLog
from faults.crawling import finish, must_be_read, run_config, start, wait_for_requests
from quadloom.model import Outcome
from quadloom.settings.loading import load
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, serve_in_process


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[FakeWebServer]:
    spec = WebSpec(seed=11, pages=300, hosts=8, scale=0.1, links=30, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    with serve_in_process(FakeWeb(spec), log=tmp_path / "requests.jsonl") as running:
        yield running


def _config(folder: Path, serving: FakeWebServer, delay: float = 0.0) -> Path:
    politeness = {"delay": delay, "ip_delay": 0.0, "per_site": 4, "adaptive": 0.0, "retries": 1, "backoff": 0.2}
    return run_config(folder, serving, crawl={"max_wait": 1.0}, politeness=politeness)


def test_a_complete_crawl(tmp_path: Path, serving: FakeWebServer) -> None:
    config = _config(tmp_path, serving)
    last = finish(tmp_path / "w", config, "crawl", *serving.web.seeds, "--json")
    assert {"pages", "quads", "failed", "seconds", "cpu_seconds", "frontier"} <= set(last)
    log = RequestLog(serving.log_path)
    counts = log.count_by_url()
    assert not {url for url in must_be_read(serving) if not counts[url]}
    assert not log.disallowed_hits(serving.web)
    assert not log.robots_first()
    repeated = {url: count for url, count in counts.items() if count > 1}
    assert all(serving.web.expected(url).status >= 400 for url in repeated if not url.endswith("robots.txt")), repeated
    status = finish(tmp_path / "w", config, "status", "--json")
    assert status["outcomes"] and status["frontier"] and status["sizes"]
    assert status["quads"] == last["quads"] or int(str(status["quads"])) > 0


def test_the_limit_of_pages_is_kept_and_a_later_crawl_goes_on(tmp_path: Path, serving: FakeWebServer) -> None:
    config = _config(tmp_path, serving)
    first = finish(tmp_path / "w", config, "crawl", *serving.web.seeds, "--max-pages", "25", "--json")
    assert first["pages"] == 25
    second = finish(tmp_path / "w", config, "crawl", "--max-pages", "30", "--json")
    assert second["pages"] == 30
    assert max(RequestLog(serving.log_path).count_by_url().values()) <= 2


def _requests_at_rest(serving: FakeWebServer) -> int:
    """The number of requests once none came for a second: five times the pause between two to one host."""
    until = time.monotonic() + 60
    before, after = -1, serving.load().requests
    while before != after:
        assert time.monotonic() < until, "requests do not cease"
        time.sleep(1.0)
        before, after = after, serving.load().requests
    return after


def test_control_from_another_process(tmp_path: Path, serving: FakeWebServer) -> None:
    config = _config(tmp_path, serving, delay=0.2)
    warehouse = tmp_path / "w"
    process = start(warehouse, config, "crawl", *serving.web.seeds, "--json")
    try:
        assert wait_for_requests(serving, 20, process)
        status = finish(warehouse, config, "status", "--json")
        assert status["running"] is True
        assert isinstance(status["rates"], dict) and status["rates"]
        _told(warehouse, config, "pause")
        quiet = _requests_at_rest(serving)
        assert finish(warehouse, config, "status", "--json")["state"] == "paused"
        _told(warehouse, config, "resume")
        assert wait_for_requests(serving, quiet + 5, process)
        _told(warehouse, config, "stop")
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1])["pages"] > 0


def test_ctrl_c_drains_and_saves(tmp_path: Path, serving: FakeWebServer) -> None:
    config = _config(tmp_path, serving, delay=0.2)
    warehouse = tmp_path / "w"
    process = start(warehouse, config, "crawl", *serving.web.seeds, "--json")
    try:
        assert wait_for_requests(serving, 20, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"hint:" in errors
    assert finish(warehouse, config, "verify", "--json")["ok"]
    before = RequestLog(serving.log_path).count_by_url()
    finish(warehouse, _config(tmp_path, serving), "crawl", "--json")
    after = RequestLog(serving.log_path).count_by_url()
    again = [url for url in before if after[url] > before[url] and not url.endswith("/robots.txt")]
    assert all(serving.web.expected(url).status >= 400 for url in again), again[:5]


def test_the_library(tmp_path: Path, serving: FakeWebServer) -> None:
    settings = load(config=_config(tmp_path, serving), environ={}).settings
    with quadloom.open(tmp_path / "w", settings=settings) as warehouse:
        outcomes = []
        for settlement in warehouse.crawl(serving.web.seeds, max_pages=40):
            outcomes.append(settlement.outcome)
            if len(outcomes) >= 20:
                break  # a pause: what is under way is finished and saved
        assert Outcome.NEW in outcomes
        assert warehouse.maintenance.verify().ok
    with quadloom.open(tmp_path / "w", settings=settings) as warehouse:
        assert sum(1 for _ in warehouse.crawl(max_pages=20)) >= 20
        assert warehouse.maintenance.verify().ok


def _told(warehouse: Path, config: Path, verb: str) -> None:
    done = run("-w", str(warehouse), "--config", str(config), verb, cwd=config.parent)
    assert done.returncode == 0, done.stderr
