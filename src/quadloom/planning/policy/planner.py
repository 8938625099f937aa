"""When a page is read again: one object without I/O that the crawl calls at every settlement.

`settle` takes the observation of a visit and the stored `PageSchedule` of the page (about 90 bytes). It returns the new
`PageSchedule` and the time of the next visit. Nothing is scanned: the prior of the site, the trust in the dates of the
host, the demand of all pages and the load of the host are sums, in which the old term of the page is replaced by the
new one, as the paper does with S. Every few hundred settlements the demand gives a new price of a read. The period of a
page is the time after which reading it is worth that price.

If the pages of a host could want more reads than politeness allows, the host has its own demand and its own price, and
the higher of the two prices holds for its pages: the optimum under a limit for each host.

`scheduling.facts` gives every number with the rule behind it, for `quadloom why`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from quadloom.model.outcome import READ_OUTCOMES, Outcome
from quadloom.planning.policy.change_rate import (
    NO_EVIDENCE,
    ChangeRate,
    Estimate,
    Prior,
    SitePrior,
    estimates_of,
    prior_estimate,
)
from quadloom.planning.policy.demand import Demand, ExpectedFreshness, Market, Place, Price, place
from quadloom.planning.policy.objectives import Policy, ideal_period
from quadloom.planning.policy.page_row import PageSchedule as PageSchedule
from quadloom.planning.policy.rhythms import StatedEstimate, StatedRhythms, Sums
from quadloom.planning.policy.trust import Trust, announced_age
from quadloom.settings import FreshnessSettings, length_of

# A date from the last fiftieth of a gap proves nothing: a server that stamps its responses always gives such a date,
# and if a page changes at every visit, its content cannot show the difference.
_STAMPED_PART = 0.02
_HOST_PART = 0.5  # share of the polite capacity of a host for refresh; the rest is for discovery


_UNKNOWN = PageSchedule()


class VisitObservation(msgspec.Struct, frozen=True):
    """What a visit says about its page. Times are unix seconds, 0 = unknown.

    `modified_at`: Last-Modified. `announced_at`: sitemap lastmod or feed. `host_delay`: seconds between polite
    requests to the host. `weight`: from the last ranking, None = as before. `pushed`: the page was visited because an
    authorised sender had reported a change. `patience`: how many times longer than others a page may be gone before it
    is dead. `rhythm`: seconds between changes that the owner states, 0 = as before.
    """

    host: str
    site: str
    outcome: Outcome
    fetched_at: float
    previous_at: float = 0.0
    modified_at: float = 0.0
    announced_at: float = 0.0
    host_delay: float = 0.0
    weight: float | None = None
    pushed: bool = False
    patience: float = 1.0
    rhythm: float = 0.0


class Decision(msgspec.Struct, frozen=True):
    """`again_at`: next visit, None = the page is dead. `schedule`: to be stored with the page."""

    schedule: PageSchedule
    again_at: float | None


class _Read(NamedTuple):
    """A visit that read its page, and what it says about the page's change rate. `rate`: the encoded `ChangeRate`.
    `was`, `now`: where the page is counted, None = it is not."""

    seen: VisitObservation
    old: PageSchedule
    rate: bytes
    estimate: Estimate
    changes: float
    weight: float
    rhythm: float
    was: Place | None
    now: Place


class PlannerState(msgspec.Struct, frozen=True):
    """All sums, stored in the catalog for a restart."""

    sites: dict[str, tuple[float, float, float]]
    trusts: dict[str, bytes]
    hosts: dict[str, tuple[int, list[tuple[int, int, float, float, float]] | None]]
    demand: list[tuple[int, int, float, float, float]]
    rhythms: dict[str, Sums] = {}


class Planner:
    """Holds sums over all pages, but no pages. `bandwidth`: reads per second for refresh."""

    def __init__(self, freshness: FreshnessSettings, bandwidth: float, state: PlannerState | None = None) -> None:
        self.policy: Policy = freshness.policy
        self.alpha = freshness.alpha
        self.min_interval = length_of("freshness.min_interval", freshness.min_interval, 1e-3)
        self.max_interval = length_of("freshness.max_interval", freshness.max_interval, self.min_interval)
        self.dead_after = freshness.dead_after
        self.dead_span = length_of("freshness.dead_span", freshness.dead_span)
        self.dead_retry = length_of("freshness.dead_retry", freshness.dead_retry, self.min_interval)
        self.world = Prior.around(length_of("freshness.prior_interval", freshness.prior_interval, 1.0))
        self._bandwidth = bandwidth
        self._sites: dict[str, SitePrior] = {}
        self._trusts: dict[str, Trust] = {}
        self.rhythms = StatedRhythms(state.rhythms if state is not None else None)
        self._hosts: dict[str, Market] = {}
        self.demand = Demand()
        if state is not None:
            self._sites = {site: SitePrior(self.world, *sums) for site, sums in state.sites.items()}
            self._trusts = {name: Trust.decode(data) for name, data in state.trusts.items()}
            self._hosts = {
                host: Market(pages, None if cells is None else Demand(cells))
                for host, (pages, cells) in state.hosts.items()
            }
            self.demand = Demand(state.demand)
        self._market = Market(self.demand.pages, self.demand)

    @property
    def bandwidth(self) -> float:
        return self._bandwidth

    @bandwidth.setter
    def bandwidth(self, value: float) -> None:
        """Reads per second for refresh; see `BandwidthShares.refresh_bandwidth`. Takes effect at once."""
        self._bandwidth = value
        self._market.priced_pages = -1.0

    def set_policy(self, policy: Policy, alpha: float = 0.95) -> None:
        """Change the objective, from the next settlement on; `replan` is for the pages in between."""
        self.policy, self.alpha = policy, alpha
        for market in (self._market, *self._hosts.values()):
            market.priced_pages = -1.0

    @property
    def price(self) -> Price:
        """The current price of a read."""
        self._market.pages = self.demand.pages
        return self._priced(self._market, self._bandwidth)

    def expected(self) -> ExpectedFreshness | None:
        """How fresh the pages are expected to be under the present bandwidth; None = there are none."""
        return self.demand.expected(self.price, self.policy, alpha=self.alpha, min_interval=self.min_interval)

    def settle(self, seen: VisitObservation, before: PageSchedule | None) -> Decision:
        """Learn from a visit and decide when to visit the page again."""
        return self.settle_all([(seen, before)])[0]

    def settle_all(self, visits: Sequence[tuple[VisitObservation, PageSchedule | None]]) -> list[Decision]:
        """The same for visits of different pages, which are counted together, before the price is looked up."""
        reads = self._estimated(
            [(seen, before or _UNKNOWN) for seen, before in visits if seen.outcome in READ_OUTCOMES]
        )
        self._count(reads)
        price = self.price
        planned = iter([self._planned(read, price) for read in reads])
        decisions = []
        for seen, before in visits:
            if seen.outcome in READ_OUTCOMES:
                decisions.append(next(planned))
            elif seen.outcome is Outcome.GONE:
                decisions.append(self._settle_gone(seen, before or _UNKNOWN))
            else:
                # A failure says nothing about change. The frontier retries by itself; this is the visit after that.
                old = before or _UNKNOWN
                decisions.append(Decision(old, seen.fetched_at + (old.period or self.max_interval)))
        return decisions

    def _estimated(self, visits: Sequence[tuple[VisitObservation, PageSchedule]]) -> list[_Read]:
        """The change rates of these pages. Those with evidence are estimated together: the expensive part."""
        priors: dict[str, Prior] = {}
        observed: list[ChangeRate] = []
        pairs: list[tuple[Prior, ChangeRate | None]] = []
        for seen, old in visits:
            prior = priors.get(seen.site)
            if prior is None:
                prior = priors[seen.site] = self._sites.setdefault(seen.site, SitePrior(self.world)).prior()
            rhythm = seen.rhythm or old.rhythm
            if rhythm:
                prior = self.rhythms.prior(seen.site, rhythm, prior)
            rate = None
            is_dated = seen.modified_at and self.believes(seen.host, "last-modified")
            if seen.outcome is not Outcome.NEW or is_dated or len(old.rate) > len(NO_EVIDENCE):
                rate = ChangeRate.decode(old.rate, prior)
                self._observe(rate, seen)
                observed.append(rate)
            pairs.append((prior, rate))
        estimates = iter(estimates_of(observed))
        reads = []
        for (seen, old), (prior, rate) in zip(visits, pairs, strict=True):
            estimate = prior_estimate(prior) if rate is None else next(estimates)
            changes = estimate.for_policy(self.policy)
            weight = old.weight if seen.weight is None else seen.weight
            encoded = NO_EVIDENCE if rate is None else rate.encode()
            was = place(old.weight, old.changes_per_second) if old.period else None
            rhythm = seen.rhythm or old.rhythm
            reads.append(_Read(seen, old, encoded, estimate, changes, weight, rhythm, was, place(weight, changes)))
        return reads

    def _count(self, reads: Sequence[_Read]) -> None:
        """Replace what the pages add to the sums of their sites, and to the demand."""
        for read in reads:
            known = _known_estimate(read.old) if read.old.period else None
            self._sites[read.seen.site].replace(known.estimate if known else None, read.estimate)
            if read.rhythm or (known and known.rhythm):
                self.rhythms.replace(read.seen.site, known, StatedEstimate(read.estimate, read.rhythm))
        self.demand.replace(*[(read.was, read.now) for read in reads])
        self._market.since += len(reads)

    def _planned(self, read: _Read, price: Price) -> Decision:
        """Count the page on its host, and plan the next visit."""
        seen = read.seen
        host = self._hosts.get(seen.host)
        if host is None:
            host = self._hosts[seen.host] = Market()
        host.delay = seen.host_delay
        counted = self._count_on_host(host, read.was, read.old.host_counted, read.now, seen.host_delay)
        period = self._period(
            read.weight, read.changes, price, self._host_price(host, seen.host_delay) if counted else None
        )
        estimate = read.estimate
        schedule = PageSchedule(
            read.rate,
            read.weight,
            read.changes,
            estimate.log_mean,
            estimate.log_variance,
            period,
            host_counted=counted,
            rhythm=read.rhythm,
        )
        return Decision(schedule, seen.fetched_at + period)

    def forget(self, host: str, site: str, schedule: PageSchedule) -> None:
        """Remove a page from all sums, because it is dead or out of scope."""
        known = _known_estimate(schedule)
        if known is None:
            return
        was = _place_of(schedule)
        self.demand.replace((was, None))
        if site in self._sites:  # otherwise another worker read the site
            self._sites[site].replace(known.estimate, None)
        self.rhythms.replace(site, known, None)
        market = self._hosts.get(host)
        if market is not None:
            market.pages -= 1
            if market.demand is not None and schedule.host_counted:
                market.demand.replace((was, None))

    def recount(self, host: str, site: str, schedule: PageSchedule) -> None:
        """Add a stored page to all sums, the inverse of `forget`: for a start after a crash."""
        known = _known_estimate(schedule)
        if known is None:
            return
        where = _place_of(schedule)
        self.demand.replace((None, where))
        self._sites.setdefault(site, SitePrior(self.world)).replace(None, known.estimate)
        self.rhythms.replace(site, None, known)
        market = self._hosts.setdefault(host, Market())
        market.pages += 1
        if schedule.host_counted:
            market.demand = market.demand or Demand()
            market.demand.replace((None, where))

    def reweigh(
        self, host: str, schedule: PageSchedule, weight: float, last_at: float, host_delay: float = 0.0
    ) -> Decision:
        """Reschedule a page whose weight changed by a new ranking (equation (6) must follow w as well as λ)."""
        if not schedule.period:
            return Decision(msgspec.structs.replace(schedule, weight=weight), None)
        rate = schedule.changes_per_second
        was, now = _place_of(schedule), place(weight, rate)
        self.demand.replace((was, now))
        self._market.since += 1
        market = self._hosts.get(host) or Market(1)
        host_delay = max(host_delay, market.delay)
        counted = self._count_on_host(market, was, schedule.host_counted, now, host_delay)
        period = self._period(weight, rate, self.price, self._host_price(market, host_delay))
        changed = msgspec.structs.replace(schedule, weight=weight, period=period, host_counted=counted)
        return Decision(changed, last_at + period)

    def replan(
        self, host: str, site: str, schedule: PageSchedule, last_at: float, host_delay: float = 0.0
    ) -> PageSchedule:
        """The schedule of a page that is there, as a visit at `last_at` would make it now: after a change of policy,
        bandwidth or shares."""
        if not schedule.period:
            return schedule
        market = self._hosts.get(host)
        delay = max(host_delay, market.delay) if market is not None else host_delay
        seen = VisitObservation(host, site, Outcome.UNCHANGED, last_at, host_delay=delay)
        return self.settle(seen, schedule).schedule

    def period(self, weight: float, rate: float) -> float:
        """Time after which a read of a page is worth the price, within the bounds."""
        return self._period(weight, rate, self.price, None)

    def _period(self, weight: float, rate: float, price: Price, host_price: Price | None) -> float:
        """The same, with the price of the host if that is higher."""
        highest, slowest = price.price, price.slowest
        if host_price is not None:
            highest, slowest = max(highest, host_price.price), max(slowest, host_price.slowest)
        if highest == 0.0:
            return self.min_interval
        if math.isinf(slowest):
            return self.max_interval  # no bandwidth for refresh: planned for the day on which there is some
        ideal = ideal_period(self.policy, weight, rate, highest, self.alpha)
        return min(max(ideal, self.min_interval), max(slowest, self.min_interval))

    def trust(self, host: str, source: str = "last-modified") -> Trust:
        """Evidence about the Last-Modified headers of a host, or its announcements ("announced")."""
        key = f"{source} {host}"
        if key not in self._trusts:
            self._trusts[key] = Trust()
        return self._trusts[key]

    def prior_of(self, site: str, rhythm: float = 0.0) -> Prior:
        """What is expected of a page of the site about which nothing is known but the `rhythm` that its owner
        states."""
        own = self._sites[site].prior() if site in self._sites else self.world
        return self.rhythms.prior(site, rhythm, own) if rhythm else own

    def honesty(self, site: str) -> float:
        """How far what the site states about rhythms can be believed, from 0 to 1."""
        return self.rhythms.honesty(site, self.prior_of(site))

    def market_of(self, host: str) -> Market:
        return self._hosts.get(host, Market())

    def dump(self) -> PlannerState:
        """All sums, to be stored; the constructor takes them back."""
        return PlannerState(
            sites={name: (site.pages, site.total, site.squares) for name, site in self._sites.items()},
            trusts={name: trust.encode() for name, trust in self._trusts.items()},
            hosts={
                name: (market.pages, None if market.demand is None else market.demand.dump())
                for name, market in self._hosts.items()
            },
            demand=self.demand.dump(),
            rhythms=self.rhythms.dump(),
        )

    def _observe(self, rate: ChangeRate, seen: VisitObservation) -> None:
        """Add the evidence of one visit, with the date of the change if a trusted source gives it."""
        if seen.outcome is Outcome.NEW or not 0.0 < seen.previous_at < seen.fetched_at:  # after it: a clock was ahead
            if self.believes(seen.host, "last-modified") and 0.0 < seen.modified_at < seen.fetched_at:
                rate.observe(math.inf, True, seen.fetched_at - seen.modified_at)
            return
        changed = seen.outcome is Outcome.CHANGED
        gap = seen.fetched_at - seen.previous_at
        if seen.pushed:
            # A sender that reports one change would have reported an earlier one, so the whole gap was quiet: λe^−λτ.
            # As a change of age 0 it would suggest that the page changes all the time, since it is read on each change.
            rate.observe(gap, changed, math.nextafter(gap, 0.0) if changed else None)
            return
        age: float | None = None
        for source, date in (("last-modified", seen.modified_at), ("announced", seen.announced_at)):
            if date > 0.0:
                announced = announced_age(date, seen.fetched_at, seen.previous_at)
                if age is None and announced is not None and self.believes(seen.host, source):
                    age = announced
                proof = announced is not None and announced > _STAMPED_PART * gap
                self.trust(seen.host, source).observe(changed=changed, announced=proof)
        rate.observe(gap, changed, age)

    def believes(self, host: str, source: str) -> bool:
        trust = self._trusts.get(f"{source} {host}")
        return trust is not None and trust.trusted

    def _settle_gone(self, seen: VisitObservation, old: PageSchedule) -> Decision:
        """Death needs both a number of visits and a span: a server may answer 404 for a whole night of maintenance."""
        gone = old.gone + 1
        since = old.gone_since or seen.fetched_at
        span = self.dead_span * seen.patience
        never_read = not old.rate and seen.patience == 1.0  # a broken link, most likely: it is looked at once more
        if gone >= (min(self.dead_after, 2) if never_read else self.dead_after) and seen.fetched_at - since >= span:
            self.forget(seen.host, seen.site, old)
            dead = msgspec.structs.replace(old, gone=gone, gone_since=since, period=0.0, dead=True)
            return Decision(dead, None)
        pause = max(span, self.min_interval) if never_read else self.gone_pause(gone)
        return Decision(msgspec.structs.replace(old, gone=gone, gone_since=since), seen.fetched_at + pause)

    def gone_pause(self, gone: int) -> float:
        """Seconds until a page that was gone `gone` times in a row is visited again. The pause doubles: a page that is
        really gone costs little, and one that is back is noticed soon."""
        return min(self.min_interval * 2.0 ** min(gone, 60), self.max_interval)

    def _count_on_host(self, market: Market, was: Place | None, counted: bool, now: Place, delay: float) -> bool:
        """Replace the page in the demand of its host; True = it is counted there now."""
        market.pages += was is None
        market.since += 1
        if market.demand is None:
            if delay <= 0.0 or market.pages / self.min_interval <= _HOST_PART / delay:
                return False  # reading every page at the shortest interval would still be polite
            market.demand = Demand()
        market.demand.replace((was if counted else None, now))
        return True

    def _host_price(self, market: Market, delay: float) -> Price | None:
        if market.demand is None or delay <= 0.0:
            return None
        # Pages read before the host was large enough to be counted are added at their next visit. Until then, the
        # counted pages get their share of the capacity of the host.
        part = market.demand.pages / max(market.pages, 1)
        return self._priced(market, _HOST_PART / delay * min(part, 1.0))

    def _priced(self, market: Market, bandwidth: float) -> Price:
        if market.demand is not None and market.stale():
            market.since, market.priced_pages = 0, float(market.pages)
            market.price = market.demand.price(
                bandwidth,
                self.policy,
                alpha=self.alpha,
                min_interval=self.min_interval,
                max_interval=self.max_interval,
                guess=market.price.price,
            )
        return market.price


def _place_of(schedule: PageSchedule) -> Place | None:
    """The position at which the page is counted; None = it is not scheduled."""
    return place(schedule.weight, schedule.changes_per_second) if schedule.period else None


def _known_estimate(schedule: PageSchedule) -> StatedEstimate | None:
    """The estimate with which the page is counted; None = it is not scheduled."""
    if not schedule.period:
        return None
    estimate = Estimate(schedule.changes_per_second, schedule.log_mean, schedule.log_variance)
    return StatedEstimate(estimate, schedule.rhythm)
