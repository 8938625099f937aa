"""Is it the hosts that do not answer, or is this machine's own network down?

If several sites stop answering at the same time, and nobody else answers, the crawl asks the network itself: it opens
connections to addresses that have answered before, and sends nothing. If one of them accepts, the network works and the
failures belong to their hosts. If none does, the network is away. Until it is back nothing is requested, and no failure
counts against a URL or its host: the visits go back to the queue.

A crawl that has not had a single answer has nobody to ask. There the failures of several sites in a row are evidence
enough, because nothing speaks against it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from quadloom.crawling.ingest.messages import NetworkProbed
from quadloom.fetching.unit import HostAddress
from quadloom.model.event import EventKind
from quadloom.model.page import Failure, Page
from quadloom.model.url import host_of, site_of

SITES = 3  # that fail with no answer in between before the network is asked
_NO_ANSWER = frozenset(("dns", "connect", "timeout"))
_PROBES = 4  # addresses asked at a time
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds between two questions to the network


class NetworkWatch:
    """Of the crawl's own thread. `reaches` asks the network (`FetchUnit.reaches`), `send` takes its answer to that
    thread, and `notice` tells people when the network goes and comes.

    `away_since`: monotonic time since which the network is known to be down, None = it works as far as is known.
    `is_doubtful`: nothing should be requested, because the network is away or is being asked.
    """

    def __init__(
        self,
        reaches: Callable[[Sequence[HostAddress]], bool],
        send: Callable[[NetworkProbed], None],
        notice: Callable[[EventKind, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notice = notice
        self._reaches = reaches
        self._send = send
        self._clock = clock
        self._answered: dict[str, tuple[str, str]] = {}  # site → URL and address that answered; the latest last
        self._silent: set[str] = set()  # sites that failed since the last answer
        self._trusted_until = 0.0  # a probe has just shown that the network works
        self._asking = False
        self.is_doubtful = False
        self._pause = _FIRST_PAUSE
        self._ask_at = 0.0
        self.away_since: float | None = None

    @property
    def is_away(self) -> bool:
        return self.away_since is not None

    @property
    def away_for(self) -> float:
        """Seconds; 0 if it works as far as is known."""
        return self._clock() - self.away_since if self.away_since is not None else 0.0

    def answered(self, page: Page | Failure) -> None:
        """A host has answered, with whatever it was."""
        self._silent.clear()
        if page.address:
            site = site_of(host_of(page.url))
            self._answered.pop(site, None)
            self._answered[site] = (page.url, page.address)
            if len(self._answered) > _PROBES:
                del self._answered[next(iter(self._answered))]
        self._back()

    def failed(self, failure: Failure) -> bool:
        """A host has not answered. True if that counts against nobody: the network is away, or is being asked."""
        if failure.kind not in _NO_ANSWER or failure.status or failure.is_unsent:
            return False
        self._silent.add(site_of(host_of(failure.url)))
        enough = min(SITES, len(self._answered) or SITES)
        if not self.is_doubtful and len(self._silent) >= enough and self._clock() >= self._trusted_until:
            self._suspect()
        return self.is_doubtful

    def turn(self) -> None:
        """Ask the network again when its pause is over."""
        if self.is_away and not self._asking and self._clock() >= self._ask_at:
            self._ask()

    def probed(self, answer: NetworkProbed) -> None:
        """A probe has ended."""
        self._asking = False
        self.is_doubtful = self.is_away
        if answer.works:
            self._silent.clear()
            self._trusted_until = self._clock() + _LONGEST_PAUSE
            self._back()
            return
        self._is_away()
        self._ask_at = self._clock() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _suspect(self) -> None:
        if self._answered:
            self._ask()
        else:
            self._is_away()
            self._ask_at = self._clock() + self._pause

    def _ask(self) -> None:
        endpoints = [HostAddress.of(url, address) for url, address in self._answered.values()]
        if not endpoints:  # only a visit can find out: one is allowed now and then
            self._release_one()
            return
        self._asking = self.is_doubtful = True
        threading.Thread(
            target=lambda: self._send(NetworkProbed(self._reaches(endpoints))), name="network probe", daemon=True
        ).start()

    def _release_one(self) -> None:
        """Nobody has answered yet. End the doubt for a moment; the next failures bring it back, with a longer pause."""
        self.away_since, self.is_doubtful = None, False
        self._silent.clear()
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _is_away(self) -> None:
        if self.away_since is None:
            self.away_since, self.is_doubtful = self._clock(), True
            sites = ", ".join(sorted(self._silent)[:SITES])
            self._notice("notice", f"The network seems to be down: nobody answers ({sites}). The crawl waits for it.")

    def _back(self) -> None:
        if self.away_since is not None:
            self._notice("notice", f"The network is back after {self.away_for:.0f} s. No URL has suffered from it.")
        self.away_since, self._pause = None, _FIRST_PAUSE
        self.is_doubtful = self._asking
