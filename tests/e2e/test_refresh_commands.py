"""`quadloom refresh` by URL, site and age, and `quadloom changes --follow`, as separate processes on one warehouse."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import quadloom
from faults.crawling import command, write_config
from quadloom.settings.loading import load
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, serve_in_process

SPEC = WebSpec(seed=3, pages=30, hosts=3, scale=0.1, links=8, traps=False, slow_seconds=0.0, crawl_delay=0.0)


class Place:
    """A warehouse that was filled by one crawl, and the web that it was filled from."""

    def __init__(self, folder: Path, serving: FakeWebServer) -> None:
        self.path = folder / "w"
        self.serving = serving
        self.config = write_config(folder, serving)
        self.run("crawl", *serving.web.seeds)

    def run(self, *words: str) -> dict[str, object]:
        place = ("-w", str(self.path), "--config", str(self.config))
        done = quadloom(*place, *words, "--json", cwd=self.path.parent)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout.splitlines()[-1])) if done.stdout else {}

    def reading(self) -> Warehouse:
        return Warehouse.read(self.path, settings=load(config=self.config).settings)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serve_in_process(FakeWeb(SPEC)) as serving:
        yield Place(tmp_path_factory.mktemp("refresh"), serving)


def test_refresh_by_age_site_and_url(place: Place) -> None:
    with place.reading() as warehouse:
        pages = [row for row in warehouse.stores.catalog.scan(limit=10_000) if row.status == 200]
    assert place.run("refresh", "--older-than", "1h")["requested"] == 0
    host = pages[0].host
    of_host = {row.href for row in pages if row.host == host}
    requested = place.run("refresh", "--site", host)["requested"]
    assert isinstance(requested, int) and requested >= len(of_host)
    other = next(row.href for row in pages if row.host != host)
    assert place.run("refresh", other)["requested"] == 1
    began = time.time()
    place.run("crawl")
    with place.reading() as warehouse:
        again = {row.href for row in warehouse.stores.catalog.scan(limit=10_000) if row.fetched_at >= began}
    assert of_host | {other} <= again
    assert all(row.href not in again for row in pages if row.host != host and row.href != other), "nothing else was due"


def test_changes_are_followed_through_a_pipe(place: Place) -> None:
    with place.reading() as warehouse:
        pages = [row.href for row in warehouse.stores.catalog.scan(limit=10_000) if row.status == 200 and row.archive]
    place.run("subscribe", "add", *(word for page in pages for word in ("--url", page)))
    follower = subprocess.Popen(
        command(place.path, place.config, "changes", "--follow", "--limit", "2"), stdout=subprocess.PIPE, text=True
    )
    try:
        place.serving.turn(revision=8)
        place.run("refresh", *pages)
        place.run("crawl")
        out, _ = follower.communicate(timeout=60)
    finally:
        follower.kill()
        follower.wait()
    notices = [line.split("\t") for line in out.splitlines() if not line.startswith("  ")]
    assert len(notices) >= 2 and follower.returncode == 0
    assert all(fields[3] == "changed" and fields[4] in pages for fields in notices[:2])
    assert int(notices[0][0]) < int(notices[1][0])
