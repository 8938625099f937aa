"""Whether this machine's own network is down, or hosts do not answer: who is asked, and what counts against whom."""

from __future__ import annotations

import queue
from collections.abc import Sequence

from quadloom.crawling.ingest.messages import NetworkProbed
from quadloom.crawling.run.outage import NetworkWatch
from quadloom.fetching.unit import HostAddress
from quadloom.model.page import Failure, Page


class Network:
    """A network that is up or down, a clock, and a watch over both."""

    def __init__(self) -> None:
        self.now = 100.0
        self.up = True
        self.asked: list[Sequence[HostAddress]] = []
        self.notices: list[str] = []
        self._answers: queue.Queue[NetworkProbed] = queue.Queue()
        self.watch = NetworkWatch(
            self._reaches, self._answers.put, lambda _kind, text: self.notices.append(text), lambda: self.now
        )

    def _reaches(self, endpoints: Sequence[HostAddress]) -> bool:
        self.asked.append(endpoints)
        return self.up

    def answers(self, *hosts: str) -> None:
        for host in hosts:
            self.watch.answered(Page(f"http://{host}/", f"http://{host}/", 200, (), b"", 1.0, 0.1, "192.0.2.1"))

    def fails(self, *hosts: str, kind: str = "connect") -> list[bool]:
        return [
            self.watch.failed(Failure(f"http://{host}/", kind, "no", True, 1.0, 0.1))  # type: ignore[arg-type]
            for host in hosts
        ]

    def probe_ends(self) -> None:
        self.watch.probed(self._answers.get(timeout=10))


def test_three_silent_sites_and_no_answer_mean_that_the_network_is_asked() -> None:
    network = Network()
    network.answers("a.example", "b.example:8080", "c.example")
    assert network.fails("a.example", "b.example:8080") == [False, False]
    assert network.fails("c.example") == [True], "nothing counts while the network is asked"
    assert network.watch.is_doubtful and not network.watch.is_away
    network.up = False
    network.probe_ends()


def test_a_network_that_is_away_is_asked_until_it_is_back() -> None:
    network = Network()
    network.answers("a.example", "b.example:8080", "c.example")
    network.up = False
    network.fails("a.example", "b.example:8080", "c.example")
    network.probe_ends()
    assert network.watch.is_away and "a.example, b.example, c.example" in network.notices[0]
    assert network.asked == [
        [HostAddress("192.0.2.1", 80), HostAddress("192.0.2.1", 8080), HostAddress("192.0.2.1", 80)]
    ]
    pauses = []
    for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0):
        network.now += pause - 0.1
        network.watch.turn()
        network.now += 0.1
        asked = len(network.asked)
        network.watch.turn()
        network.probe_ends()
        pauses.append(len(network.asked) - asked)
    assert pauses == [1] * 8, "asked once after each pause, not before"
    assert network.fails("a.example", "d.example", kind="dns") == [True, True]
    network.up = True
    network.now += 30.0
    network.watch.turn()
    network.probe_ends()
    assert not network.watch.is_doubtful and "back after" in network.notices[1]


def test_hosts_that_are_down_while_the_network_works_are_to_blame_themselves() -> None:
    network = Network()
    network.answers("a.example", "b.example", "c.example")
    network.fails("x.example", "y.example", "z.example")
    network.probe_ends()
    assert not network.watch.is_doubtful and network.notices == []
    assert network.fails("x.example", "y.example", "z.example") == [False] * 3, "not asked again at once"
    network.now += 31.0
    assert network.fails("x.example") == [True], "but after a while"


def test_any_answer_speaks_for_the_network() -> None:
    network = Network()
    network.answers("a.example", "b.example", "c.example")
    for _ in range(5):
        assert network.fails("a.example", "b.example") == [False, False]
        network.answers("c.example")
    assert network.fails("a.example", "b.example", "a.example") == [False] * 3, "one site is one site"


def test_a_crawl_of_one_site_asks_at_its_first_failure() -> None:
    network = Network()
    network.answers("a.example")
    network.up = False
    assert network.fails("a.example") == [True]
    network.probe_ends()
    assert network.watch.is_away
    network.now += 5.0
    assert network.watch.away_for == 5.0


def test_without_any_answer_so_far_failures_are_evidence_and_a_visit_finds_out() -> None:
    network = Network()
    assert network.fails("a.example", "b.example", "c.example") == [False, False, True]
    assert network.watch.is_away and network.asked == []
    network.now += 1.0
    network.watch.turn()
    assert not network.watch.is_doubtful, "visits are allowed again for a moment"
    network.answers("a.example")
    assert not network.watch.is_away


def test_what_a_server_says_is_an_answer_whatever_it_says() -> None:
    network = Network()
    network.answers("a.example")
    refused = Failure("http://a.example/", "status", "HTTP 503", True, 1.0, 0.1, status=503)
    late = Failure("http://a.example/", "timeout", "too late for the lease", True, 1.0)
    forbidden = Failure("http://a.example/", "robots", "disallowed", False, 1.0)
    assert [network.watch.failed(one) for one in (refused, late, forbidden)] == [False] * 3
    assert not network.watch.is_doubtful
