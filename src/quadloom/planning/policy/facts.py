"""Every number behind the next visit of a page, with the rule that gives it, for `quadloom why`."""

from __future__ import annotations

import math
from typing import NamedTuple

from quadloom.model.outcome import READ_OUTCOMES, Outcome, PageRow
from quadloom.model.timestamps import readable_time
from quadloom.model.url import site_of
from quadloom.model.wire import decode
from quadloom.planning.policy.change_rate import ChangeRate
from quadloom.planning.policy.objectives import ideal_period
from quadloom.planning.policy.page_row import PageSchedule, PageScheduleRow
from quadloom.planning.policy.planner import Planner


class ScheduleFact(NamedTuple):
    """One number behind the schedule of a page, and the rule that gives it."""

    what: str
    value: str
    rule: str


def schedule_facts(planner: Planner, row: PageRow) -> list[ScheduleFact]:
    """The facts about a page that is scheduled (`row.schedule` is not empty); the last is its next visit."""
    stored = decode(row.schedule, PageScheduleRow)
    return [
        *_change_facts(planner, stored.plan, row.host),
        *_price_facts(planner, stored.plan, row.host),
        _gone(planner, stored.plan),
        _next_visit(planner, row, stored),
    ]


def _change_facts(planner: Planner, schedule: PageSchedule, host: str) -> list[ScheduleFact]:
    """What the page is worth, and how often it is thought to change."""
    site = site_of(host)
    prior = planner.prior_of(site, schedule.rhythm)
    rate = ChangeRate.decode(schedule.rate, prior)
    low, high = rate.interval(0.8)
    honesty = planner.honesty(site) if schedule.rhythm else 0.0
    trusted = [source for source in ("last-modified", "announced") if planner.believes(host, source)]
    return [
        ScheduleFact(
            "weight", f"{schedule.weight:.4g}", "importance or usefulness over its mean, χ between kinds, promotion"
        ),
        ScheduleFact(
            "comparisons",
            f"{rate.visits}, {rate.changes} with a change",
            "reads compared with the read before; a change is a new graph or main text",
        ),
        ScheduleFact(
            "site's prior",
            f"a change every {_span(math.exp(-prior.centre))} ×/÷ e^{prior.spread:.2g}",
            "log-normal, learned from the site's pages" + (", and from the stated rhythm" if honesty else ""),
        ),
        ScheduleFact(
            "stated rhythm",
            f"every {_span(schedule.rhythm)}, honesty {honesty:.2g}" if schedule.rhythm else "none",
            "by the owner (changefreq, revisit-after, ttl, publication); honesty: how far visits confirm it",
        ),
        ScheduleFact("dates believed", ", ".join(trusted) or "none", "lower tenth of precision and recall ≥ 0.7"),
        ScheduleFact(
            "change rate",
            f"every {_span(1.0 / rate.mean)}, between {_span(1.0 / high)} and {_span(1.0 / low)}",
            "posterior mean and 80 % interval",
        ),
    ]


def _price_facts(planner: Planner, schedule: PageSchedule, host: str) -> list[ScheduleFact]:
    """What a read costs, and the period that follows from it."""
    price, market = planner.price, planner.market_of(host)
    rate = ChangeRate.decode(schedule.rate, planner.prior_of(site_of(host), schedule.rhythm))
    changes = rate.estimate().for_policy(planner.policy)
    ideal = ideal_period(planner.policy, schedule.weight, changes, max(price.price, 1e-300), planner.alpha)
    return [
        ScheduleFact(
            "refresh bandwidth",
            f"{planner.bandwidth:.4g} reads/s for {planner.demand.pages} pages",
            "bandwidth less the shares that discovery uses",
        ),
        ScheduleFact("demand S", f"{planner.demand.s(planner.alpha):.4g}", "Σ (w λ^α)^(1/(α+1)) over all pages"),
        ScheduleFact("price of a read", f"{price.price:.4g}", "Σ reads of all pages = bandwidth"),
        ScheduleFact(
            "ideal period",
            _span(ideal) if price.price else "the shortest",
            f"policy {planner.policy}: value of a read reaches the price",
        ),
        ScheduleFact(
            "host's price",
            "none" if market.demand is None else f"{market.price.price:.4g}",
            f"the higher price holds, so that its {market.pages} pages stay within politeness",
        ),
        ScheduleFact(
            "period",
            _span(schedule.period) if schedule.period else "none",
            f"between {_span(planner.min_interval)} and {_span(price.slowest)}",
        ),
    ]


def _gone(planner: Planner, schedule: PageSchedule) -> ScheduleFact:
    since = f", since {readable_time(schedule.gone_since)}" if schedule.gone_since else ""
    return ScheduleFact(
        "gone",
        f"{schedule.gone} in a row{since}",
        f"dead after {planner.dead_after} visits in a row over at least {_span(planner.dead_span)}; four times as"
        " long for seeds, subscribed and important pages",
    )


def _next_visit(planner: Planner, row: PageRow, stored: PageScheduleRow) -> ScheduleFact:
    def fact(value: str, rule: str) -> ScheduleFact:
        return ScheduleFact("next visit", value, rule)

    if stored.parked:
        return fact("none", "outside the scope: not planned, and not part of the demand")
    if stored.is_dead:
        return fact(
            f"not before {readable_time(row.fetched_at + planner.dead_retry)}",
            "dead: requested once more after freshness.dead_retry, or when a new page links to it",
        )
    if row.outcome is Outcome.GONE and stored.plan.rate:
        again = row.fetched_at + planner.gone_pause(stored.plan.gone)
        return fact(readable_time(again), "was gone: last visit + a pause that doubles each time")
    if row.outcome not in READ_OUTCOMES:
        return fact("see `due in`", "the last visit did not read the page, so the queue has the time of the next try")
    due = stored.next_visit
    return fact("none" if due is None else readable_time(due), "last read + period")


def _span(duration: float) -> str:
    """A duration for people, such as `3.2 d`."""
    if math.isinf(duration):
        return "never"
    for unit, length in (("y", 31_557_600.0), ("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if duration >= length:
            return f"{duration / length:.3g} {unit}"
    return f"{duration:.3g} s"
