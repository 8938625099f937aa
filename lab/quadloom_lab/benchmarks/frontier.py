"""CPU cost of the frontier: settle a page with 100 links, 90 of them seen before, 8 of 10 within the host.

Run: python -m quadloom_lab.benchmarks.frontier [pages]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.url import fingerprint
from quadloom.model.visit import Visit
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA

LINKS, NEW, BATCH, HOSTS = 100, 10, 128, 2000


class Web:
    """Pages numbered within their host."""

    def __init__(self) -> None:
        self.sizes = [10] * HOSTS
        self._chance = random.Random(1)

    def page(self, host: int, number: int) -> Discovery:
        name = f"www.host{host}.example"
        href = f"https://{name}/articles/2024/{number}/some-title-of-an-article"
        return Discovery(href, href, name, fingerprint(href), number % 5 + 1, anchor="some title")

    def links(self, host: int) -> tuple[Discovery, ...]:
        links = []
        for number in range(LINKS):
            target = host if number % 10 < 8 else self._chance.randrange(HOSTS)
            if number < LINKS - NEW:
                links.append(
                    self.page(target, self._chance.randrange(max(0, self.sizes[target] - 300), self.sizes[target]))
                )
            else:
                links.append(self.page(target, self.sizes[target]))
                self.sizes[target] += 1
        return tuple(links)


def settled(visit: Visit, discoveries: tuple[Discovery, ...], now: float) -> Settlement:
    page = PageRow(
        fingerprint=visit.fingerprint,
        key=visit.key,
        href=visit.href,
        host=visit.host,
        status=200,
        kind="html",
        outcome=Outcome.NEW,
        fetched_at=now,
        quads_digest=b"q" * 16,
        text_digest=b"t" * 16,
        title="Some title",
    )
    return Settlement(visit, Outcome.NEW, page, HostPace(visit.host, "", 0.0, now), discoveries)


def main(pages: int) -> None:
    web = Web()
    with tempfile.TemporaryDirectory() as directory:
        database = SqliteDatabase.open(Path(directory) / "quadloom.db", SCHEMA)
        frontier = SqliteFrontier(database, FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=8), now=0.0)
        catalog = SqliteCatalog(database)
        frontier.add([web.page(host, number) for host in range(HOSTS) for number in range(10)], 0.0)
        lease = settle = record = 0.0
        done, now = 0, 1.0
        while done < pages:
            started = time.process_time()
            visits = frontier.lease(BATCH, now)
            lease += time.process_time() - started
            settlements = [
                settled(visit, web.links(int(visit.host.removeprefix("www.host").partition(".")[0])), now)
                for visit in visits
            ]
            started = time.process_time()
            with database.transaction():
                frontier.settle(settlements, now)
                middle = time.process_time()
                catalog.record(settlements, now)
                record += time.process_time() - middle
            settle += time.process_time() - started
            done += len(visits)
            now += 0.25
        settle -= record
        micro = {"lease": lease, "settle": settle, "catalog": record}
        costs = ", ".join(f"{name} {seconds / done * 1e6:.0f} us" for name, seconds in micro.items())
        print(f"{done} pages, {sum(web.sizes)} URLs, CPU a page: {costs}; a link {settle / done / LINKS * 1e6:.2f} us")
        database.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
