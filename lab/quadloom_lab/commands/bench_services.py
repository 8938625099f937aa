"""`quadloom bench services`: MultiCrawler's figure 7 again, the speed of transform by the number of its services.

The services run on loopback and only wait, as a machine does that works elsewhere. All pages pass one transform
worker, so that the speed comes from the instances alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from quadloom.cli.session import session
from quadloom.crawling.workers.batch import TransformPool
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, ServiceSettings, Settings

_PAPER = {1: 5, 3: 13, 5: 21}  # pages per second with 1, 1+2 and 1+4 nodes: table 2
_XML = b"<page><title>tidy</title></page>"


class ServiceRun(NamedTuple):
    """`requests`: by instance, in the order of their delays."""

    seconds: float
    pages: int
    requests: tuple[int, ...]

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


def services(
    *, pages: int = 160, seconds: float = 0.5, instances: tuple[int, ...] = (1, 2, 4), parallel: int = 1
) -> None:
    """Transform pages with 1, 2 and 4 instances of a service; print pages per second, then the share of a slow one.

    Parameters
    ----------
    pages
        pages of each run
    seconds
        time that a service takes for a page
    instances
        numbers of instances to measure
    parallel
        requests at once to one instance
    """
    s = session()
    runs = {count: measure([seconds] * count, pages, parallel) for count in instances}
    first = next(iter(runs.values())).rate / next(iter(runs))
    rows = [
        (count, round(run.rate, 2), round(run.rate / first, 2), f"{min(run.requests)}-{max(run.requests)}")
        for count, run in runs.items()
    ]
    uneven = measure([0.0, 3 * seconds], pages, parallel)
    share = uneven.requests[1] / sum(uneven.requests)
    if s.json:
        s.emit(
            {
                "instances": [
                    {"instances": count, "pages_per_second": rate, "times_one": ratio} for count, rate, ratio, _ in rows
                ],
                "slow_share": round(share, 4),
                "paper": [{"nodes": nodes, "pages_per_second": rate} for nodes, rate in _PAPER.items()],
            }
        )
        return
    s.table(["instances", "pages/s", "times one", "requests of each"], rows)
    s.table(
        ["MultiCrawler, nodes", "pages/s", "times one"],
        [(nodes, rate, round(rate / _PAPER[1], 2)) for nodes, rate in _PAPER.items()],
    )
    s.write(f"share of an instance that takes {3 * seconds:g} s beside one that takes none\t{share:.1%}")


def measure(delays: Sequence[float], pages: int, parallel: int) -> ServiceRun:
    """Transform `pages` pages by instances with these `delays`. The clock starts with the first answer."""
    with ExitStack() as stack:
        running = [stack.enter_context(_service(delay)) for delay in delays]
        url = " ".join(instance.url for instance in running)
        service = ServiceSettings(url=url, kinds=["html"], parallel=parallel, timeout=60.0)
        pool = stack.enter_context(TransformPool(Settings(crawl=CrawlSettings(workers=1), service=[service])))
        started = 0.0
        for done, _ in enumerate(pool.each(_pages(pages), lambda pair: pair)):
            if not done:
                started = time.monotonic()
        return ServiceRun(time.monotonic() - started, pages - 1, tuple(instance.requests for instance in running))


class _Running:
    def __init__(self, url: str) -> None:
        self.url = url
        self.requests = 0


@contextmanager
def _service(delay: float) -> Iterator[_Running]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            running.requests += 1
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(delay)
            self.send_response(200)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(_XML)))
            self.end_headers()
            self.wfile.write(_XML)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = _Running(f"http://127.0.0.1:{server.server_address[1]}/")
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()


def _pages(count: int) -> Iterator[tuple[Visit, Page]]:
    for number in range(count):
        url = f"http://bench.example/{number}"
        body = f"<title>page {number}</title><p>text".encode()
        page = Page(url, url, 200, (("content-type", "text/html"),), body, 0.0, 0.1)
        yield Visit(url, url, "bench.example", number), page
