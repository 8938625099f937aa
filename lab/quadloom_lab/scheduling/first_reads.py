"""How soon a crawl reads what is important: orders of first reads, compared on link graphs that are known as a whole.

The frontier, the link matrix, OPIC, the fixpoints and the scores are those of a crawl; only the pages are not fetched.
Importance that counts is that of the whole graph, which no crawl knows before it has read everything. A crawl estimates
it from the links of the pages that it has read so far.
"""

from __future__ import annotations

import os
import re
import tempfile
from array import array
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import msgspec
import numpy as np
from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.url import fingerprint
from quadloom.model.visit import Visit
from quadloom.planning.ranking.link_blocks import LinkBlocks, LinkRows
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.ranking.ranking_process import RankingInThread
from quadloom.planning.ranking.usefulness import rank
from quadloom.planning.refresh.reschedule import new_scores
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.settings import CrawlSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy, Order
from quadloom.stores.protocols.frontier import FIRST_PLACE, Place
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA

MARKS = (0.02, 0.05, 0.1, 0.2, 0.5)  # shares of all pages at which the harvest is printed
_BATCH = 32  # pages leased at a time
_ESTIMATED_EVERY = 64  # pages from one run of OPIC to the next: two seconds of a crawl
_SCORED = 16  # URLs scored again for each page read: what a twentieth of a crawl's own thread is enough for
_RANKED_EVERY = 4000
_HREF = re.compile(rb"""<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)


class LinkGraph(msgspec.Struct, frozen=True):
    """URLs and the numbers of the pages that each links to. `start`: the page that a crawl begins with."""

    urls: tuple[str, ...]
    links: tuple[tuple[int, ...], ...]
    start: int = 0

    def reachable(self) -> LinkGraph:
        """Without the pages that no chain of links from the start reaches."""
        place = {self.start: 0}
        waiting = deque([self.start])
        while waiting:
            for target in self.links[waiting.popleft()]:
                if target not in place:
                    place[target] = len(place)
                    waiting.append(target)
        links = tuple(tuple(place[target] for target in self.links[page]) for page in place)
        return LinkGraph(tuple(self.urls[page] for page in place), links)

    def importance(self) -> np.ndarray:
        """Of every page; sums to 1."""
        indptr = np.cumsum([0, *(len(targets) for targets in self.links)])
        targets = np.fromiter((target for page in self.links for target in page), dtype=np.int32)
        return rank(LinkBlocks(LinkRows(indptr, targets)), np.zeros(len(self.urls), dtype=bool)).importance


class Harvest(msgspec.Struct, frozen=True):
    """`at`: share of all importance that was read at each of `MARKS`; `mean`: over the whole crawl, so 1 would be all
    of it with the first page. `sites`: share of all hosts that were read from at the same marks."""

    order: str
    guided_share: float
    pages: int
    at: tuple[float, ...]
    sites: tuple[float, ...]
    mean: float


def simulated_graph(pages: int = 8000, sites: int = 80, seed: int = 1) -> LinkGraph:
    """A web that grows page by page. A new page links to the page before it in its site, to others of its site and of
    other sites; targets are chosen as often as they are linked to already (copied links), or at random. Each site has a
    menu: all its pages link to its first three."""
    rng = np.random.default_rng(seed)
    hosts = rng.integers(0, sites, pages)
    hosts[:sites] = np.arange(sites)
    members: list[list[int]] = [[] for _ in range(sites)]
    links: list[set[int]] = []
    chosen: list[int] = [0]
    for page in range(pages):
        own = members[hosts[page]]
        targets = set(own[:3])
        for _ in range(int(rng.integers(1, 12))):
            copied = rng.random() < 0.6
            if own and rng.random() < 0.8:
                targets.add(own[int(len(own) * rng.random() ** (2.0 if copied else 1.0))])
            elif page:
                targets.add(chosen[int(rng.integers(len(chosen)))] if copied else int(rng.integers(page)))
        targets.discard(page)
        chosen += targets
        links.append(targets)
        if own:
            links[own[int(rng.integers(max(0, len(own) - 10), len(own)))]].add(page)  # a listing that leads to it
        elif page:
            links[int(rng.integers(page))].add(page)
        own.append(page)
    urls = tuple(f"http://site{hosts[page]}.example/{page}" for page in range(pages))
    return LinkGraph(urls, tuple(tuple(sorted(targets)) for targets in links)).reachable()


def graph_of_folder(folder: Path, *, most: int = 50_000) -> LinkGraph:
    """The links between the HTML files of a folder, such as a site that was saved or the documentation of a program.
    Each folder directly below it counts as a host. The crawl begins with its `index.html`, else with the first file."""
    files = sorted(
        Path(root, name).relative_to(folder)
        for root, _, names in os.walk(folder)
        for name in names
        if name.endswith((".html", ".htm"))
    )[:most]
    numbers = {f"/{path.as_posix()}": number for number, path in enumerate(files)}
    links: list[tuple[int, ...]] = []
    for path in files:
        here = f"/{path.as_posix()}"
        found: dict[int, None] = {}
        for href in _HREF.findall((folder / path).read_bytes()):
            text = href.decode("utf-8", "replace").replace("&amp;", "&")
            if "://" not in text and not text.startswith(("mailto:", "javascript:", "//")):
                target = unquote(urldefrag(urljoin(here, text)).url).partition("?")[0]
                number = numbers.get(target + "index.html" if target.endswith("/") else target)
                if number is not None and number != numbers[here]:
                    found[number] = None
        links.append(tuple(found))
    urls = tuple(
        f"http://{path.parts[0] if len(path.parts) > 1 else 'top'}.example/{path.as_posix()}" for path in files
    )
    return LinkGraph(urls, tuple(links), numbers.get("/index.html", 0)).reachable()


def harvest(graph: LinkGraph, order: Order, guided_share: float) -> Harvest:
    """Crawl the graph to its end in this order."""
    with tempfile.TemporaryDirectory(prefix="quadloom-bench-") as folder:
        read = _Reader(graph, order, guided_share, Path(folder)).run()
    worth = graph.importance()
    total = np.cumsum(worth[read])
    hosts = np.array([url.split("/")[2] for url in graph.urls])
    marks = [max(1, round(mark * len(read))) for mark in MARKS]
    return Harvest(
        order=order,
        guided_share=guided_share,
        pages=len(read),
        at=tuple(round(float(total[mark - 1]), 4) for mark in marks),
        sites=tuple(round(len(set(hosts[read[:mark]])) / len(set(hosts)), 4) for mark in marks),
        mean=round(float(total.mean()), 4),
    )


class _Reader:
    """A crawl without fetching. Its ranks are brought up to date after a number of pages, not of seconds."""

    def __init__(self, graph: LinkGraph, order: Order, guided_share: float, folder: Path) -> None:
        self._graph = graph
        self._found = [
            Discovery(url, url, url.split("/")[2], fingerprint(url), 1, via=1, anchor="") for url in graph.urls
        ]
        self._pages = {found.fingerprint: number for number, found in enumerate(self._found)}
        settings = Settings(crawl=CrawlSettings(scope="any", order=order, guided_share=guided_share))
        self._database = SqliteDatabase.open(folder / "quadloom.db", SCHEMA)
        catalog = SqliteCatalog(self._database)
        policy = FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=1, order=order, guided_share=guided_share)
        self._frontier = SqliteFrontier(self._database, policy, now=0.0)
        self._ranker = PageRanker(
            folder / "links", settings.freshness, lambda: (), lambda: (), runner=RankingInThread()
        )
        self._place: Place = FIRST_PLACE  # where scoring continues
        self._scheduler = RefreshScheduler(catalog, self._frontier, settings, ranker=self._ranker)

    def run(self) -> list[int]:
        """Numbers of the pages in the order in which they are read."""
        self._frontier.add([replace(self._found[self._graph.start], depth=0, priority=1)], 0.0)
        read: list[int] = []
        now = 1.0
        while visits := self._frontier.lease(_BATCH, now):
            before = len(read)
            settlements = [self._settled(visit, now) for visit in visits]
            read += [self._pages[visit.fingerprint] for visit in visits]
            planned = self._scheduler.plan(settlements, {}, now)
            self._frontier.settle([replace(item, again_at=None) for item in planned], now)
            self._scheduler.committed()
            self._update(before, len(read), now)
            now += 1.0
        self._ranker.close()
        self._database.close()
        return read

    def _update(self, before: int, after: int, now: float) -> None:
        if before // _RANKED_EVERY < after // _RANKED_EVERY:
            self._ranker.flush()
            self._ranker.recompute(now)
        elif before // _ESTIMATED_EVERY < after // _ESTIMATED_EVERY:
            self._ranker.estimate_new(now)
        if self._scheduler.guided:
            count = _SCORED * (after - before)
            found = self._frontier.rescore(self._place, count, lambda unread: new_scores(self._ranker, unread))
            self._place = found or FIRST_PLACE

    def _settled(self, visit: Visit, now: float) -> Settlement:
        targets = self._graph.links[self._pages[visit.fingerprint]]
        found = tuple(replace(self._found[target], depth=visit.depth + 1) for target in targets)
        self._ranker.append(visit.fingerprint, array("q", [item.fingerprint for item in found]).tobytes())
        row = PageRow(
            fingerprint=visit.fingerprint,
            key=visit.key,
            href=visit.href,
            host=visit.host,
            status=200,
            outcome=Outcome.NEW,
            kind="html",
            fetched_at=now,
        )
        return Settlement(visit, Outcome.NEW, row, HostPace(visit.host, "", 0.0, now), found)


def compare(graph: LinkGraph, shares: Sequence[float]) -> list[Harvest]:
    """Breadth-first with each of these guided shares, importance alone, and a random order."""
    rows = [harvest(graph, "breadth-first", share) for share in shares]
    return [*rows, harvest(graph, "importance", 0.0), harvest(graph, "random", 0.0)]
