"""`quadloom fetch`, `detect`, `transform`, `index` and `extract`: the phases of a crawl, each on its own.

They hand pages on through the catalog and the archive, so they may run one after another, at the same time, and be
killed. Each ends when nothing is left for it, unless `--follow` is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from quadloom.cli.crawling.crawl import check_start, follow_crawl, require_contact
from quadloom.cli.crawling.live import finish, nothing_read
from quadloom.cli.files import urls_from_file
from quadloom.cli.options import (
    Contact,
    Delay,
    Follow,
    LinkScope,
    MaxPages,
    MaxSeconds,
    Seeds,
    Strategies,
    TransformWorkers,
)
from quadloom.cli.session import session
from quadloom.crawling.run.session import RunningCrawl
from quadloom.errors import UsageError
from quadloom.model.phase import PhaseName
from quadloom.settings.loading import Value
from quadloom.stores.backends import exists
from quadloom.warehouse import Warehouse

Values = dict[str, Value | None]
"""Settings by dotted name, as `Session.override` takes them."""


def fetch(
    *urls: str,
    seeds: Seeds = None,
    scope: LinkScope = None,
    max_pages: MaxPages = None,
    max_seconds: MaxSeconds = None,
    delay: Delay = None,
    contact: Contact = None,
    follow: Follow = False,
) -> int:
    """Fetch pages into the archive: from URLs, or from the queue. Nothing is parsed, so links are found later.

    Parameters
    ----------
    urls
        URLs to fetch; without any, the queue is fetched
    """
    s = session()
    s.override(
        {
            "crawl.scope": scope,
            "crawl.max_pages": max_pages,
            "crawl.max_seconds": max_seconds,
            "crawl.contact": contact,
            "politeness.delay": delay,
        }
    )
    starts = [*urls, *urls_from_file(seeds)]
    check_start(s, starts)
    with Warehouse.open(s.warehouse, settings=s.settings, phases=["fetch"]) as warehouse:
        require_contact(s, warehouse, starts)
        running = warehouse.fetch(starts or s.settings.crawl.seeds, follow=follow)
        report, interrupted = follow_crawl(s, running)
        return finish(s, report, interrupted, None) or nothing_read(s, report, warehouse.stores.catalog, starts)


def detect(*, max_seconds: MaxSeconds = None, follow: Follow = False) -> int:
    """Find out which kind of document each fetched page is. `transform` does this too."""
    return _run("detect", {"crawl.max_seconds": max_seconds}, lambda warehouse: warehouse.detect(follow=follow))


def transform(*, workers: TransformWorkers = None, max_seconds: MaxSeconds = None, follow: Follow = False) -> int:
    """Transform fetched pages: extract what they say, for `index` and `extract`."""
    values: Values = {"crawl.max_seconds": max_seconds, "crawl.workers": workers}
    return _run("transform", values, lambda warehouse: warehouse.transform(follow=follow))


def index(*, max_seconds: MaxSeconds = None, follow: Follow = False) -> int:
    """Write transformed pages to the quad store and the text index."""
    return _run("index", {"crawl.max_seconds": max_seconds}, lambda warehouse: warehouse.index(follow=follow))


def extract(
    *,
    strategy: Strategies = (),
    all_pages: Annotated[bool, Parameter(name="--all")] = False,
    host: str = "",
    max_seconds: MaxSeconds = None,
    follow: Follow = False,
) -> int:
    """Put the links of indexed pages into the queue, by the link strategies.

    Parameters
    ----------
    all_pages
        of all pages that were ever read, because a strategy is new or has changed
    host
        of all pages of this host that were ever read
    """
    values: Values = {"crawl.max_seconds": max_seconds, "crawl.strategies": [*strategy]}
    return _run(
        "extract",
        values,
        lambda warehouse: warehouse.extract(everything=all_pages, host=host, follow=follow),
    )


def _run(phase: PhaseName, values: Values, start: Callable[[Warehouse], RunningCrawl]) -> int:
    s = session()
    s.override(values)
    if not exists(s.warehouse, s.settings):
        raise UsageError(f"there is no warehouse at {s.warehouse}", hint="to begin: `quadloom fetch URL`")
    with Warehouse.open(s.warehouse, settings=s.settings, phases=[phase]) as warehouse:
        report, interrupted = follow_crawl(s, start(warehouse))
    return finish(s, report, interrupted, None)
