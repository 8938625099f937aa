"""What an operator sees while servers are away: `status`, the monitor and the health check answer from PostgreSQL."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from faults.crawling import finish, run_config
from postgres_server import postgres
from quadloom.asking.report.numbers import store_counts
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.backends import share_settings
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from servers import S3_ENVIRONMENT

pytestmark = pytest.mark.cluster


@pytest.fixture
def silent_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server that takes connections and says nothing, as one that was stopped does."""
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


def test_status_answers_while_other_servers_are_silent(silent_port: int, tmp_path: Path) -> None:
    url = postgres().url()
    with serve_in_process(FakeWeb(WebSpec(seed=1, pages=5, hosts=1))) as serving:
        config = run_config(
            tmp_path,
            serving,
            stores={
                "frontier": url,
                "catalog": "postgresql:",
                "text": "postgresql:",
                "quads": f"sparql+http://127.0.0.1:{silent_port}",
                "archive": "s3://bucket/prefix",
                "archive_endpoint": f"http://127.0.0.1:{silent_port}",
            },
        )
        finish(tmp_path / "desk", config, "--json", "config", "share")
        found = finish(tmp_path / "desk", config, "--json", "status")
    assert found["away"] == {"quads": "no answer within 2 s", "archive": "no answer within 2 s"}
    assert found["numbers"]["pages_visited"] == 0 and found["documents"] == 0 and found["quads"] is None


def test_stores_have_two_seconds_together(silent_port: int, tmp_path: Path) -> None:
    url, address = postgres().url(), f"http://127.0.0.1:{silent_port}"
    stores = StoreSettings(
        frontier=url, catalog="postgresql:", text="postgresql:", quads=f"sparql+{address}", archive="s3://b/p",
        archive_endpoint=address,
    )  # fmt: skip
    settings = Settings(stores=stores)
    share_settings(settings, None)  # creates the tables
    with Warehouse.read(tmp_path, settings=settings) as warehouse:
        began = time.monotonic()
        has, away = store_counts(warehouse.stores)
        assert time.monotonic() - began < 4.0
    assert has == {"text": 0} and away.keys() == {"quads", "archive"}
