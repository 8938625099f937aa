"""Pages that no page links to: an ordinary crawl asks the search of the sites that it reads (paper, section 7).

A host gets its turn when its queue is empty or some dozens of its pages are read: its titles are then known, and their
words are the first queries. Each request is the one that promises the most URLs that the crawl does not know: a further
page of a query, or another word. When none promises enough, the round ends; at the latest `crawl.site_search` requests
end it. What is found is offered to the queue as any link: scope, budgets and the filter of
crawler traps hold.

Rounds run in a thread of their own, as those of watched topics do (`watched_topics`). On a shared database each worker
asks the hosts of its own shards; a round ends when its shard is given back, and the next owner begins another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import msgspec

from quadloom.crawling.topical.access import RequestSequence
from quadloom.crawling.topical.background import BackgroundThread, CrawlAccess, OwnersFrontier, OwnHosts, RoundStopped
from quadloom.crawling.topical.crawl import run_strategy
from quadloom.crawling.topical.polite_access import PoliteAccess
from quadloom.crawling.topical.relevance import Topic
from quadloom.crawling.topical.run import KnownPages, TopicalRun
from quadloom.crawling.topical.search.channels import SearchChannel, open_site, query_channel
from quadloom.crawling.topical.search.queries import top_terms
from quadloom.crawling.topical.search.results import ResultPage
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.topic import begin_until, known_channels, remember_channels
from quadloom.documents.words.written_words import words_of
from quadloom.errors import ShardsLost
from quadloom.model.link import Discovery
from quadloom.model.url import Url, canonical, fingerprint, host_of, resolve
from quadloom.process.clock import unix_time
from quadloom.settings import Settings, length_of
from quadloom.stores.named_values import NamedValues
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import HostRow, ScopeRules

_PAUSE = 0.2  # seconds between two looks for a host
_REST = 5.0  # after a look that found none, at least
_LOOKING = 0.02  # of a thread's time: a look reads all hosts, so that of a large crawl is followed by a longer rest
_ENOUGH_PAGES = 40  # read of a host, to know its words although its queue is not empty
_TITLES = 400
_PAGE_SIZE = 10  # results, until a larger page is seen
_OWN = 12.0  # results of a query after which its own share of new URLs counts as much as that of all
_FEW = 3  # results that a word promises at least
_LEAST_NEW = 0.15  # URLs that a request must promise
_MOST_PAGES = 50  # of one query
_HOSTS = 1000
_GENERAL = "information"  # if no title is known


class SearchedSite(msgspec.Struct, frozen=True):
    """How the last round on a host went. `found`: URLs that the crawl did not know."""

    at: float
    requests: int
    found: int


SEARCHED = NamedValues("site-search:", SearchedSite)


class _KnownSite(msgspec.Struct, frozen=True):
    """A site as the crawl knows it: its home page, titles of pages that were read, and its search, if that is known."""

    home: str
    titles: list[str]
    channel: SearchChannel | None


class _Query(msgspec.Struct):
    """A query and the next of its result pages. `shown`, `new`: results so far; `left`: results that were announced and
    not shown, -1 = not known."""

    term: str
    number: int = 0
    next_url: str = ""
    next_fields: tuple[tuple[str, str], ...] = ()
    shown: int = 0
    new: int = 0
    left: int = -1


class SiteQueries:
    """A strategy for one site: query its search for URLs that `offer` does not know. `offer` returns how many are
    new.

    The next request is the one with the most new URLs to be expected: a further page of a query, or a word that none of
    the queries had. Engines that sort by date or number list known pages first, so a page without anything new does not
    end its query. The titles that no query has shown yet stand for the pages that are still to be found: the next word
    is the one that most of them have.
    """

    name = "site-search"

    def __init__(
        self,
        site: _KnownSite,
        offer: Callable[[Sequence[str]], int],
        random: Random,
        now: float,
    ) -> None:
        self._site = site
        self._offer = offer
        self._nonsense = f"zq{random.getrandbits(40):x}x"
        self._now = now
        self._texts = [(title, "") for title in site.titles]  # of pages that no query has shown
        self._news: list[tuple[str, str]] = []  # results of pages that showed something new
        self._seen: set[str] = set()  # results, by key
        self._asked: set[str] = set()
        self._open: list[_Query] = []
        self._size = _PAGE_SIZE
        self._started = False
        self.channel: SearchChannel | None = None
        self.found = 0

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        if self._started:
            return None
        self._started = True
        return host_of(self._site.home), self._search()

    def waiting(self) -> KnownPages:
        return KnownPages()

    def _search(self) -> RequestSequence[None]:
        first = self._next_term() or _GENERAL
        self._asked.add(first)
        opening = yield from open_site(self._site.home, first, self._nonsense, self._now, self._site.channel)
        channel = self.channel = opening.channel
        if opening.entries:
            self._offer([entry.url for entry in opening.entries])
        if not channel.searchable:
            return
        self._enter(_Query(first), opening.first)
        while (query := self._best()) is not None:
            self._asked.add(query.term)
            page = yield from query_channel(channel, query.term, query.number, query.next_url, query.next_fields)
            self._enter(query, page)

    def _best(self) -> _Query | None:
        """The query whose next page probably shows the most new URLs; None if none is worth a request."""
        shown, new = len(self._seen), self.found
        rate = (new + 1.0) / (shown + 4.0)
        chosen, most = None, _LEAST_NEW
        for query in self._open:
            own = (query.new + _OWN * rate) / (query.shown + _OWN)
            expected = own * (self._size if query.left < 0 else min(query.left, self._size))
            if expected > most:
                chosen, most = query, expected
        having = 0
        if term := self._next_term():
            having = sum(term.lower() in f"{title} {text}".lower() for title, text in self._texts)
        # A word promises the results of all its pages, which the first alone need not show.
        if having and rate * min(self._size, max(having, _FEW)) > most:
            return _Query(term)
        return chosen

    def _enter(self, query: _Query, page: ResultPage | None) -> None:
        """Enter a result page, and keep the query if it may have another."""
        if query in self._open:
            self._open.remove(query)
        if page is None or not page.results:
            return
        results = [result for result in page.results if canonical(result.url) not in self._seen]
        new = self._offer([result.url for result in results]) if results else 0
        self._seen.update(canonical(result.url) for result in results)
        self._size = max(self._size, len(page.results)) if query.number == 0 else self._size
        titles = {_folded(result.title) for result in results}
        self._texts = [pair for pair in self._texts if _folded(pair[0]) not in titles]
        if new:
            self._news = [*self._news, *((result.title, result.snippet) for result in results)][-_TITLES:]
        self.found += new
        query.number += 1
        query.shown += len(page.results)
        query.new += new
        query.left = page.total - query.shown if page.total >= 0 else -1
        query.next_url, query.next_fields = page.next_url, page.next_fields
        repeated = query.number > 1 and not results and not page.next_url  # the same page again
        ended = query.left == 0 or (not page.next_url and self.channel is not None and self.channel.form is not None)
        if not (repeated or ended) and query.number < _MOST_PAGES:
            self._open.append(query)

    def _next_term(self) -> str:
        """The word that most titles have of which no query has shown the page; then those of results."""
        for texts in (self._texts, self._news):
            terms = top_terms(texts[-_TITLES:], set(), limit=len(self._asked) + 1)
            if found := next((term for term in terms if term not in self._asked), ""):
                return found
        return ""


def _folded(title: str) -> str:
    return " ".join(words_of(title))


class SiteSearches:
    """Asks the search of the crawl's hosts, one at a time, from `start` to `close`. `throttle`: within the bandwidth of
    a crawl without an end. The crawl's own thread calls `pending`."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        scope: Callable[[], ScopeRules],
        crawl: CrawlAccess,
        *,
        throttle: bool,
        notice: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = unix_time,
    ) -> None:
        self._stores = stores
        self._settings = settings
        self._admit = crawl.admit
        self._scope = scope
        self._throttled = throttle
        self._notice = notice
        self._clock = clock
        self._again_after = length_of("topic.channel_ttl", settings.topic.channel_ttl)
        self._done: set[str] = set()  # hosts that need no round by this crawl
        self._busy = False
        self._rest = _REST
        self._background = BackgroundThread(crawl, settings.topic.share)

    def start(self, failed: Callable[[BaseException], None]) -> None:
        """Start the thread; it calls `failed` with the exception that ends it."""
        self._background.start("site-search", self._run, failed)

    def close(self) -> None:
        """End the round in progress. The owner must go on taking calls."""
        self._background.stop()

    def join(self) -> None:
        self._background.join()

    def pending(self) -> bool:
        """Whether a round is running or a host waits for one: a crawl with an end does not end before."""
        return not self._background.is_stopping and (self._busy or self._next_host() is not None)

    def _run(self) -> None:
        pause = _PAUSE
        while not self._background.wait(pause):
            with suppress(RoundStopped):  # it goes on if the crawl does
                host = self._background.call(self._begin)
                pause = self._rest if host is None else _PAUSE
                if host is not None:
                    self._attempt(host.host)

    def _begin(self) -> HostRow | None:
        """Choose the next host, in the thread that owns the stores: from then on `pending` is true."""
        host = self._next_host()
        self._busy = host is not None
        return host

    def _next_host(self) -> HostRow | None:
        started, offset = time.monotonic(), 0
        while rows := self._stores.frontier.hosts.rows(limit=_HOSTS, offset=offset, own=True):
            offset += len(rows)
            for row in rows:
                if row.host not in self._done and row.pages and (not row.queued or row.pages >= _ENOUGH_PAGES):
                    if self._is_wanted(row.host):
                        return row
                    self._done.add(row.host)
        self._rest = max(_REST, (time.monotonic() - started) / _LOOKING)
        return None

    def _attempt(self, host: str) -> None:
        """A round; if the host's shard is given back meanwhile, the next owner asks."""
        try:
            self._round(host)
        except ShardsLost:
            self._background.call(self._give_up)

    def _give_up(self) -> None:
        self._busy = False

    def _is_wanted(self, host: str) -> bool:
        last = SEARCHED.get(self._stores.catalog, host)
        if last is not None and self._clock() < last.at + self._again_after:
            return False
        home = self._home(host)
        return home is not None and self._scope().verdict(home, host, 0) is None

    def _home(self, host: str) -> str | None:
        """The home page by the scheme of a page that was read."""
        rows = self._stores.catalog.scan(limit=1, host=host)
        return resolve("/", rows[0].href) if rows else None

    def _round(self, host: str) -> None:
        now, random = self._clock(), Random()
        look = self._stores.state.with_read_connection
        not_before = now - self._again_after
        site = look(lambda catalog: _read_site(catalog, host, not_before))
        strategy = SiteQueries(site, self._offer, random, now)
        run = TopicalRun(Topic("", ""), self._settings.crawl.site_search)
        access = PoliteAccess(
            self._settings,
            OwnersFrontier(self._stores.frontier.hosts, self._background),
            OwnHosts(self._scope(), self._stores.shards),
            lambda _fetched: None,
            throttle=self._background.throttle if self._throttled else lambda: None,
            clock=self._clock,
            random=random,
            begin_until=begin_until(self._stores),
        )
        try:
            run_strategy(strategy, run, access)
        finally:
            access.close()

        def finish() -> None:
            catalog = self._stores.catalog
            remember_channels(catalog, [strategy.channel] if strategy.channel is not None else [])
            with catalog.transaction():
                SEARCHED.put(catalog, host, SearchedSite(self._clock(), run.spent, strategy.found))
            self._done.add(host)
            self._busy = False

        self._background.call(finish)
        if strategy.found:
            self._notice(f"the search of {host} showed {strategy.found} unknown URLs in {run.spent} requests")

    def _offer(self, urls: Sequence[str]) -> int:
        """Queue what is unknown; returns how many."""
        found = [_discovery(href) for url in urls if (href := resolve(url)) is not None]
        return self._background.call(lambda: self._stores.frontier.add(self._admit(found), self._clock()).new)


def _read_site(catalog: Catalog, host: str, not_before: float) -> _KnownSite:
    rows = catalog.scan(limit=_TITLES, host=host)
    home = resolve("/", rows[0].href) if rows else None
    assert home is not None, "only hosts that were read get a round"
    known = known_channels(catalog, [SeedSite(home)], not_before)
    return _KnownSite(home, [row.title for row in rows if row.title], known.get(host))


def _discovery(href: str) -> Discovery:
    url = Url.parse(href)
    key = canonical(href)
    return Discovery(url.href, key, url.host, fingerprint(key), 1, kind="result")
