"""The contract of `Frontier`, with a simulated clock."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pytest
from contract_backends import State
from contract_records import found, links, settlement
from msgspec.structs import replace

from quadloom.model.outcome import HostPace, Outcome
from quadloom.model.visit import Visit
from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.policy import FrontierPolicy, HostException
from quadloom.stores.protocols.frontier import FIRST_PLACE, AddReport, Frontier, HostRow, Place, Quota, ScheduledPage

FREE = FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=1000)


class OnlyHosts:
    """A scope for tests."""

    def __init__(self, *hosts: str) -> None:
        self.hosts = hosts

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        return None if host in self.hosts else "host is not listed"


def drain(frontier: Frontier, now: float = 0.0) -> list[Visit]:
    """Lease and settle until nothing is left; the visits in order."""
    visits: list[Visit] = []
    while batch := frontier.lease(10, now):
        visits += batch
        frontier.settle([settlement(visit) for visit in batch], now)
    return visits


def test_each_url_is_leased_to_one_worker(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add(links("a.example", 50), 0.0)
    visits = frontier.lease(30, 0.0) + frontier.lease(30, 0.0)
    assert len(visits) == 50
    assert len({visit.fingerprint for visit in visits}) == 50
    assert frontier.lease(10, 0.0) == []
    assert frontier.next_due(0.0) is None


def test_add_is_idempotent_and_counts(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    offered = links("a.example", 10)
    assert frontier.add([*offered, offered[0]], 0.0) == AddReport(10, 1, 0)
    assert frontier.add(offered, 0.0) == AddReport(0, 10, 0)
    assert frontier.stats(0.0).queued == 10
    assert frontier.stats(0.0).total == 10


def test_settling_twice_is_harmless(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add(links("a.example", 3), 0.0)
    (visit,) = frontier.lease(1, 0.0)
    done = settlement(visit, discoveries=tuple(links("b.example", 4)), cost=2.0)
    frontier.settle([done, done], 1.0)
    frontier.settle([done], 2.0)
    row = frontier.hosts.get("a.example")
    assert row is not None
    assert (row.pages, row.spent) == (1, 2.0)
    stats = frontier.stats(2.0)
    assert (stats.queued, stats.done, stats.total) == (6, 1, 7)


def test_a_page_that_is_read_again_is_counted_once(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add(links("a.example", 2), 0.0)
    for visit in frontier.lease(2, 0.0):
        frontier.settle([settlement(visit, again_at=5.0)], 1.0)
    again = frontier.lease(2, 10.0)
    assert len(again) == 2
    frontier.settle([settlement(visit) for visit in again], 11.0)
    row = frontier.hosts.get("a.example")
    assert row is not None
    assert row.pages == 2


@pytest.mark.parametrize(
    ("outcome", "again_at", "field"),
    [
        (Outcome.NEW, None, "done"),
        (Outcome.CHANGED, 50.0, "waiting"),
        (Outcome.UNCHANGED, None, "done"),
        (Outcome.GONE, None, "dead"),
        (Outcome.GONE, 50.0, "waiting"),
        (Outcome.DENIED, None, "dead"),
        (Outcome.FAILED, 50.0, "waiting"),
        (Outcome.FAILED, None, "dead"),
    ],
)
def test_outcomes_drive_states(state: State, outcome: Outcome, again_at: float | None, field: str) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add([found("http://a.example/")], 0.0)
    (visit,) = frontier.lease(1, 0.0)
    frontier.settle([settlement(visit, outcome, again_at=again_at)], 0.0)
    stats = frontier.stats(0.0)
    assert getattr(stats, field) == 1
    assert stats.total == 1
    assert frontier.lease(1, 49.0) == []
    assert len(frontier.lease(1, 50.0)) == (again_at is not None)


def test_a_lost_lease_returns_with_one_attempt_more(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add([found("http://a.example/")], 0.0)
    (first,) = frontier.lease(1, 0.0, duration=10.0)
    assert frontier.lease(1, 9.9) == []
    (second,) = frontier.lease(1, 10.0, duration=10.0)
    assert (first.attempt, second.attempt) == (1, 2)
    frontier.settle([settlement(first)], 11.0)  # the slow worker comes back after all
    frontier.settle([settlement(second)], 12.0)
    stats = frontier.stats(12.0)
    assert (stats.done, stats.leased, stats.total) == (1, 0, 1)
    assert frontier.lease(1, 100.0) == []


def test_deadlines_of_settled_visits_are_dropped_and_those_of_lost_ones_hold(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add(links("a.example", 2500), 0.0)
    (lost,) = frontier.lease(1, 0.0, duration=100.0)
    settled = 0
    while visits := frontier.lease(100, 1.0, duration=600.0):
        frontier.settle([settlement(visit) for visit in visits], 1.0)
        settled += len(visits)
        if isinstance(frontier, TableFrontier):
            assert len(frontier.leases.deadlines) <= 1300, "of the last thousand that ended"
    assert settled == 2499 and frontier.lease(1, 99.0) == []
    (again,) = frontier.lease(1, 100.0)
    assert (again.href, again.attempt) == (lost.href, 2)


def test_released_visits_cost_nothing(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=5.0, ip_delay=0.0), 0.0)
    frontier.add(links("a.example", 2), 0.0)
    visits = frontier.lease(1, 0.0)
    frontier.release(visits, 0.0)
    (again,) = frontier.lease(1, 0.0)
    assert again.attempt == 1
    assert again.fingerprint == visits[0].fingerprint


def test_a_host_that_was_not_asked_keeps_its_turn(state: State) -> None:
    """A page denied by robots.txt costs no request, so the next one need not wait."""
    frontier = state.open(FrontierPolicy(delay=5.0, ip_delay=0.0), 0.0)
    frontier.add(links("a.example", 2), 0.0)
    (visit,) = frontier.lease(1, 0.0)
    frontier.settle([settlement(visit, Outcome.DENIED, asked=False)], 0.0)
    assert len(frontier.lease(1, 0.0)) == 1


def test_a_failure_counts_attempts_and_a_success_starts_over(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add([found("http://a.example/")], 0.0)
    attempts = []
    for now, outcome in enumerate([Outcome.FAILED, Outcome.FAILED, Outcome.NEW, Outcome.UNCHANGED]):
        (visit,) = frontier.lease(1, float(now))
        attempts.append((visit.attempt, visit.known))
        frontier.settle([settlement(visit, outcome, again_at=now + 1.0)], float(now))
    assert attempts == [(1, False), (2, False), (3, False), (1, True)]


def test_validators_come_back_with_the_refresh(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add([found("http://a.example/")], 0.0)
    (visit,) = frontier.lease(1, 0.0)
    frontier.settle([settlement(visit, etag='"v1"', again_at=5.0)], 0.0)
    (visit,) = frontier.lease(1, 5.0)
    assert visit.etag == '"v1"'
    frontier.settle([settlement(visit, Outcome.FAILED, again_at=6.0)], 5.0)
    assert frontier.lease(1, 6.0)[0].etag == '"v1"'


def test_never_early_on_a_host_or_an_address(state: State) -> None:
    """Forty hosts on four addresses, random service times, one crash in the middle."""
    policy = FrontierPolicy(delay=2.0, ip_delay=0.5, exceptions=(HostException("h1.*", delay=4.0),))
    frontier = state.open(policy, 0.0)
    chance = random.Random(1)
    hosts = [f"h{number}.s{number % 7}.example" for number in range(40)]
    address_of = {host: f"10.0.0.{number % 4}" for number, host in enumerate(hosts)}
    for host in hosts:
        frontier.add(links(host, 6), 0.0)
    asked_host: dict[str, list[float]] = defaultdict(list)
    asked_address: dict[str, list[float]] = defaultdict(list)
    under_way: list[tuple[float, Visit]] = []
    known_address: set[str] = set()
    done, now = 0, 0.0
    while done < 240 and now < 1000:
        for visit in frontier.lease(5, now, duration=60.0):
            asked_host[visit.host].append(now)
            if visit.host in known_address:
                asked_address[address_of[visit.host]].append(now)
            under_way.append((now + chance.random() * 3, visit))
        ended = [visit for end, visit in under_way if end <= now]
        under_way = [(end, visit) for end, visit in under_way if end > now]
        known_address |= {visit.host for visit in ended}
        frontier.settle([settlement(visit, address=address_of[visit.host]) for visit in ended], now)
        done += len(ended)
        if done >= 100 and under_way and not asked_host.get("crashed"):
            asked_host["crashed"] = [now]
            under_way.clear()
            frontier = state.crash(now)
        now += 0.1
    del asked_host["crashed"]
    assert done == 240
    for host, times in asked_host.items():
        delay = 4.0 if host.startswith("h1.") else 2.0
        assert all(later - earlier >= delay - 1e-6 for earlier, later in pairwise(times)), host
    for times in asked_address.values():
        assert all(later - earlier >= 0.5 - 1e-6 for earlier, later in pairwise(times))


def test_an_own_host_has_no_pauses_and_shares_no_address(state: State) -> None:
    policy = FrontierPolicy(delay=2.0, ip_delay=0.5, exceptions=(HostException("own.example", own=True),))
    frontier = state.open(policy, 0.0)
    frontier.add(links("own.example", 40) + links("foreign.example", 2), 0.0)
    frontier.hosts.put(HostRow(host="own.example", site="own.example", crawl_delay=9.0))
    visits = [visit for visit in frontier.lease(50, 1.0) if visit.host == "own.example"]
    assert len(visits) == 16
    frontier.settle([settlement(visit, address="10.0.0.1") for visit in visits], 1.0)
    assert len(frontier.lease(50, 1.0)) == 16, "neither a Crawl-delay nor the pace of its address holds it back"
    own = frontier.explain(visits[0].key, 1.0)
    assert own is not None


def test_next_due_tells_when_a_lease_succeeds(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=3.0, ip_delay=0.0), 0.0)
    assert frontier.next_due(0.0) is None
    frontier.add(links("a.example", 2), 0.0)
    assert frontier.next_due(0.0) == 0.0
    (visit,) = frontier.lease(5, 0.0)
    frontier.settle([settlement(visit, again_at=100.0)], 1.0)
    assert frontier.next_due(1.0) == 3.0
    assert frontier.lease(1, 2.9) == []
    (visit,) = frontier.lease(1, 3.0)
    frontier.settle([settlement(visit)], 4.0)
    assert frontier.next_due(4.0) == 100.0
    assert len(frontier.lease(1, 100.0)) == 1


def test_requests_under_way_are_bounded_per_host(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=3), 0.0)
    frontier.add(links("a.example", 10) + links("b.example", 10), 0.0)
    visits = frontier.lease(20, 0.0)
    assert Counter(visit.host for visit in visits) == {"a.example": 3, "b.example": 3}
    frontier.settle([settlement(visits[0])], 0.0)
    assert [visit.host for visit in frontier.lease(20, 0.0)] == [visits[0].host]


def test_an_answer_frees_its_host_before_it_is_settled(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=1.0, ip_delay=0.0), 0.0)
    frontier.add(links("a.example", 4), 0.0)
    (first,) = frontier.lease(9, 0.0)
    frontier.answered(first, HostPace("a.example", "192.0.2.1", 0.0, 1.5), 0.5)
    frontier.answered(first, HostPace("a.example", "192.0.2.1", 0.0, 1.5), 0.5)  # twice is harmless
    assert frontier.lease(9, 1.4) == [], "its pace asks for half a second more"
    (second,) = frontier.lease(9, 1.5)
    assert second.fingerprint != first.fingerprint, "a URL is leased until it is settled"
    assert frontier.lease(9, 9.0) == [], "one at a time"
    frontier.answered(second, HostPace("a.example", "192.0.2.1", 0.0, 2.5), 1.6)
    frontier.settle([settlement(first), settlement(second)], 2.6)
    visits = [*frontier.lease(9, 3.0)]
    frontier.settle([settlement(visit) for visit in visits], 3.5)
    visits += frontier.lease(9, 9.0)
    assert len(visits) == 2
    assert frontier.stats(9.0).done == 3
    assert frontier.stats(9.0).leased == 1


def test_answers_that_are_not_settled_still_spend_the_budget(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=2, budget=3.0), 0.0)
    frontier.add(links("a.example", 9), 0.0)
    answered: list[Visit] = []
    while visits := frontier.lease(9, 0.0):
        for visit in visits:
            frontier.answered(visit, HostPace("a.example", "192.0.2.1", 0.0, 0.0), 0.0)
        answered += visits
    assert len(answered) == 3
    frontier.settle([settlement(visit) for visit in answered], 0.0)
    assert frontier.stats(0.0).parked == 6


def test_an_answer_teaches_the_address_before_the_next_lease(state: State) -> None:
    """Two names for one address that nobody knew: the second waits for the address."""
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=5.0), 0.0)
    frontier.add([*links("a.example", 2), *links("b.example", 2)], 0.0)
    first = frontier.lease(9, 0.0)
    for visit in first:
        frontier.answered(visit, HostPace(visit.host, "192.0.2.1", 0.0, 0.0), 1.0)
    assert frontier.lease(9, 5.9) == []
    assert len(frontier.lease(9, 6.0)) == 1


def test_a_host_in_trouble_is_asked_by_one_visit_at_a_time(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=3), 0.0)
    frontier.add(links("a.example", 10), 0.0)
    first, *rest = frontier.lease(20, 0.0)
    frontier.release(rest, 0.0)
    frontier.settle([settlement(first, Outcome.FAILED, again_at=99.0)], 0.0)
    (probe,) = frontier.lease(20, 1.0)
    frontier.settle([settlement(probe)], 1.0)
    assert len(frontier.lease(20, 2.0)) == 3


def test_a_crawl_delay_slows_the_host_at_once(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=1.0, ip_delay=0.0), 0.0)
    frontier.add(links("a.example", 3), 0.0)
    (visit,) = frontier.lease(1, 0.0)
    frontier.hosts.put(
        HostRow(host="a.example", site="a.example", crawl_delay=10.0, robots=b"rules", robots_expires=9.0)
    )
    frontier.settle([settlement(visit)], 0.5)
    assert frontier.lease(1, 9.9) == []
    assert len(frontier.lease(1, 10.0)) == 1
    row = frontier.hosts.get("a.example")
    assert row is not None
    assert (row.robots, row.robots_expires, row.crawl_delay) == (b"rules", 9.0, 10.0)


def test_sites_take_turns(state: State) -> None:
    """One site with many hosts and pages does not keep the others waiting."""
    frontier = state.open(FREE, 0.0)
    for number in range(20):
        frontier.add(links(f"h{number}.big.example", 20), 0.0)
    frontier.add(links("small.example", 5) + links("tiny.example", 5), 0.0)
    visits = frontier.lease(15, 0.0)
    sites = Counter("big" if "big" in visit.host else visit.host for visit in visits)
    assert sites == {"big": 5, "small.example": 5, "tiny.example": 5}
    assert len({visit.host for visit in visits if "big" in visit.host}) == 5


def test_order_within_a_site(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    late = found("http://a.example/late", priority=4, depth=0)
    deep = found("http://a.example/deep", depth=5, score=9.0)
    low, high = found("http://a.example/low", depth=2, score=1.0), found("http://a.example/high", depth=2, score=2.0)
    seed = found("http://a.example/", priority=1, depth=0)
    frontier.add([late, deep, low, high, seed], 0.0)
    keys = [visit.key for visit in frontier.lease(5, 0.0)]
    assert keys == [seed.key, high.key, low.key, deep.key, late.key]


@pytest.mark.parametrize("order", ["importance", "random"])
def test_other_orders(state: State, order: str) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=100, order=order), 0.0)  # type: ignore[arg-type]
    offered = [found(f"http://a.example/{number}", depth=number, score=number % 7) for number in range(30)]
    frontier.add(offered, 0.0)
    visits = frontier.lease(30, 0.0)
    if order == "importance":
        assert [(-visit.score, visit.depth) for visit in visits] == sorted((-d.score, d.depth) for d in offered)
    else:
        assert [visit.fingerprint for visit in visits] == sorted(d.fingerprint for d in offered)


def test_new_scores_move_unread_urls(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=100, order="importance"), 0.0)
    offered = [found(f"http://h{number % 3}.example/{number}", score=1.0) for number in range(31)]
    frontier.add(offered, 0.0)
    (read,) = frontier.lease(1, 0.0)
    frontier.settle([settlement(read, again_at=0.5)], 0.0)
    (leased,) = frontier.lease(1, 0.1)
    wanted = {d.fingerprint: float(number) for number, d in enumerate(offered) if number % 2}
    seen: list[int] = []

    def scored(unread: Sequence[tuple[int, float]]) -> list[float | None]:
        seen.extend(key for key, _ in unread)
        return [wanted.get(key) for key, _ in unread]

    place: Place | None = FIRST_PLACE
    while place is not None:
        place = frontier.rescore(place, 7, scored)
    assert sorted(seen) == sorted({d.fingerprint for d in offered} - {read.fingerprint}), "each unread URL once"
    visits = frontier.lease(100, 0.2)
    kept = {d.fingerprint for d in offered} - {read.fingerprint, leased.fingerprint}
    assert {visit.fingerprint: visit.score for visit in visits} == {key: wanted.get(key, 1.0) for key in kept}
    for host in ("h0.example", "h1.example", "h2.example"):
        scores = [visit.score for visit in visits if visit.host == host]
        assert scores == sorted(scores, reverse=True), "the queue follows"
    assert frontier.stats(0.2).queued == 0


@pytest.mark.parametrize("by_quota", [False, True])
def test_a_share_of_first_reads_goes_by_importance(state: State, by_quota: bool) -> None:
    """More URLs than a host's buffer holds; the deeper, the higher their scores. Requests and seeds stay first."""
    frontier = state.open(replace(FREE, guided_share=0.25), 0.0)
    offered = [replace(found(f"http://a.example/{n}", depth=n // 10 + 1), score=float(n)) for n in range(200)]
    frontier.add(offered, 0.0)
    seed = replace(found("http://a.example/seed", depth=0, priority=1), score=0.0)
    frontier.add([seed], 0.0)

    def read(count: int, now: float) -> list[Visit]:
        quota = Quota(refresh=999, suspects=999, pages=999) if by_quota else None
        visits = frontier.lease(count, now, quota=quota)
        frontier.settle([settlement(visit) for visit in visits], now)
        return visits

    assert any(visit.key == seed.key for visit in read(2, 0.1))
    first = read(40, 0.2)
    guided = sorted((visit.score for visit in first if visit.score >= 100), reverse=True)
    assert guided == [float(score) for score in range(199, 199 - len(guided), -1)] and 9 <= len(guided) <= 11
    assert {visit.depth for visit in first if visit.score < 100} <= {1, 2, 3, 4}
    frontier.guide(0.0)
    assert max(visit.score for visit in read(20, 0.3)) < 100
    frontier.guide(1.0)
    assert min(visit.score for visit in read(20, 0.4)) > 150
    rest = read(400, 0.5)
    assert len({visit.key for visit in rest}) == 201 - 82 and not read(10, 0.6), "each once"


def test_a_listing_is_not_read_in_its_own_order(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    offered = links("a.example", 40)
    frontier.add(offered, 0.0)
    assert [visit.key for visit in frontier.lease(40, 0.0)] != [d.key for d in offered]


def test_better_ways_to_a_known_url_are_taken_over(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add([found("http://a.example/x", depth=7, priority=4), *links("a.example", 5)], 0.0)
    frontier.add([found("http://a.example/x", depth=9, priority=2)], 0.0)
    (visit,) = frontier.lease(1, 0.0)
    assert (visit.key, visit.priority, visit.depth) == ("http://a.example/x", 2, 7)


def test_requests_go_first_known_or_not(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    for number in range(10):
        frontier.add(links(f"h{number}.example", 5), 0.0)
    read = drain(frontier)[0]
    for number in range(10):
        frontier.add(links(f"h{number}.example", 10), 0.0)
    new = found("http://unknown.example/new", depth=3)
    again = found(read.href)
    assert frontier.request([again, new, again], 0.0) == 2
    visits = frontier.lease(5, 0.0)
    assert {visit.key for visit in visits[:2]} == {new.key, again.key}
    assert {visit.priority for visit in visits[:2]} == {0}
    frontier.settle([settlement(visit) for visit in visits], 0.0)
    assert frontier.stats(0.0).total == 101


def test_a_request_for_a_page_being_read_is_not_lost(state: State) -> None:
    """Whoever asks wants what the page says now; what is on its way may be older than the wish."""
    frontier = state.open(FREE, 0.0)
    frontier.add(links("a.example", 20), 0.0)
    (visit,) = frontier.lease(1, 0.0)
    assert frontier.request([found(visit.href)], 1.0) == 1
    assert visit.key not in {other.key for other in frontier.lease(30, 1.0)}, "one worker at a time"
    frontier.settle([settlement(visit, again_at=5000.0)], 2.0)
    state.crash(3.0)
    (again,) = state.frontier.lease(1, 3.0)
    assert (again.key, again.priority) == (visit.key, 0)
    state.frontier.settle([settlement(again, again_at=5000.0)], 4.0)
    assert visit.key not in {other.key for other in state.frontier.lease(30, 5.0)}, "honoured once"


def test_scope_refuses_parks_and_takes_back(state: State) -> None:
    frontier = state.open(FREE, 0.0, OnlyHosts("a.example", "b.example"))
    report = frontier.add(links("a.example", 3) + links("b.example", 4) + links("c.example", 5), 0.0)
    assert report == AddReport(7, 0, 5)
    (visit,) = frontier.lease(1, 0.0)
    frontier.settle([settlement(visit, again_at=50.0)], 0.0)
    other = "b.example" if visit.host == "a.example" else "a.example"
    assert frontier.set_scope(OnlyHosts(other)) in (3, 4)
    assert frontier.stats(0.0).parked in (3, 4)
    assert frontier.stats(0.0).total == 7
    assert {v.host for v in frontier.lease(20, 100.0)} == {other}
    assert frontier.set_scope(OnlyHosts("a.example", "b.example")) in (3, 4)
    assert frontier.stats(100.0).parked == 0
    assert {v.host for v in frontier.lease(20, 100.0)} == {visit.host}


def test_a_spent_budget_parks_and_a_raised_one_takes_back(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, budget=3.0), 0.0)
    frontier.add(links("a.example", 6), 0.0)
    assert len(drain(frontier)) == 3
    stats = frontier.stats(0.0)
    assert (stats.queued, stats.parked, stats.done) == (0, 3, 3)
    frontier.add([found("http://a.example/further")], 0.0)
    assert frontier.stats(0.0).total == 7
    assert frontier.next_due(0.0) is None or frontier.lease(1, 0.0) == []
    frontier.request([found("http://a.example/wanted")], 0.0)
    assert [visit.key for visit in drain(frontier)] == ["http://a.example/wanted"]
    frontier.hosts.put(HostRow(host="a.example", site="a.example", budget=100.0))
    assert len(drain(frontier)) == 4
    assert frontier.stats(0.0).parked == 0


def test_costly_answers_spend_the_budget_faster(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, budget=10.0), 0.0)
    frontier.add(links("a.example", 6), 0.0)
    (visit,) = frontier.lease(1, 0.0)
    frontier.settle([settlement(visit, Outcome.FAILED, cost=10.0)], 0.0)
    assert frontier.stats(0.0).parked == 5


def test_requests_outside_of_the_queue_take_turns_with_leases(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=2.0, ip_delay=0.0), 0.0)
    frontier.add(links("a.example", 3), 0.0)
    (visit,) = frontier.lease(5, 10.0)
    assert frontier.hosts.reserve("a.example", 10.5) is None  # the visit is in progress
    frontier.settle([settlement(visit, again_at=None)], 11.0)
    assert frontier.hosts.reserve("a.example", 11.0) == 12.0
    assert frontier.hosts.reserve("a.example", 15.0) is None
    assert frontier.lease(5, 15.0) == []
    frontier.hosts.free("a.example", 16.0, 15.0)
    assert frontier.lease(5, 15.9) == []
    assert [again.host for again in frontier.lease(5, 16.0)] == ["a.example"]
    assert frontier.hosts.reserve("new.example", 20.0) == 20.0  # a host without URLs
    frontier.hosts.free("new.example", 0.0, 20.5)
    assert frontier.hosts.reserve("new.example", 20.5) == 22.0
    frontier.hosts.free("new.example", 0.0, 22.5)
    frontier.hosts.block("new.example", 50.0, "Retry-After")
    assert frontier.hosts.reserve("new.example", 30.0) == 50.0


def test_blocks_and_budgets_survive_a_crash(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, budget=2.0), 0.0)
    frontier.add(links("a.example", 5) + links("b.example", 5) + links("c.example", 5), 0.0)
    frontier.hosts.block("b.example", 500.0, "Retry-After")
    visits = frontier.lease(2, 0.0)
    limited = [
        settlement(v, Outcome.FAILED, again_at=1.0, blocked_until=300.0) for v in visits if v.host == "c.example"
    ]
    read = [settlement(v, again_at=None) for v in visits if v.host == "a.example"]
    frontier.settle(limited + read, 0.0)
    frontier = state.crash(10.0)
    assert {visit.host for visit in frontier.lease(10, 20.0)} == {"a.example"}
    blocked = frontier.hosts.get("b.example")
    assert blocked is not None
    assert (blocked.blocked_until, blocked.block_reason) == (500.0, "Retry-After")
    assert frontier.stats(20.0).blocked_hosts == 2
    assert {visit.host for visit in frontier.lease(10, 299.9)} == set()
    assert {visit.host for visit in frontier.lease(10, 300.0)} == {"c.example"}
    assert {visit.host for visit in frontier.lease(10, 500.0)} == {"b.example"}
    row = frontier.hosts.get("a.example")
    assert row is not None
    assert row.spent == 1.0


def test_after_a_crash_every_host_waits_its_full_delay(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=5.0, ip_delay=0.0), 0.0)
    frontier.add(links("a.example", 3) + links("b.example", 3), 0.0)
    (settled, lost) = frontier.lease(2, 100.0)
    frontier.settle([settlement(settled)], 100.5)
    frontier = state.crash(101.0)
    frontier.add(links("new.example", 1), 101.0)
    assert [visit.host for visit in frontier.lease(5, 101.0)] == ["new.example"]
    assert frontier.lease(5, 105.9) == []
    visits = frontier.lease(5, 106.0)
    assert {visit.host for visit in visits} == {"a.example", "b.example"}
    assert {visit.fingerprint for visit in visits} >= {lost.fingerprint}
    assert {visit.attempt for visit in visits if visit.fingerprint == lost.fingerprint} == {2}


def test_a_crash_loses_no_url(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    chance = random.Random(7)
    frontier.add(links("h0.example", 10), 0.0)
    offered = {d.fingerprint for d in links("h0.example", 10)}
    done: set[int] = set()
    for step in range(60):
        now = float(step)
        visits = frontier.lease(8, now)
        ended = [visit for visit in visits if chance.random() < 0.7]
        discoveries = tuple(links(f"h{step % 5}.example", 10 + step % 9))
        if len(offered) < 60:
            offered |= {d.fingerprint for d in discoveries} if ended else set()
            frontier.settle([settlement(visit, discoveries=discoveries) for visit in ended], now)
        else:
            frontier.settle([settlement(visit) for visit in ended], now)
        done |= {visit.fingerprint for visit in ended}
        if step % 7 == 0:
            frontier = state.crash(now)
    done |= {visit.fingerprint for visit in drain(state.crash(100.0), 200.0)}
    assert done == offered
    assert state.frontier.stats(200.0).total == len(offered)


def test_reschedule_moves_known_pages(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add(links("a.example", 2), 0.0)
    first, second = drain(frontier)
    times = [
        ScheduledPage(first.fingerprint, first.host, 70.0),
        ScheduledPage(second.fingerprint, second.host, 90.0),
        ScheduledPage(12345, "no.example", 1.0),
    ]
    frontier.reschedule(times, 0.0)
    assert frontier.stats(0.0).waiting == 2
    frontier.reschedule([ScheduledPage(first.fingerprint, first.host, 60.0)], 0.0)
    assert frontier.next_due(0.0) == 60.0
    assert [visit.key for visit in frontier.lease(5, 60.0)] == [first.key]
    assert [visit.key for visit in frontier.lease(5, 90.0)] == [second.key]


def test_explain_names_state_and_rule(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=2.0, ip_delay=0.0, budget=9.0), 0.0)
    frontier.add(links("a.example", 2), 0.0)
    assert frontier.explain("http://never.example/", 0.0) is None
    (visit,) = frontier.lease(1, 0.0)
    leased = frontier.explain(visit.key, 0.0)
    assert leased is not None
    assert leased.state == "leased"
    found = next(d for d in links("a.example", 2) if d.key == visit.key)
    assert (leased.kind, leased.via) == (found.kind, found.via)
    frontier.settle([settlement(visit, again_at=60.0)], 0.0)
    waiting = frontier.explain(visit.key, 10.0)
    assert waiting is not None
    assert (waiting.state, {a: b for a, b, _ in waiting.lines}["due in"]) == ("waiting", "50.0 s")
    late = frontier.explain(visit.key, 90.0)
    assert late is not None and "due in" not in {line.what for line in late.lines}
    assert {a: b for a, b, _ in late.lines}["due"] == "now, since 30.0 s"
    other = next(d for d in links("a.example", 2) if d.key != visit.key)
    queued = frontier.explain(other.key, 1.0)
    assert queued is not None
    facts = {what: value for what, value, _ in queued.lines}
    assert (queued.state, facts["ahead of it"], facts["host free in"]) == ("queued", "0", "1.0 s")
    assert facts["host budget"] == "1 of 9"


def test_hosts_lists_all_by_name(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add(links("b.example", 2) + links("www.a.example", 1), 0.0)
    rows = frontier.hosts.rows()
    assert [(row.host, row.site, row.queued) for row in rows] == [
        ("b.example", "b.example", 2),
        ("www.a.example", "a.example", 1),
    ]
    assert [row.host for row in frontier.hosts.rows(limit=1, offset=1)] == ["www.a.example"]
    assert frontier.hosts.get("none.example") is None


def test_a_failed_transaction_undoes_all_and_keeps_politeness(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=5.0, ip_delay=0.0), 0.0)
    frontier.add(links("a.example", 2) + links("single.example", 1), 0.0)
    visits = frontier.lease(2, 0.0)
    with pytest.raises(RuntimeError), state.catalog.transaction():
        frontier.settle([settlement(visit, discoveries=tuple(links("b.example", 3))) for visit in visits], 0.0)
        state.catalog.values.put("name", b"value")
        raise RuntimeError("power of tests")
    assert state.catalog.values.get("name") is None
    stats = frontier.stats(0.0)
    assert (stats.total, stats.done, stats.hosts) == (3, 0, 2)
    assert frontier.lease(1, 4.9) == []
    assert frontier.add(links("b.example", 3), 5.0).new == 3
    assert {v.host for v in frontier.lease(5, 5.0)} == {"a.example", "b.example", "single.example"}


def test_a_budget_counts_what_is_under_way(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=4, budget=3.0), 0.0)
    frontier.add(links("a.example", 9), 0.0)
    (first,) = frontier.lease(1, 0.0)
    frontier.settle([settlement(first)], 0.0)
    visits = frontier.lease(9, 0.0)
    assert len(visits) == 2, "one of three is spent"
    frontier.settle([settlement(visit) for visit in visits], 0.0)
    assert frontier.lease(9, 0.0) == []
    assert frontier.stats(0.0).parked == 6


def test_a_crawl_with_an_end_holds_refreshes_that_fall_due_while_it_runs(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=9), 0.0)
    frontier.add(links("a.example", 4), 0.0)
    visits = frontier.lease(4, 0.0)
    ends = (settlement(visit, again_at=end) for visit, end in zip(visits, (5.0, 20.0, 30.0), strict=False))
    frontier.settle([*ends, settlement(visits[3], Outcome.FAILED, again_at=25.0)], 0.0)
    frontier.hold_refreshes(10.0)
    again = _read_all(frontier, 40.0)
    assert set(again) == {visits[0].fingerprint, visits[3].fingerprint}, "what was due before, and the retry"
    assert frontier.next_due(100.0) is None and not frontier.lease(9, 100.0), "nothing is read twice"
    frontier.reschedule([ScheduledPage(visits[1].fingerprint, "a.example", 100.0)], 100.0)
    assert _read_all(frontier, 100.0) == [visits[1].fingerprint]
    frontier.hold_refreshes(float("inf"))
    assert len(_read_all(frontier, 200.0)) == 4


def _read_all(frontier: Frontier, now: float) -> list[int]:
    """Lease and settle until nothing is due; a host that has failed serves one visit at a time."""
    found: list[int] = []
    while visits := frontier.lease(9, now):
        found += [visit.fingerprint for visit in visits]
        frontier.settle([settlement(visit, again_at=now + 1.0) for visit in visits], now)
    return found


def test_soonest_are_the_next_refreshes(state: State) -> None:
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=9), 0.0)
    frontier.add(links("a.example", 5), 0.0)
    visits = frontier.lease(5, 0.0)
    ends = [50.0, 30.0, 40.0, None, 20.0]
    frontier.settle(
        [settlement(visit, again_at=end) for visit, end in zip(visits[:4], ends, strict=False)]
        + [settlement(visits[4], Outcome.FAILED, again_at=20.0)],
        0.0,
    )
    wanted = [(visits[1], 30.0), (visits[2], 40.0), (visits[0], 50.0)]
    assert frontier.soonest(9) == [(visit.fingerprint, "a.example", due) for visit, due in wanted], "no retry"
    assert len(frontier.soonest(2)) == 2
    frontier.reschedule([ScheduledPage(visits[0].fingerprint, "a.example", 1.0)], 0.5)
    assert [visit.fingerprint for visit in frontier.lease(5, 1.0)] == [visits[0].fingerprint]


def test_forgotten_urls_and_hosts_leave_nothing(state: State) -> None:
    frontier = state.open(FREE, 0.0)
    frontier.add([*links("a.example", 4), *links("b.example", 6)], 0.0)
    (requested,) = links("b.example", 1)
    frontier.request([requested], 0.0)
    (read,) = frontier.lease(1, 0.0)
    linked = replace(found("http://a.example/new", anchor="words of a page"), via=read.fingerprint)
    frontier.settle([settlement(read, again_at=50.0, discoveries=(linked,))], 1.0)
    assert read.href == requested.href

    def is_forgotten(href: str) -> bool:
        return "b.example/page/" in href or href.endswith("a.example/page/3")

    pages = {read.fingerprint}
    assert frontier.forget(is_forgotten, lambda host: host == "b.example", pages) == 7
    assert frontier.forget(is_forgotten, lambda host: host == "b.example", pages) == 0
    for _ in range(2):
        stats = frontier.stats(1.0)
        assert (stats.total, stats.queued, stats.hosts) == (4, 4, 1)
        assert [row.host for row in frontier.hosts.rows()] == ["a.example"]
        frontier = state.crash(1.0)
    left = drain(frontier, 100.0)
    assert {visit.href.rpartition("/")[2]: visit.anchor for visit in left} == {"0": "", "1": "", "2": "", "new": ""}
    frontier.add(links("b.example", 2), 100.0)
    assert len(drain(frontier, 200.0)) == 2, "a host that is found again begins anew"
