"""A subscriber hears of every change once per change, although the process is killed again and again."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from faults.crawling import finish, kill_group, start, wait_for_requests, write_config
from quadloom.demo.serving import serve_in_process
from quadloom.demo.spec import WebSpec
from quadloom.demo.web import FakeWeb
from quadloom.run.delivering import Message, signature
from quadloom.warehouse import Warehouse

SECRET = "a secret of the test"
FRESHNESS = """
[freshness]
bandwidth = 60.0
min_interval = "1s"
max_interval = "3s"
prior_interval = "2s"
"""


class Received:
    """A webhook on loopback. The seventh request is refused, as a receiver in trouble would."""

    def __init__(self) -> None:
        self.bodies: dict[int, set[bytes]] = {}
        self.order: list[int] = []
        self.badly_signed = 0
        self.requests = 0

    def take(self, body: bytes, signed: str) -> int:
        self.requests += 1
        if self.requests == 7:
            return 503
        self.badly_signed += signed != signature(body, SECRET)
        id = msgspec.json.decode(body, type=Message).id
        self.bodies.setdefault(id, set()).add(body)
        self.order.append(id)
        return 204


@contextmanager
def webhook() -> Iterator[tuple[str, Received]]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(received.take(body, self.headers["Quadloom-Signature"]))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", received
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.timeout(300)
def test_one_notice_per_change_over_kills(tmp_path: Path) -> None:
    chance = random.Random(20262)
    web = FakeWeb(
        WebSpec(seed=5, pages=40, hosts=3, scale=0.1, links=12, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    )
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving, webhook() as (address, received):
        config = write_config(tmp_path, serving, batch_seconds=0.1)
        config.write_text(config.read_text() + FRESHNESS)
        warehouse = tmp_path / "warehouse"
        sites = [part for seed in serving.web.seeds for part in ("--site", seed.split("/")[2])]
        finish(
            warehouse, config, "subscribe", "add", "--json", "--id", "all", *sites,
            "--webhook", address, "--secret-file", str(secret),
        )  # fmt: skip
        for revision in range(1, 5):
            process = start(warehouse, config, "crawl", "--forever", *serving.web.seeds)
            wait_for_requests(serving, serving.load().requests + chance.randrange(60, 160), process)
            serving.turn(revision=4 * revision)
            wait_for_requests(serving, serving.load().requests + chance.randrange(1, 60), process)
            kill_group(process)
        finish(warehouse, config, "crawl", "--forever", "--json", "--max-seconds", "15")
        told, seen, last = _compare(warehouse, config)
    assert sum(told.values()) >= 60 and any(kind == "changed" for _, kind in told), told
    assert told == seen
    assert received.badly_signed == 0
    assert all(len(bodies) == 1 for bodies in received.bodies.values()), "a repeated notice says the same"
    assert received.bodies.keys() == set(range(1, last + 1)), "none is lost, and ids have no gaps"
    firsts = list(dict.fromkeys(received.order))
    assert firsts == sorted(firsts), "none overtakes another"


def _compare(warehouse: Path, config: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], int]:
    """(page, kind) as told, and as the history of visits has it, for pages on subscribed hosts; and the last id."""
    told: Counter[tuple[str, str]] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    with Warehouse.read(warehouse) as reading:
        hosts = set(reading.subscriptions()[0].sites)
        for row in reading.catalog.scan(limit=100_000):
            if row.host in hosts:
                for visit in reading.catalog.history(row.fingerprint):
                    if visit.outcome in ("new", "changed"):
                        seen[row.final_url or row.href, visit.outcome] += 1
        for notice in reading.outbox.since(0, limit=100_000):
            if notice.kind != "gone":
                told[notice.url, notice.kind] += 1
        return told, seen, reading.outbox.last_id()
