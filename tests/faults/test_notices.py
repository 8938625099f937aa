"""A subscriber hears of every change once per change, although the process is killed again and again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from fakeweb.receiver import receiving
from fakeweb.scripted import ScriptedSite, html
from faults.crawling import command, finish, finish_alone, kill_group, start, wait_for_requests, write_config
from quadloom.crawling.subscriptions.webhooks import NoticeMessage
from quadloom.model.subscription import Subscription
from quadloom.process.failpoints import EXIT_CODE
from quadloom.stores.protocols.outbox import Delivery
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

SECRET = "a secret of the test"
FRESHNESS = """
[freshness]
bandwidth = 60.0
min_interval = "1s"
max_interval = "3s"
prior_interval = "2s"
"""


def test_one_notice_per_change_over_kills(tmp_path: Path) -> None:
    chance = random.Random(20262)
    web = FakeWeb(
        WebSpec(seed=5, pages=40, hosts=3, scale=0.1, links=12, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    )
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    with (
        serve_in_process(web, log=tmp_path / "requests.jsonl") as serving,
        receiving(SECRET, lambda number: 503 if number == 7 else 204) as received,
    ):
        config = write_config(tmp_path, serving, batch_seconds=0.1)
        config.write_text(config.read_text() + FRESHNESS)
        warehouse = tmp_path / "warehouse"
        sites = [part for seed in serving.web.seeds for part in ("--site", seed.split("/")[2])]
        finish(
            warehouse, config, "subscribe", "add", "--json", "--id", "all", *sites,
            "--webhook", received.url, "--secret-file", str(secret),
        )  # fmt: skip
        for revision in range(1, 4):
            process = start(warehouse, config, "crawl", "--forever", *serving.web.seeds)
            wait_for_requests(serving, serving.load().requests + chance.randrange(60, 160), process)
            serving.turn(revision=4 * revision)
            wait_for_requests(serving, serving.load().requests + chance.randrange(1, 60), process)
            kill_group(process)
        for _ in range(6):  # a notice that was refused waits for its next turn, on a busy machine for the next crawl
            finish_alone(warehouse, config, "crawl", "--forever", "--json", "--max-seconds", "10")
            told, seen, last = _compare(warehouse, config)
            if received.bodies.keys() >= set(range(1, last + 1)):
                break
    assert sum(told.values()) >= 40 and any(kind == "changed" for _, kind in told), told
    assert told == seen
    assert received.badly_signed == 0
    assert all(len(bodies) == 1 for bodies in received.bodies.values()), "a repeated notice says the same"
    assert received.bodies.keys() == set(range(1, last + 1)), "none is lost, and ids have no gaps"
    assert received.firsts == sorted(received.firsts), "none overtakes another"


def _compare(warehouse: Path, config: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], int]:
    """(page, kind) as told, and as the history of visits has it, for pages on subscribed hosts; and the last id."""
    told: Counter[tuple[str, str]] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    with Warehouse.read(warehouse) as reading:
        hosts = set(reading.subscriptions.all()[0].sites)
        for row in reading.stores.catalog.scan(limit=100_000):
            if row.host in hosts:
                for visit in reading.stores.catalog.visits.of(row.fingerprint):
                    if visit.outcome in ("new", "changed"):
                        seen[row.final_url or row.href, visit.outcome] += 1
        for notice in reading.stores.outbox.since(0, limit=100_000):
            if notice.kind != "gone":
                told[notice.url, notice.kind] += 1
        return told, seen, reading.stores.outbox.last_id()


class Killing:
    """A receiver's answer that kills the sender before it can note the answer, for some of the requests."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, number: int) -> int:
        if number in self._numbers:
            assert self.process is not None
            os.killpg(self.process.pid, signal.SIGKILL)
        return 204


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_kills_between_commit_and_delivery_lose_nothing(tmp_path: Path, rounds: int) -> None:
    """Each version of a page is committed by a process that dies at once; then senders die with an answer unnoted."""
    killing = Killing(1, 2, rounds + 1)
    warehouse = tmp_path / "warehouse"
    with ScriptedSite({}) as site, receiving(SECRET, killing) as received:
        calm, deadly = (_config(tmp_path, site, failpoint) for failpoint in ("", "after-catalog"))
        with Warehouse.open(warehouse) as opened:
            hook = Subscription(id="page", urls=(site.url(),), webhook=received.url, secret=SECRET)
            opened.subscriptions.add(opened.subscriptions.checked(hook))
            opened.stores.outbox.put_delivery(Delivery(subscription="page", retry_at=time.time() + 3600.0))
        for number in range(1, rounds + 1):
            site.pages["/"] = html(f"<p vocab='http://schema.org/' typeof=Event><b property=name>version {number}</b>")
            with Warehouse.open(warehouse) as opened:
                opened.requests.refresh([site.url()])
            done = subprocess.run(command(warehouse, deadly, "crawl"), capture_output=True, timeout=60, check=False)
            assert done.returncode == EXIT_CODE, done.stderr.decode()[-2000:]
            with Warehouse.read(warehouse) as reading:
                assert reading.stores.outbox.last_id() == number, "committed"
        assert received.order == [], "but not delivered"
        with Warehouse.open(warehouse) as opened:
            opened.stores.outbox.put_delivery(Delivery(subscription="page"))
        for _ in range(3):
            killing.process = start(warehouse, calm, "crawl")
            killing.process.communicate(timeout=60)
            assert killing.process.returncode == -signal.SIGKILL
        for _ in range(4):  # on a busy machine an answer may come too late, and the notice waits for the next crawl
            finish_alone(warehouse, calm, "crawl", "--json")
            if rounds in received.bodies:
                break
    ids = list(range(1, rounds + 1))
    assert received.order == [1, 1, *ids[:-1], *ids[-2:]] and received.badly_signed == 0
    for number in ids:
        (body,) = received.bodies[number]
        assert f"version {number}" in str(msgspec.json.decode(body, type=NoticeMessage).added), (
            "a repetition says the same"
        )


def test_a_pause_after_a_failure_survives_a_restart(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    with ScriptedSite({"/": html("<title>here</title>")}) as site, receiving(answer=lambda _: 500) as received:
        config = _config(tmp_path, site)
        with Warehouse.open(warehouse) as opened:
            opened.subscriptions.add(Subscription(id="page", urls=(site.url(),), webhook=received.url))
        began = time.time()
        finish_alone(warehouse, config, "crawl", "--json")
        with Warehouse.open(warehouse) as opened:
            waiting = opened.stores.outbox.delivery("page")
            assert waiting.attempts == 1 and began < waiting.retry_at <= time.time() + 10.0
            opened.stores.outbox.put_delivery(msgspec.structs.replace(waiting, retry_at=time.time() + 600.0))
        finish_alone(warehouse, config, "crawl", "--json")
        assert received.refused == [1], "the second process waits as the first one should have"
        received.answer = lambda _: 204
        with Warehouse.open(warehouse) as opened:
            opened.stores.outbox.put_delivery(msgspec.structs.replace(waiting, retry_at=time.time()))
        finish_alone(warehouse, config, "crawl", "--json")
        assert received.order == [1]


def _config(folder: Path, site: ScriptedSite, failpoint: str = "") -> Path:
    path = folder / f"quadloom{failpoint}.toml"
    sections: dict[str, dict[str, object]] = {}
    for name, value in site.settings(crawl={"scope": "any", "failpoint": failpoint}).items():
        section, _, key = name.partition(".")
        sections.setdefault(section, {})[key] = value
    path.write_text(
        "".join(
            f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
            for section, values in sections.items()
        )
    )
    return path
