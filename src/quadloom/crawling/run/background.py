"""What asks hosts beside the queue while a crawl runs, each in a thread of its own: rounds of watched topics, if the
crawl has no end, and site searches, if `crawl.site_search` is set.

What they fetch is settled by the crawl, and what they ask counts against its bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from quadloom.crawling.ingest.inbox import Inbox
from quadloom.crawling.ingest.traps.filter import TrapFilter
from quadloom.crawling.run.loop import Crawl
from quadloom.model.link import Discovery
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.scope import Scope
from quadloom.settings import Settings
from quadloom.stores.opened import Stores

if TYPE_CHECKING:  # few crawls have to do with topics and searches, and their modules are many
    from quadloom.crawling.topical.polite_access import FetchedPage
    from quadloom.crawling.topical.site_search import SiteSearches
    from quadloom.crawling.topical.watched_topics import TopicRounds

T = TypeVar("T")


class BackgroundAccess:
    """What the threads need of the crawl."""

    def __init__(
        self,
        crawl: Crawl,
        scheduler: RefreshScheduler,
        traps: TrapFilter,
        stores: Stores,
        inbox: Inbox,
    ) -> None:
        self._crawl = crawl
        self._scheduler = scheduler
        self._traps = traps
        self._catalog = stores.catalog
        self._inbox = inbox

    def call(self, action: Callable[[], T]) -> T:
        return self._inbox.call(action)

    def take(self, fetched: FetchedPage) -> None:
        from quadloom.crawling.topical.topic import as_known

        self._crawl.take(as_known(fetched.visit, self._catalog), fetched.result, fetched.pace)

    def admit(self, found: Sequence[Discovery]) -> Sequence[Discovery]:
        return self._scheduler.predictor.prioritize(self._traps.admit(found), from_data=False)

    def charge(self, requests: int) -> None:
        self._crawl.charge(requests)

    def bandwidth(self) -> float:
        return 0.0 if self._crawl.paused else self._scheduler.shares.bandwidth

    def notice(self, text: str) -> None:
        """From a thread other than the crawl's."""
        self._inbox.event("notice", text)


class BackgroundRounds:
    """The threads of one crawl, or none if its settings ask for none. `forever`: of a crawl without an end."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        scope: Callable[[], Scope],
        access: BackgroundAccess,
        *,
        forever: bool,
        clock: Callable[[], float],
    ) -> None:
        self._rounds: list[TopicRounds | SiteSearches] = []
        self._searches: SiteSearches | None = None
        if forever:
            from quadloom.crawling.topical.watched_topics import TopicRounds

            self._rounds.append(TopicRounds(stores, settings, access, notice=access.notice, clock=clock))
        if settings.crawl.site_search:
            from quadloom.crawling.topical.site_search import SiteSearches

            self._searches = SiteSearches(
                stores, settings, scope, access, throttle=forever, notice=access.notice, clock=clock
            )
            self._rounds.append(self._searches)

    def start(self, failed: Callable[[BaseException], None]) -> None:
        for rounds in self._rounds:
            rounds.start(failed)

    def stop(self) -> None:
        """Begin nothing more. Returns at once."""
        for rounds in self._rounds:
            rounds.close()

    def join(self) -> None:
        """Return when all threads have ended."""
        for rounds in self._rounds:
            rounds.join()

    def pending(self) -> bool:
        """Some search is in progress or still to be asked; it may find pages."""
        return self._searches is not None and self._searches.pending()
