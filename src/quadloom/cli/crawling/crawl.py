"""`quadloom crawl`: crawl sites, or continue the last crawl; its progress and its end."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from glob import escape
from types import FrameType
from typing import Literal

import msgspec

from quadloom.cli.asking.status import OUTDATED
from quadloom.cli.crawling.live import CrawlDisplay, finish, nothing_read
from quadloom.cli.files import urls_from_file
from quadloom.cli.options import (
    Contact,
    Delay,
    Follow,
    GuidedShare,
    LinkScope,
    MaxPages,
    MaxSeconds,
    Phases,
    Seeds,
    Strategies,
    TransformWorkers,
)
from quadloom.cli.session import Session, session
from quadloom.cli.words import counted
from quadloom.crawling.ingest.link_queries import check_strategies
from quadloom.crawling.run.report import CrawlReport
from quadloom.crawling.run.session import RunningCrawl
from quadloom.errors import SettingsError, UrlError, UsageError
from quadloom.fetching.guard import is_opened
from quadloom.maintenance.recovery.lost_database import refuse_lost_database
from quadloom.model.phase import PHASES, PhaseName
from quadloom.model.url import Url
from quadloom.process import template
from quadloom.settings import Settings, SiteSettings
from quadloom.stores.backends import exists
from quadloom.warehouse import Warehouse

_NO_HOST = re.compile(r"https?:(///|/?$|/[^/])", re.IGNORECASE)
_BARE_HOST = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?(/|$)")  # example.org/page, as people write it
_CONTACT = re.compile(r"(mailto:)?[^\s@/]+@[^\s@/]+|https?://[^\s/]+(/\S*)?")  # a mail address or a URL
_READ_BYTES = 4096  # bytes of standard input read at a time


def crawl(
    *urls: str,
    seeds: Seeds = None,
    scope: LinkScope = None,
    depth: int | None = None,
    max_pages: MaxPages = None,
    max_seconds: MaxSeconds = None,
    max_failures: int | None = None,
    delay: Delay = None,
    own_site: bool = False,
    contact: Contact = None,
    strategy: Strategies = (),
    order: Literal["breadth-first", "importance", "random"] | None = None,
    guided_share: GuidedShare = None,
    site_search: int | None = None,
    workers: TransformWorkers = None,
    forever: bool = False,
    phases: Phases = (),
    follow: Follow = False,
    until_input_ends: bool = False,
    ray: str | None = None,
    ray_workers: int = 0,
) -> int:
    """Crawl from URLs: fetch pages, extract quads, index them, follow links; or continue the last crawl.

    Parameters
    ----------
    urls
        URLs to start from; without any, the crawl continues with its queue, or with `crawl.seeds`
    depth
        follow at most this many links away from a seed
    max_failures
        exit with code 5 if more visits than this failed
    own_site
        the hosts of these URLs are yours: no pauses between requests, 16 requests at the same time
    order
        which unread pages are read first
    site_search
        send at most this many requests to each host's own search, to find pages that no page links to
    forever
        do not end: keep known pages fresh, and read new ones
    until_input_ends
        stop and save when standard input ends, so that the crawl ends with the program that started it
    ray
        address of a Ray cluster (auto, local, ray://host:10001) whose machines crawl together
    ray_workers
        number of workers on Ray, 0 = one for each machine
    """
    s = session()
    s.override(
        {
            "crawl.scope": scope,
            "crawl.max_depth": depth,
            "crawl.max_pages": max_pages,
            "crawl.max_seconds": max_seconds,
            "crawl.contact": contact,
            "crawl.strategies": [*strategy],
            "crawl.order": order,
            "crawl.guided_share": guided_share,
            "crawl.site_search": site_search,
            "crawl.workers": workers,
            "politeness.delay": delay,
        }
    )
    starts = [*urls, *urls_from_file(seeds)]
    if ray is not None:
        from quadloom.cli.crawling.worker import crawl_on_ray

        return crawl_on_ray(s, starts or s.settings.crawl.seeds, ray, ray_workers)
    check_start(s, starts)
    chosen = chosen_phases(phases)
    settings = with_own_sites(s.settings, starts or s.settings.crawl.seeds) if own_site else s.settings
    template.begin()
    with Warehouse.open(s.warehouse, settings=settings, phases=chosen) as warehouse:
        if "fetch" in chosen:
            require_contact(s, warehouse, starts)
        if "index" in chosen and warehouse.stores.text.is_outdated:
            s.say(OUTDATED)
        running = warehouse.crawl(starts or s.settings.crawl.seeds, forever=forever, follow=follow)
        if until_input_ends:
            _when_input_ends(lambda: _stop_quietly(s, running))
        report, interrupted = follow_crawl(s, running)
        code = finish(s, report, interrupted, max_failures)
        return code or nothing_read(s, report, warehouse.stores.catalog, starts)


def chosen_phases(names: Sequence[str]) -> frozenset[PhaseName]:
    """The value of `--phases`: several values, or one with commas. Empty = all. Transform includes detect."""
    chosen = {name.strip() for text in names or PHASES for name in text.split(",") if name.strip()}
    if "transform" in chosen:
        chosen.add("detect")
    unknown = sorted(chosen.difference(PHASES))
    if unknown or not chosen:
        message = f"there is no phase {unknown[0]!r}" if unknown else "no phase is named"
        raise UsageError(message, hint=f"available: {', '.join(PHASES)}")
    return frozenset(phase for phase in PHASES if phase in chosen)


def check_start(s: Session, starts: list[str]) -> None:
    """Refuse bad arguments before a warehouse is created, so that a failed first attempt leaves no files."""
    for url in starts:
        if _NO_HOST.match(url):
            raise UrlError(f"the URL {url!r} names no host", hint="write https://your.site/page")
        try:
            Url.parse(url)
        except UrlError as error:
            if _BARE_HOST.match(url):
                raise UrlError(error.message, hint=f"did you mean https://{url} ?") from None
            raise
    check_contact(s.settings.crawl.contact)
    if exists(s.warehouse, s.settings):
        return
    refuse_lost_database(s.warehouse, s.settings)
    if s.warehouse.is_dir() and (found := sum(1 for _ in s.warehouse.iterdir())):
        s.say(f"notice: {s.warehouse} already has {counted(found, 'other file')}; the warehouse is made among them")
    check_strategies(s.settings)
    if s.settings.crawl.browser != "never":
        from quadloom.fetching.browser.renderer import find_browser

        find_browser(s.settings)
    first = starts or s.settings.crawl.seeds
    if not first:
        raise UsageError(
            f"nothing to crawl: no URL is given, and there is no warehouse at {s.warehouse} to continue",
            hint="give a URL: `quadloom crawl https://your.site`",
        )
    private = all(is_opened(Url.parse(url).host, s.settings.guard) for url in first)
    if not s.settings.crawl.contact and not private and not _can_ask():
        raise _no_contact()


def with_own_sites(settings: Settings, starts: Sequence[str]) -> Settings:
    """The settings for a user who owns the hosts of these URLs."""
    if not starts:
        raise UsageError(
            "--own-site needs a URL, because it applies to the hosts of the URLs",
            hint="give the URL again, or write a [[site]] table with own = true",
        )
    hosts = sorted({Url.parse(url).host for url in starts})
    sites = [SiteSettings(match=escape(host), own=True) for host in hosts]
    return msgspec.structs.replace(settings, site=[*settings.site, *sites])


def _when_input_ends(then: Callable[[], None]) -> None:
    """Call `then` once, from another thread, when standard input ends.

    The program that started this process holds the other end of its standard input open. It is closed however that
    program ends, even by SIGKILL. This works on every system, and the crawl has time to finish what is in progress.
    """

    # Not sys.stdin.buffer: a thread that waits in it holds its lock, and the interpreter would abort at exit.
    number = sys.stdin.fileno()

    def wait() -> None:
        while os.read(number, _READ_BYTES):
            pass  # only the end matters
        then()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _stop_quietly(s: Session, running: RunningCrawl) -> None:
    """Stop the crawl without messages: the program that started it has ended."""
    s.quiet = True
    running.stop()


def follow_crawl(s: Session, running: RunningCrawl) -> tuple[CrawlReport, bool]:
    """Run a crawl to its end with progress on stderr; returns its report and whether it was interrupted.

    The first Ctrl-C or SIGTERM finishes and saves what is in progress, the second ends the crawl at once.
    """
    interrupted = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()
        running.stop()
        s.say_at_once("finishing and saving what is in progress; press Ctrl-C again to stop at once")

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with CrawlDisplay(s) as progress:
            for _ in running:
                progress.show(running.report)
            report = running.report()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return report, interrupted.is_set()


def require_contact(s: Session, warehouse: Warehouse, starts: list[str]) -> None:
    """Ask the user for a contact address for the visited sites; the warehouse stores it."""
    check_contact(s.settings.crawl.contact)
    if s.settings.crawl.contact or warehouse.requests.contact or warehouse.requests.is_private(starts):
        return
    if not _can_ask():
        raise _no_contact()
    s.err.print("A URL or mail address at which the sites you visit can reach you: ", end="")
    answer = sys.stdin.readline().strip()
    if not answer:
        raise SettingsError("no contact is given", hint="add --contact you@example.org")
    check_contact(answer)
    warehouse.requests.remember_contact(answer)


def check_contact(contact: str) -> None:
    """Raise `SettingsError` for a contact that is neither a mail address nor a URL. An empty one passes."""
    if not contact or _CONTACT.fullmatch(contact):
        return
    raise SettingsError(
        f"the contact {contact!r} is neither a mail address nor a URL",
        hint=f"did you mean https://{contact} ?"
        if _BARE_HOST.match(contact)
        else "write you@example.org or https://your.site/bot",
    )


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _no_contact() -> SettingsError:
    return SettingsError(
        "no contact is given: the sites you visit must be able to reach you",
        hint="add --contact you@example.org, or contact = … below [crawl] in quadloom.toml",
    )
