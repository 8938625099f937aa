"""Machines of a cluster whose clocks are wrong, by minutes or years: all of them have the time of the database, so no
host is asked early and none starves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres_server import postgres
from quadloom.model.outcome import HostPace, Outcome, Settlement
from quadloom.process import clock
from quadloom.settings import PolitenessSettings, Settings, StoreSettings
from quadloom.warehouse import Warehouse

YEAR = 365 * 86400.0
DELAY = 30.0
SEED = "http://one.example/"


@pytest.fixture(autouse=True)
def own_origin() -> Iterator[None]:
    before = clock.origin()
    yield
    clock.adopt(before)


def settings() -> Settings:
    url = postgres().url()
    return Settings(
        stores=StoreSettings(frontier=url, catalog=url), politeness=PolitenessSettings(delay=DELAY, adaptive=0.0)
    )


def leased(path: Path, chosen: Settings) -> int:
    """A machine takes all shards, visits what is due, and settles it. Returns the number of visits."""
    with Warehouse.open(path, settings=chosen) as warehouse:
        stores, now = warehouse.stores, clock.unix_time()
        assert abs(now - time.time()) < 5.0, "the time of the database, which runs on this machine"
        assert stores.shards is not None
        beat = stores.shards.heartbeat()
        beat.renew()
        stores.shards.take(1000, now)
        warehouse.requests.add_seeds([SEED, f"{SEED}2", f"{SEED}3"])
        visits = stores.frontier.lease(10, now)
        pace = HostPace("one.example", "192.0.2.1", DELAY, now + DELAY)
        stores.frontier.settle([Settlement(visit, Outcome.FAILED, None, pace) for visit in visits], now)
        beat.close()
    return len(visits)


@pytest.mark.parametrize("wrong", [YEAR, -YEAR, 900.0, -900.0])
def test_a_machine_with_a_wrong_clock(tmp_path: Path, wrong: float) -> None:
    chosen, right = settings(), clock.origin()
    clock.adopt(right + wrong)
    assert leased(tmp_path / "one", chosen) == 1, "one host, one visit"
    clock.adopt(right)
    assert leased(tmp_path / "two", chosen) == 0, "the host rests"
    clock.adopt(right - wrong)
    assert leased(tmp_path / "three", chosen) == 0
