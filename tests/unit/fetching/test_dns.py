from __future__ import annotations

import select
import threading
import time

import pytest

from quadloom.fetching.dns import DnsAnswer, DnsResolver, system_lookup


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def wait(resolver: DnsResolver, answers: list[DnsAnswer], count: int = 1) -> None:
    deadline = time.monotonic() + 60
    while len(answers) < count:
        assert time.monotonic() < deadline
        select.select([resolver.fileno()], [], [], 1.0)
        resolver.collect()


def test_answers_are_cached_and_expire() -> None:
    asked: list[str] = []
    clock = Clock()

    def lookup(name: str) -> list[str]:
        asked.append(name)
        return ["8.8.8.8", "8.8.4.4"]

    resolver = DnsResolver(seconds=5, ttl=600, negative_ttl=60, monotonic=clock, lookup=lookup)
    answers: list[DnsAnswer] = []
    assert resolver.cached("a.org") is None
    resolver.ask("a.org", answers.append)
    resolver.ask("a.org", answers.append)
    wait(resolver, answers, 2)
    assert asked == ["a.org"]
    assert answers[0].addresses == ("8.8.8.8", "8.8.4.4")
    resolver.demote("a.org", "8.8.8.8")
    assert resolver.cached("a.org") == DnsAnswer(("8.8.4.4", "8.8.8.8"))
    clock.now += 601
    assert resolver.cached("a.org") is None
    resolver.close()


def test_failures_are_cached_for_a_shorter_time() -> None:
    clock = Clock()

    def lookup(name: str) -> list[str]:
        raise OSError(-2, "Name or service not known")

    resolver = DnsResolver(seconds=5, ttl=600, negative_ttl=60, monotonic=clock, lookup=lookup)
    answers: list[DnsAnswer] = []
    resolver.ask("nowhere.org", answers.append)
    wait(resolver, answers)
    assert answers[0].error == "Name or service not known"
    assert resolver.cached("nowhere.org") == answers[0]
    clock.now += 61
    assert resolver.cached("nowhere.org") is None
    resolver.close()


def test_stuck_names_fail_at_their_deadline_and_bind_no_more_threads_than_allowed() -> None:
    clock = Clock()
    release = threading.Event()
    asked: list[str] = []

    def lookup(name: str) -> list[str]:
        asked.append(name)
        release.wait(10)
        return ["8.8.8.8"]

    resolver = DnsResolver(seconds=5, ttl=600, negative_ttl=60, monotonic=clock, lookup=lookup, threads=3)
    answers: list[DnsAnswer] = []
    before = threading.active_count()
    for number in range(20):
        resolver.ask(f"h{number}.org", answers.append)
    assert threading.active_count() - before == 3
    assert resolver.next_deadline() == 105.0
    resolver.expire()
    assert answers == []
    clock.now += 5
    resolver.expire()
    assert len(answers) == 20
    assert all("within 5 s" in answer.error for answer in answers)
    release.set()
    resolver.close()
    assert len(asked) <= 6, "names that were given up on are not looked up afterwards"


def test_the_system_resolver_refuses_what_is_no_name() -> None:
    assert "127.0.0.1" in system_lookup("localhost") or "::1" in system_lookup("localhost")
    with pytest.raises(OSError):
        system_lookup("a" * 64 + ".org")
