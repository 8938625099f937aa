"""`quadloom fetch`, `detect`, `transform`, `index` and `extract`: the phases of a crawl, each on its own.

They hand pages on through the catalog and the archive, so they may run one after another, at the same time, and be
killed. Each ends when nothing is left for it, or goes on with `--follow`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from quadloom.cli.crawling.crawl import check_start, follow_crawl, require_contact
from quadloom.cli.crawling.live import finish, nothing_read
from quadloom.cli.crawling.url_files import urls_from_file
from quadloom.cli.session import session
from quadloom.crawling.run.session import RunningCrawl
from quadloom.errors import UsageError
from quadloom.model.phase import PhaseName
from quadloom.stores.backends import exists
from quadloom.warehouse import Warehouse


def fetch(
    *urls: str,
    seeds: Path | None = None,
    scope: Literal["page", "host", "site", "any"] | None = None,
    max_pages: int | None = None,
    max_seconds: float | None = None,
    delay: float | None = None,
    contact: str | None = None,
    follow: bool = False,
) -> int:
    """Fetch pages into the archive: from URLs, or what is queued. Nothing is parsed, so their links come later.

    Parameters
    ----------
    urls
        URLs to fetch; without any, what is queued
    seeds
        file with one URL per line, `-` for standard input
    scope
        how far links will be followed: only the page, its host, its site, or anywhere
    max_pages
        stop after this many pages
    max_seconds
        stop after this many seconds
    delay
        least seconds between two requests to one host
    contact
        URL or mail address shown to the sites you visit
    follow
        do not end when nothing is queued: wait for links that other processes find
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


def detect(*, max_seconds: float | None = None, follow: bool = False) -> int:
    """Find out which kind of document each fetched page is. `transform` does it by itself.

    Parameters
    ----------
    max_seconds
        stop after this many seconds
    follow
        do not end when no page waits: wait for those that other processes fetch
    """
    return _run("detect", follow, max_seconds)


def transform(
    *,
    workers: int | None = None,
    max_seconds: float | None = None,
    follow: bool = False,
) -> int:
    """Transform fetched pages: what they say, for `index` and `extract`.

    Parameters
    ----------
    workers
        transform processes
    max_seconds
        stop after this many seconds
    follow
        do not end when no page waits: wait for those that other processes fetch
    """
    session().override({"crawl.workers": workers})
    return _run("transform", follow, max_seconds)


def index(*, max_seconds: float | None = None, follow: bool = False) -> int:
    """Write transformed pages to the quad store and the text index.

    Parameters
    ----------
    max_seconds
        stop after this many seconds
    follow
        do not end when no page waits: wait for those that other processes transform
    """
    return _run("index", follow, max_seconds)


def extract(
    *,
    strategy: list[str] | None = None,
    all_pages: Annotated[bool, Parameter(name="--all")] = False,
    host: str = "",
    max_seconds: float | None = None,
    follow: bool = False,
) -> int:
    """Put the links of indexed pages into the queue, by the link strategies.

    Parameters
    ----------
    strategy
        which links to follow: all, same-site, external, feeds, seealso, vocabulary, sitemaps, or a .rq file
    all_pages
        of all pages that were ever read, because a strategy is new or has changed
    host
        of all pages of this host that were ever read
    max_seconds
        stop after this many seconds
    follow
        do not end when no page waits: wait for those that other processes index
    """
    session().override({"crawl.strategies": list(strategy) if strategy else None})
    return _run("extract", follow, max_seconds, everything=all_pages, host=host)


def _run(phase: PhaseName, follow: bool, max_seconds: float | None, *, everything: bool = False, host: str = "") -> int:
    s = session()
    s.override({"crawl.max_seconds": max_seconds})
    if not exists(s.warehouse, s.settings):
        raise UsageError(f"there is no warehouse at {s.warehouse}", hint="to begin: `quadloom fetch URL`")
    with Warehouse.open(s.warehouse, settings=s.settings, phases=[phase]) as warehouse:
        report, interrupted = follow_crawl(s, _running(warehouse, phase, follow, everything, host))
    return finish(s, report, interrupted, None)


def _running(warehouse: Warehouse, phase: PhaseName, follow: bool, everything: bool, host: str) -> RunningCrawl:
    if phase == "extract":
        return warehouse.extract(everything=everything, host=host, follow=follow)
    if phase == "detect":
        return warehouse.detect(follow=follow)
    return warehouse.transform(follow=follow) if phase == "transform" else warehouse.index(follow=follow)
