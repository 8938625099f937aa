"""A constant bandwidth, divided as the shares say, on a real frontier in simulated time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.url import canonical, fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.planning.policy.shares import BandwidthShares
from quadloom.planning.refresh.pacing import BandwidthPacer
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.frontier import Frontier, Quota
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA
from quadloom_lab.memory.frontier import MemoryFrontier

START = 1_000_000.0
_POLICY = FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=1000)


@pytest.fixture(params=["sqlite", "memory"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> Frontier:
    if request.param == "memory":
        return MemoryFrontier(_POLICY, now=START)
    return SqliteFrontier(SqliteDatabase.open(tmp_path / "f.db", SCHEMA), _POLICY, now=START)


def discovery(number: int, priority: int) -> Discovery:
    href = f"http://host{number % 3}.example/{priority}/{number}"
    key = canonical(href)
    return Discovery(href, key, host_of(href), fingerprint(key), 1, "plain", priority)


def settled(visit: Visit, now: float, again_at: float) -> Settlement:
    row = PageRow(
        fingerprint=visit.fingerprint, key=visit.key, href=visit.href, host=visit.host, status=200, fetched_at=now
    )
    return Settlement(visit, Outcome.NEW, row, None, (), again_at)


def run(
    frontier: Frontier, pacing: BandwidthPacer, *, slots: int, again_after: float, delay: float = -1.0
) -> list[Counter[str]]:
    """Slot by slot: lease ten times a second, settle at once. Without a `delay` no host's clock is moved."""
    counts: list[Counter[str]] = []
    for tenth in range(slots * 10):
        now = START + tenth / 10
        if tenth % 10 == 0:
            counts.append(Counter())
        visits = frontier.lease(1000, now, quota=pacing.quota(now))
        for visit in visits:
            known = "refresh" if visit.known else "suspects" if visit.priority <= 2 else "pages"
            counts[-1]["requests" if visit.priority == 0 else known] += 1
        done = [settled(visit, now, now + again_after) for visit in visits]
        if delay >= 0.0:
            done = [replace(each, pace=HostPace(each.visit.host, "", delay, now + delay)) for each in done]
        frontier.settle(done, now)
    return counts


def pacing(bandwidth: float) -> BandwidthPacer:
    shares = BandwidthShares(bandwidth, 0.2, 0.4)
    return BandwidthPacer(shares)


def test_every_slot_has_the_same_number_of_reads_divided_by_the_shares(frontier: Frontier) -> None:
    frontier.add([discovery(number, 2) for number in range(400)], START)
    frontier.add([discovery(number, 3) for number in range(700)], START)
    counts = run(frontier, pacing(30.0), slots=24, again_after=2.0)
    # A class that is idle at first (there is nothing to refresh yet) holds a fraction of a second of reads.
    assert all(sum(slot.values()) == pytest.approx(30, abs=6) for slot in counts[:8]), counts
    assert [sum(slot.values()) for slot in counts[8:]] == [30] * 16
    late: Counter[str] = sum(counts[8:], Counter())
    total = sum(late.values())
    assert late["suspects"] / total == pytest.approx(0.2, abs=0.01)
    assert late["pages"] / total == pytest.approx(0.4, abs=0.02)
    assert late["refresh"] / total == pytest.approx(0.4, abs=0.02)


def test_an_unused_share_rolls_over(frontier: Frontier) -> None:
    frontier.add([discovery(number, 3) for number in range(250)], START)
    counts = run(frontier, pacing(20.0), slots=10, again_after=10_000.0)
    assert all(slot["pages"] == 20 for slot in counts[1:]), "nothing to refresh and no suspects: all is discovery"
    assert 16 <= counts[0]["pages"] <= 20


def test_requests_go_first_and_are_taken_off_the_next_slot(frontier: Frontier) -> None:
    frontier.add([discovery(number, 3) for number in range(100)], START)
    frontier.request([discovery(1000 + number, 3) for number in range(15)], START)
    counts = run(frontier, pacing(10.0), slots=4, again_after=10_000.0)
    assert counts[0]["requests"] == 15
    assert sum(sum(slot.values()) for slot in counts) <= 45


def test_shares_change_while_running(frontier: Frontier) -> None:
    frontier.add([discovery(number, 2) for number in range(100)], START)
    frontier.add([discovery(number, 3) for number in range(300)], START)
    shares = BandwidthShares(20.0, 0.5, 0.5)
    pace = BandwidthPacer(shares)
    before = run(frontier, pace, slots=5, again_after=10_000.0)
    shares.set(0.1, 0.9)
    shares.bandwidth = 40.0
    pace = BandwidthPacer(shares)
    after = run(frontier, pace, slots=5, again_after=10_000.0)
    assert before[-1] == Counter(suspects=10, pages=10)
    assert after[-1] == Counter(suspects=4, pages=36)


def test_slots_between_the_ticks_are_constant_too(frontier: Frontier) -> None:
    """Reads are spread over a slot: a server that counts from any moment on sees the same number."""
    frontier.add([discovery(number, 3) for number in range(600)], START)
    pace, times = pacing(40.0), []
    for tick in range(400):
        now = START + tick * 0.0325
        visits = frontier.lease(1000, now, quota=pace.quota(now))
        times += [now] * len(visits)
        frontier.settle([settled(visit, now, now + 10_000.0) for visit in visits], now)
    for begin in range(10, 100):
        window = [at for at in times if START + begin / 10 <= at < START + begin / 10 + 3.0]
        assert len(window) == pytest.approx(120, rel=0.05)


def test_idle_reads_go_to_pages_before_their_time(frontier: Frontier) -> None:
    """All idle reads are used, so the bandwidth is constant; what cannot be used expires."""
    asked: list[int] = []

    def advance(reads: int, now: float) -> int:
        asked.append(reads)
        return reads if now < START + 5.0 else 0

    shares = BandwidthShares(10.0, 0.2, 0.4)
    pace = BandwidthPacer(shares, advance=advance)
    for tick in range(100):
        pace.quota(START + tick / 10)
    assert sum(asked[:40]) == pytest.approx(40, abs=6)
    assert pace.quota(START + 10.0).refresh == pytest.approx(50, abs=6), "of five seconds; five more have expired"
    assert max(asked) <= 5


def test_a_visit_without_a_request_is_given_back(frontier: Frontier) -> None:
    frontier.add([discovery(number, 3) for number in range(700)], START)
    pace = pacing(20.0)
    run(frontier, pace, slots=2, again_after=10_000.0)
    now = START + 2.0
    forbidden = frontier.lease(5, now - 0.01)
    for visit in forbidden:
        pace.settled(Settlement(visit, Outcome.DENIED, None))
    assert len(frontier.lease(1000, now, quota=pace.quota(now))) == 2 + 5


def test_a_pause_is_not_made_up_for(frontier: Frontier) -> None:
    frontier.add([discovery(number, 3) for number in range(700)], START)
    pace = pacing(10.0)
    frontier.lease(1000, START, quota=pace.quota(START))
    later = START + 3600.0
    assert len(frontier.lease(1000, later, quota=pace.quota(later))) <= 30


def test_a_spent_budget_does_not_end_refreshes(frontier: Frontier) -> None:
    """The budget is for pages: a host that has spent it gets no new pages, but refreshes go on."""
    urls = [discovery(3 * number, 3) for number in range(8)]  # all on one host
    frontier.add(urls[:4], START)
    row = frontier.hosts.get("host0.example")
    assert row is not None
    frontier.hosts.put(replace(row, budget=4.0))
    for turn in range(3):
        now, read = START + 100.0 * turn, set()
        while visits := frontier.lease(100, now):
            read |= {visit.href for visit in visits}
            pace = HostPace("host0.example", "", 0.0, now)
            frontier.settle([replace(settled(visit, now, now + 50.0), pace=pace) for visit in visits], now)
        assert read == {found.href for found in urls[:4]}, f"turn {turn}"
        frontier.add(urls[4:], now)
    spent = frontier.hosts.get("host0.example")
    assert spent is not None and spent.spent == 4.0
    assert frontier.stats(START).parked == 4


def test_a_host_that_politeness_holds_back_serves_all_classes(tmp_path: Path) -> None:
    """Politeness allows four visits a second, the bandwidth forty; without quotas refreshes would take all."""
    policy = FrontierPolicy(delay=0.25, ip_delay=0.0, per_site=1)
    for slow in (
        MemoryFrontier(policy, now=START),
        SqliteFrontier(SqliteDatabase.open(tmp_path / "f.db", SCHEMA), policy, now=START),
    ):
        known, suspects, unread = (
            [discovery(3 * n, p) for n in range(first, first + 200)] for p, first in ((3, 0), (2, 200), (4, 400))
        )
        slow.add(known, START)
        visits = [Visit(d.href, d.key, d.host, d.fingerprint) for d in known]
        slow.settle([settled(visit, START, START + 1.0) for visit in visits], START)
        slow.add(suspects + unread, START)
        counts = run(slow, pacing(40.0), slots=60, again_after=1.0, delay=0.25)
        late: Counter[str] = sum(counts[4:], Counter())
        total = sum(late.values())
        assert total > 150, "as fast as politeness allows"
        assert late["suspects"] / total == pytest.approx(0.2, abs=0.02)
        assert late["pages"] / total == pytest.approx(0.4, abs=0.02)
        assert late["refresh"] / total == pytest.approx(0.4, abs=0.02)


def test_late_refreshes_are_read_in_order_of_due_time(frontier: Frontier) -> None:
    """Whatever its score, a page that became due earlier is read first, so that none waits forever."""
    found = [replace(discovery(3 * number, 3), depth=number % 5, score=float(number % 7)) for number in range(40)]
    frontier.add(found, START)
    first = {visit.fingerprint: visit for visit in frontier.lease(100, START)}
    due = {item.fingerprint: START + 10.0 + (number * 17) % 40 for number, item in enumerate(found)}
    frontier.settle([settled(visit, START, due[key]) for key, visit in first.items()], START)
    now = START + 100.0
    again = frontier.lease(100, now, quota=Quota(refresh=100))
    times = [due[visit.fingerprint] for visit in again]
    assert len(times) == 40 and times == sorted(times)


def test_no_page_is_read_early_if_its_host_is_behind(frontier: Frontier) -> None:
    """A page that its host cannot serve now would only wait in its queue, out of the order of the schedule."""
    behind, free = discovery(0, 3), discovery(1, 3)
    frontier.add([behind, free], START)
    frontier.settle([settled(visit, START, START + 100.0) for visit in frontier.lease(10, START)], START)
    assert {key for key, _, _ in frontier.soonest(10)} == {behind.fingerprint, free.fingerprint}
    frontier.add([discovery(3, 3)], START)
    assert frontier.lease(10, START, quota=Quota()) == []
    assert [key for key, _, _ in frontier.soonest(10)] == [free.fingerprint]


def test_a_quota_knows_that_urls_wait_for_a_share(tmp_path: Path) -> None:
    queue = SqliteFrontier(SqliteDatabase.open(tmp_path / "f.db", SCHEMA), _POLICY, now=START)
    queue.add([discovery(number, 3) for number in range(6)], START)
    refreshes_only = Quota(refresh=5, shares=(1.0, 0.0, 0.0))
    assert queue.lease(10, START, quota=refreshes_only) == [] and refreshes_only.is_closed
    mixed = Quota(refresh=5, pages=5, suspects=5, shares=(0.4, 0.2, 0.4))
    assert len(queue.lease(10, START, quota=mixed)) == 5 and not mixed.is_closed, "one more when the bandwidth allows"
