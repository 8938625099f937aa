"""WebSub (W3C Recommendation of 2018), the subscriber's side: hubs report when a page has changed.

If `subscriptions.websub` is on, Quadloom subscribes at the hub that a page names. For each such topic one small record
in the catalog says what was requested of the hub and what it answered, so everything survives a crash:

::

    offered ──POST──► asked ──hub's GET, challenge echoed──► active ──POST before the lease ends──► asked …
                        └── no verification, an error ──► asked again, after growing pauses
    offer withdrawn, page gone ──POST──► leaving ──hub's GET──► deleted

* The callback's path has 192 random bits, one per topic, and the record is written before the hub is asked: a hub that
  verifies at once finds the callback, and nobody else does.
* A verification is answered only for what was requested, and only for a while after the request (section 5.3).
* Content must carry an HMAC with the topic's own secret (section 7.1). The content itself is not used: it only means
  that the page has changed, and the page is then read as an explicit request, through the usual phases. So a hub can
  cause reads of the page that named it only, at most every `_REREAD_GAP` seconds.
* Requests to hubs go through the guard, one at a time for each hub's host and not before the frontier allows that host.

`HubSubscriptions` belongs to the crawl's own thread; `subscriptions.sender` sends what `due` returns.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from quadloom.documents.extract import seed_discoveries
from quadloom.errors import NothingFound, SettingsError
from quadloom.fetching.politeness import retry_after
from quadloom.fetching.transport import Result
from quadloom.model.document import PushOffer
from quadloom.model.outcome import Outcome, PageRow, Settlement
from quadloom.model.page import Failure
from quadloom.model.page_result import PageResult
from quadloom.model.url import host_of, resolve, site_of
from quadloom.settings import Settings, length_of
from quadloom.settings.sites import rules_for
from quadloom.stores.named_values import NamedValues
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScheduledPage
from quadloom.stores.protocols.settlement import SettleBatch

_VERIFIED_WITHIN = 3600.0  # seconds for a hub to verify; then it is asked again
_RENEWED_AT = 0.8  # of a lease
_SHORTEST, _LONGEST = 60.0, 90 * 86400.0  # bounds of a lease and of its renewal
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 86400.0  # after no answer, or a 5xx
_REFUSED_PAUSE, _LONGEST_REFUSED = 86400.0, 30 * 86400.0  # after a 4xx, or a denial
_UNSUBSCRIBE_ATTEMPTS = 5  # then the lease is left to expire
_REDIRECTS = 3
_REREAD_GAP = 10.0  # seconds between two reads of a page because of pushes
_AWAITED = 60.0  # seconds in which pushes of a page that is to be read write nothing
_PER_SITE = 50  # topics of one site, so that none uses up `subscriptions.websub_topics`
_BATCH = 8  # hubs asked in one turn
# HMAC-SHA1 is not broken as a MAC (RFC 6194, section 3.3), and large hubs send nothing else.
_ALGORITHMS = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


class HubSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription at a hub. Times are unix seconds."""

    id: str
    page: int  # fingerprint of the page that named the hub
    href: str  # of that page
    topic: str
    hub: str
    secret: str
    leaving: bool = False
    next_at: float = 0.0  # when the hub is to be asked
    expects_until: float = 0.0  # until then its verification is answered; 0 = it was not asked
    active_until: float = 0.0
    attempts: int = 0  # requests in a row that the hub has not verified
    hops: int = 0
    moved_to: str = ""  # redirect target of the hub (section 5.1), for this request
    error: str = ""
    pushes: int = 0
    pushed_at: float = 0.0
    requested_at: float = 0.0  # when the page was last requested because of a push

    def state(self, now: float) -> str:
        """The state in one word."""
        if self.leaving:
            return "leaving"
        if self.active_until > now:
            return "active"
        if self.error:
            return "failing"
        return "asked" if self.expects_until > now else "waiting"


TOPICS = NamedValues("websub:", HubSubscription)


class HubRequest(msgspec.Struct, frozen=True):
    id: str
    url: str
    body: bytes


class HubCallback(msgspec.Struct, frozen=True, kw_only=True):
    """Control request `websub`: a GET (`query`) or a POST (`body`, `signature`) to the callback `id`."""

    id: str
    verifies: bool
    query: dict[str, str] = {}
    body: bytes = b""
    signature: str = ""


class HubSubscriptions:
    """All topics, and the requests to their hubs: a `SettleHook`. `token` returns unguessable names."""

    def __init__(
        self,
        catalog: Catalog,
        frontier: Frontier,
        settings: Settings,
        *,
        token: Callable[[], str] = lambda: secrets.token_urlsafe(24),
    ) -> None:
        self._catalog = catalog
        self._frontier = frontier
        self._settings = settings
        self._token = token
        self._callback = callback_base(settings)
        lease = settings.subscriptions.websub_lease
        self._lease = min(max(length_of("subscriptions.websub_lease", lease), _SHORTEST), _LONGEST)
        self._free_at: dict[str, float] = {}
        self._prepared: list[tuple[Settlement, PageResult | None]] = []
        self._awaited: dict[str, float] = {}  # topics whose page is requested because of a push → when it was
        self.topics = {topic.id: topic for topic in read_topics(catalog)}
        self._by_page = {topic.page: topic.id for topic in self.topics.values() if not topic.leaving}
        self._sites = Counter(_site(topic) for topic in self.topics.values())
        if not self._callback:
            for topic in list(self.topics.values()):
                self._forget(topic)  # hubs then get 410 for it

    @property
    def enabled(self) -> bool:
        return bool(self._callback)

    def prepare(self, batch: SettleBatch) -> None:
        if self.enabled:
            results = (item.result for item in batch.visits)
            self._prepared = list(zip(batch.settlements, results, strict=True))

    def write(self, now: float) -> None:
        self.settle(self._prepared, now)

    def committed(self) -> None:
        self._prepared = []

    def settle(self, settled: Iterable[tuple[Settlement, PageResult | None]], now: float) -> None:
        """Note which pages offer pushes and which were pushed meanwhile, in the transaction that settles a batch."""
        if not self.enabled:
            return
        for settlement, result in settled:
            row = settlement.page
            if row is None:
                continue
            is_dead = settlement.outcome is Outcome.GONE and settlement.again_at is None
            if result is not None or is_dead:
                self.update_offer(row, result.push if result is not None else None, now)
            topic = self.topics.get(self._by_page.get(row.fingerprint, ""))
            if topic is not None:
                self._awaited.pop(topic.id, None)
            if topic is not None and topic.pushed_at > row.fetched_at:
                # It changed while it was fetched, so this may be the old version.
                self._frontier.reschedule(
                    [ScheduledPage(row.fingerprint, row.host, max(now, topic.requested_at + _REREAD_GAP))], now
                )

    def update_offer(self, row: PageRow, offer: PushOffer | None, now: float) -> None:
        """A page was read and offers pushes, or (None) offers none, or is permanently gone."""
        topic = self.topics.get(self._by_page.get(row.fingerprint, ""))
        if topic is not None:
            if offer is not None and (offer.topic, offer.hub) == (topic.topic, topic.hub):
                return
            self._leave(topic, now)
        if offer is None or not self._callback or resolve(offer.hub) is None:
            return
        site = site_of(row.host)
        if len(self.topics) >= self._settings.subscriptions.websub_topics or self._sites[site] >= _PER_SITE:
            return
        added = HubSubscription(
            id=self._token(),
            page=row.fingerprint,
            href=row.href,
            topic=offer.topic,
            hub=offer.hub,
            secret=self._token(),
            next_at=now,
        )
        self._by_page[added.page] = added.id
        self._sites[site] += 1
        self._write(added)

    def due(self, now: float) -> list[HubRequest]:
        """Requests to send now; each is stored as asked before it is returned."""
        found: list[HubRequest] = []
        for topic in sorted(self.topics.values(), key=lambda topic: topic.next_at):
            if topic.next_at > now or len(found) == _BATCH:
                break
            if topic.leaving and topic.attempts >= _UNSUBSCRIBE_ATTEMPTS:
                self._forget(topic)
                continue
            url = topic.moved_to or topic.hub
            if self._is_free(host_of(url), now):
                # Any server may answer 200 to a POST and know nothing of hubs.
                pause = min(_VERIFIED_WITHIN * 2.0 ** min(topic.attempts, 20), _LONGEST_PAUSE)
                asked = replace(
                    topic, expects_until=now + _VERIFIED_WITHIN, next_at=now + pause, attempts=topic.attempts + 1
                )
                self._write(asked)
                found.append(HubRequest(topic.id, url, self._form(asked)))
        return found

    def answered(self, id: str, result: Result, now: float) -> None:
        """Process a hub's answer to a request. Only the hub's verification makes a subscription active."""
        topic = self.topics.get(id)
        if topic is None:
            return  # the hub has verified the end meanwhile
        if 200 <= result.status < 300:  # of a failure, too: what follows the status is not used
            self._write(replace(topic, hops=0, moved_to="", error=""))
            return
        target = "" if isinstance(result, Failure) else resolve(result.header("location"), topic.moved_to or topic.hub)
        if result.status in (307, 308) and target and topic.hops < _REDIRECTS:
            attempts = max(topic.attempts - 1, 0)  # the next request belongs to the same one
            self._write(replace(topic, moved_to=target, hops=topic.hops + 1, next_at=now, attempts=attempts))
            return
        self._failed(topic, result, now)

    def verify(self, id: str, query: Mapping[str, str], now: float) -> str:
        """A hub's GET: returns the challenge to echo. Raises `NothingFound` (404) if this was not requested."""
        topic = self._topic(id)
        mode, challenge = query.get("hub.mode", ""), query.get("hub.challenge", "")
        if query.get("hub.topic", "") != topic.topic:
            raise NothingFound("this is not the topic of this callback", hint="")
        if mode == "denied":
            self._denied(topic, query.get("hub.reason", ""), now)
            return ""
        wanted = "unsubscribe" if topic.leaving else "subscribe"
        if mode != wanted or not challenge or topic.expects_until < now:
            raise NothingFound(f"{mode[:20]!r} was not requested", hint="")
        if topic.leaving:
            self._forget(topic)
            return challenge
        lease = _lease(query.get("hub.lease_seconds", ""), self._lease)
        renewal = now + max(_RENEWED_AT * lease, _SHORTEST)
        self._write(
            replace(topic, active_until=now + lease, next_at=renewal, attempts=0, hops=0, moved_to="", error="")
        )
        return challenge

    def receive(self, id: str, body: bytes, signature: str, now: float) -> int | None:
        """A hub's POST: returns the fingerprint of the page that will be read again, None if the message is ignored, as
        with a wrong signature (section 7.1). Raises `NothingFound` (410) if there is no such topic."""
        topic = self._topic(id)
        if topic.active_until < now or not signed(body, signature, topic.secret):
            return None
        (page,) = seed_discoveries([topic.href], kind="published", priority=0)
        requested_at = topic.requested_at
        if now < self._awaited.get(topic.id, -_AWAITED) + _AWAITED:  # it is not settled yet, and will be read anyway
            self.topics[topic.id] = replace(topic, pushes=topic.pushes + 1, pushed_at=now)
            return page.fingerprint
        with self._catalog.transaction():
            if now >= requested_at + _REREAD_GAP:
                requested_at = now
                self._frontier.request([page], now)
            else:
                self._frontier.reschedule([ScheduledPage(page.fingerprint, page.host, requested_at + _REREAD_GAP)], now)
            self._write(replace(topic, pushes=topic.pushes + 1, pushed_at=now, requested_at=requested_at))
        self._awaited[topic.id] = now
        return page.fingerprint

    def _topic(self, id: str) -> HubSubscription:
        topic = self.topics.get(id)
        if topic is None:
            raise NothingFound("there is no subscription at this callback", hint="")
        return topic

    def _form(self, topic: HubSubscription) -> bytes:
        fields = {
            "hub.callback": f"{self._callback}/websub/{topic.id}",
            "hub.mode": "unsubscribe" if topic.leaving else "subscribe",
            "hub.topic": topic.topic,
        }
        if not topic.leaving:
            fields |= {"hub.lease_seconds": str(int(self._lease)), "hub.secret": topic.secret}
        return urlencode(fields).encode()

    def _is_free(self, host: str, now: float) -> bool:
        """Whether politeness allows a request to this host now; if so, it counts as made."""
        if self._free_at.get(host, 0.0) > now:
            return False
        row = self._frontier.hosts.get(host)
        if row is not None and max(row.next_at, row.blocked_until) > now:
            return False
        self._free_at[host] = now + rules_for(host, self._settings).delay
        return True

    def _failed(self, topic: HubSubscription, result: Result, now: float) -> None:
        if topic.leaving and topic.attempts >= _UNSUBSCRIBE_ATTEMPTS:
            self._forget(topic)
            return
        error = result.message if isinstance(result, Failure) else f"HTTP {result.status}"
        refused = 300 <= result.status < 500 and result.status not in (408, 425, 429)
        refused = refused or (isinstance(result, Failure) and not result.transient)
        first, longest = (_REFUSED_PAUSE, _LONGEST_REFUSED) if refused else (_FIRST_PAUSE, _LONGEST_PAUSE)
        wanted = result.retry_after if isinstance(result, Failure) else retry_after(result.header("retry-after"), now)
        before = min(max(topic.attempts - 1, 0), 20)  # a hub may have verified before it answers
        pause = min(max(first * 2.0**before, wanted or 0.0), longest)
        self._write(replace(topic, hops=0, moved_to="", error=error[:500], next_at=now + pause))

    def _denied(self, topic: HubSubscription, reason: str, now: float) -> None:
        if topic.leaving:
            self._forget(topic)
            return
        error = f"denied: {reason[:200]}" if reason else "denied"
        self._write(replace(topic, active_until=0.0, expects_until=0.0, error=error, next_at=now + _LONGEST_REFUSED))

    def _leave(self, topic: HubSubscription, now: float) -> None:
        self._by_page.pop(topic.page, None)
        if topic.active_until > now or topic.expects_until > now:
            self._write(replace(topic, leaving=True, next_at=now, expects_until=0.0, attempts=0, error=""))
        else:
            self._forget(topic)

    def _write(self, topic: HubSubscription) -> None:
        self.topics[topic.id] = topic
        TOPICS.put(self._catalog, topic.id, topic)

    def _forget(self, topic: HubSubscription) -> None:
        del self.topics[topic.id]
        self._awaited.pop(topic.id, None)
        self._sites[_site(topic)] -= 1
        if self._by_page.get(topic.page) == topic.id:
            del self._by_page[topic.page]
        TOPICS.put(self._catalog, topic.id, None)


def read_topics(catalog: Catalog) -> list[HubSubscription]:
    return [topic for _, topic in TOPICS.items(catalog)]


def read_topic(catalog: Catalog, id: str) -> HubSubscription | None:
    return TOPICS.get(catalog, id)


def callback_base(settings: Settings) -> str:
    """The URL below which callbacks are; empty = WebSub is off. Raises `SettingsError` if hubs could not reach it."""
    if not settings.subscriptions.websub:
        return ""
    if resolve(settings.web.public_url) is None:
        raise SettingsError(
            "subscriptions.websub needs the URL at which hubs can reach this site",
            hint='set web.public_url, such as "https://data.example/", and run `quadloom serve --crawl`',
        )
    return settings.web.public_url.rstrip("/")


def signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether a signature (`method=hexdigest`) is right; compared in constant time."""
    method, _, digest = signature.partition("=")
    algorithm = _ALGORITHMS.get(method.strip().lower())
    if algorithm is None or not secret:
        return False
    expected = hmac.new(secret.encode(), body, algorithm).hexdigest()
    return hmac.compare_digest(expected.encode(), digest.strip().lower().encode())


def _site(topic: HubSubscription) -> str:
    return site_of(host_of(topic.href))


def _lease(text: str, asked: float) -> float:
    """The lease that the hub grants, within bounds; if it is missing or unreadable, the one that was requested."""
    granted = float(text) if text.isascii() and text.isdigit() and len(text) < 12 else asked
    return min(max(granted, _SHORTEST), _LONGEST)
