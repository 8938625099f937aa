"""Who is asked next, on a clock of the test's: shares, speed, rests and recovery, without a server."""

from __future__ import annotations

import heapq
from collections import Counter

import pytest

from quadloom.crawling.workers.services.balance import (
    FAILURES,
    FIRST_REST,
    CallOutcome,
    Instance,
    ServiceBalance,
    ServiceCall,
)
from quadloom.model.service import ServiceReply, ServiceRequest
from quadloom.settings import ServiceSettings

FINE = CallOutcome(ServiceReply(200, "text/turtle", b""))
ABSENT = CallOutcome(None, "refused", absent=True)
BROKEN = CallOutcome(ServiceReply(500, "", b""), "answered 500")


class Simulation:
    """Instances that take `seconds` for an answer, or fail as `ill` says."""

    def __init__(self, seconds: dict[str, float], **settings: float) -> None:
        self.now = 1000.0
        self.seconds = seconds
        self.ill: dict[str, CallOutcome] = {}
        url = " ".join(seconds)
        self.balance = ServiceBalance(ServiceSettings(url=url, **settings), lambda: self.now)  # type: ignore[arg-type]
        self.asked: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.failed: list[str] = []
        self.answered = 0

    def run(self, pages: int, at_once: int = 100) -> float:
        """Keep `at_once` pages waiting or in progress until all are answered; returns the seconds that it took."""
        began = self.now
        running: list[tuple[float, int]] = []
        started: dict[int, tuple[Instance, ServiceCall, float]] = {}
        left, open_, number = pages, 0, 0
        while left or open_:
            while left and open_ < at_once:
                self.balance.add(ServiceCall(left, ServiceRequest(0, "image/png", "http://a.example/"), b""))
                left, open_ = left - 1, open_ + 1
            for instance, call in self.balance.starts():
                number += 1
                self.asked[instance.url] += 1
                self.most[instance.url] = max(self.most[instance.url], len(instance.in_progress))
                started[number] = (instance, call, self.now)
                takes = 0.001 if instance.url in self.ill else self.seconds[instance.url]
                heapq.heappush(running, (self.now + takes, number))
            if not running:
                given_up = self.balance.given_up()
                open_ -= len(given_up)
                self.failed += [call.reason for call in given_up]
                at = self.balance.next_at()
                if at is None:
                    assert given_up or not open_, "calls wait for ever"
                    continue
                self.now = at
                continue
            self.now, done = heapq.heappop(running)
            instance, call, at = started.pop(done)
            outcome = self.ill.get(instance.url, FINE)
            if self.balance.ended(instance, call, outcome, at):
                open_ -= 1
                if outcome is FINE:
                    self.answered += 1
                else:
                    self.failed.append(outcome.reason)
        return self.now - began


def test_a_slow_instance_gets_under_a_tenth() -> None:
    simulation = Simulation({"http://quick.example/": 0.005, "http://slow.example/": 1.5})
    simulation.run(400)
    assert simulation.asked.total() == 400
    assert 1 <= simulation.asked["http://slow.example/"] < 40


def test_a_slow_instance_gets_under_a_tenth_of_few_pages_too() -> None:
    simulation = Simulation({"http://slow.example/": 1.5, "http://quick.example/": 0.005})
    simulation.run(30, at_once=30)
    assert simulation.asked["http://slow.example/"] < 3


@pytest.mark.parametrize("instances", [1, 2, 4, 8])
def test_speed_grows_with_instances(instances: int) -> None:
    one = Simulation({"http://0.example/": 0.5}).run(800)
    many = Simulation({f"http://{number}.example/": 0.5 for number in range(instances)}).run(800)
    assert one / many >= 0.95 * instances


def test_instances_of_unlike_speed_work_in_proportion() -> None:
    """Both are used, and the whole is nearly as quick as their speeds together."""
    simulation = Simulation({"http://a.example/": 0.1, "http://b.example/": 0.3}, parallel=2)
    took = simulation.run(400)
    assert 0.6 < simulation.asked["http://a.example/"] / 400 < 0.85
    assert took < 1.1 * 400 / (2 / 0.1 + 2 / 0.3)


def test_no_instance_gets_more_than_parallel() -> None:
    simulation = Simulation({"http://a.example/": 0.1, "http://b.example/": 0.2}, parallel=3)
    simulation.run(100)
    assert set(simulation.most.values()) == {3}


def test_an_instance_that_becomes_quick_again_gets_its_share_again() -> None:
    simulation = Simulation({"http://a.example/": 0.01, "http://b.example/": 2.0})
    simulation.run(500, at_once=8)
    before = simulation.asked["http://b.example/"]
    assert before < 50
    simulation.seconds["http://b.example/"] = 0.01
    simulation.run(1500, at_once=8)
    assert simulation.asked["http://b.example/"] - before > 300


def test_a_stuck_instance_gets_one_page() -> None:
    simulation = Simulation({"http://a.example/": 0.01, "http://stuck.example/": 1000.0})
    simulation.run(30, at_once=5)
    assert simulation.asked["http://stuck.example/"] == 1


def test_a_broken_instance_rests_and_its_pages_go_to_another() -> None:
    simulation = Simulation({"http://ill.example/": 0.1, "http://well.example/": 0.1})
    simulation.ill["http://ill.example/"] = BROKEN
    simulation.run(60)
    assert simulation.failed == []
    assert simulation.answered == 60
    assert simulation.asked["http://ill.example/"] == FAILURES
    simulation.ill.clear()
    simulation.now += FIRST_REST
    simulation.run(100)
    assert simulation.asked["http://ill.example/"] > 40, "it has recovered"


def test_rests_double_and_one_request_tests_an_instance() -> None:
    simulation = Simulation({"http://ill.example/": 0.1}, retries=0, patience=0.0)
    simulation.ill["http://ill.example/"] = BROKEN
    simulation.run(10)
    assert simulation.asked.total() == FAILURES
    simulation.now += FIRST_REST
    simulation.run(10)
    assert simulation.asked.total() == FAILURES + 1, "one test, then the next rest"
    simulation.now += FIRST_REST
    simulation.run(10)
    assert simulation.asked.total() == FAILURES + 1, "the second rest is twice as long"
    simulation.now += FIRST_REST
    simulation.ill.clear()
    simulation.run(10)
    assert simulation.answered == 10


def test_a_page_that_makes_the_service_fail_is_given_up_after_its_retries() -> None:
    simulation = Simulation({"http://a.example/": 0.1, "http://b.example/": 0.1}, retries=1)
    simulation.ill = {"http://a.example/": BROKEN, "http://b.example/": BROKEN}
    simulation.run(1)
    assert simulation.failed == ["answered 500"]
    assert simulation.asked == {"http://a.example/": 1, "http://b.example/": 1}


def test_pages_wait_for_a_service_that_is_away_and_none_is_lost() -> None:
    simulation = Simulation({"http://a.example/": 0.1}, patience=60.0)
    simulation.ill["http://a.example/"] = ABSENT
    back_at = simulation.now + 30.0

    class Cured(dict[str, CallOutcome]):
        def get(self, _url: str, otherwise: CallOutcome) -> CallOutcome:  # type: ignore[override]
            return ABSENT if simulation.now < back_at else otherwise

    simulation.ill = Cured(simulation.ill)
    simulation.run(50)
    assert simulation.failed == []
    assert simulation.answered == 50


def test_patience_is_spent_once_and_not_by_every_page() -> None:
    simulation = Simulation({"http://a.example/": 0.1}, patience=60.0)
    simulation.ill["http://a.example/"] = ABSENT
    took = simulation.run(500, at_once=10)
    assert len(simulation.failed) == 500
    assert 60.0 <= took < 70.0
    assert set(simulation.failed) <= {"refused", ""}
