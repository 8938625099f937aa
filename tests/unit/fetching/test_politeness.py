from __future__ import annotations

from email.utils import formatdate
from random import Random

import pytest

from quadloom.fetching import politeness
from quadloom.fetching.politeness import AddressClock, back_off, delay_of, pace, retry_after, strikes_after
from quadloom.fetching.transport import make_failure
from quadloom.model.page import Failure, FailureKind, Page
from quadloom.settings import PolitenessSettings, Settings, SiteSettings
from quadloom.settings.sites import rules_for

NOW = 1_800_000_000.0
RULES = PolitenessSettings()
MOST = politeness.MAX_RETRY_AFTER


def page(seconds: float = 0.1) -> Page:
    return Page("http://e.org/", "http://e.org/", 200, (), b"", NOW, seconds, "8.8.8.8")


def failed(kind: FailureKind, status: int = 0, wish: float | None = None) -> Failure:
    return make_failure("http://e.org/", kind, "no", fetched_at=NOW, status=status, retry_after=wish, address="8.8.8.8")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0), (" 5 ", 5.0), ("", None), ("soon", None), ("-3", None), ("1.5", None), ("0", 0.0), ("²", None),
        (formatdate(NOW + 90, usegmt=True), 90.0), (formatdate(NOW - 90, usegmt=True), 0.0),
        ("999999999999999999999", MOST), ("Fri, 31 Dec 9999 23:59:59 GMT", MOST),
    ],
)  # fmt: skip
def test_retry_after_in_both_forms(value: str, expected: float | None) -> None:
    assert retry_after(value, NOW) == expected


def test_delay_is_the_largest_wish_within_bounds() -> None:
    assert delay_of(0.1, 0.0, RULES) == 1.0
    assert delay_of(3.0, 0.0, RULES) == 6.0
    assert delay_of(100.0, 0.0, RULES) == RULES.max_delay
    assert delay_of(0.1, 120.0, RULES) == 120.0
    assert delay_of(0.1, 1e6, RULES) == RULES.max_crawl_delay
    assert delay_of(3.0, 0.0, PolitenessSettings(adaptive=0.0)) == 1.0


def test_back_off_doubles_up_to_its_ceiling_with_full_jitter() -> None:
    assert [back_off(n, RULES, lambda: 1.0) for n in (1, 2, 3, 4)] == [10.0, 20.0, 40.0, 80.0]
    assert back_off(500, RULES, lambda: 1.0) == RULES.max_backoff
    assert back_off(5, RULES, lambda: 0.0) == RULES.backoff / 2
    draw = Random(7).random
    draws = [back_off(6, RULES, draw) for _ in range(50)]
    assert all(5.0 <= one <= 320.0 for one in draws)
    assert max(draws) - min(draws) > 200


def test_a_page_moves_the_clock_by_the_delay() -> None:
    result = pace("e.org", page(2.0), now=NOW, rules=RULES, random=lambda: 1.0)
    assert (result.delay, result.next_at, result.blocked_until, result.cost) == (4.0, NOW + 4.0, 0.0, 1.0)
    assert result.address == "8.8.8.8"


def test_the_servers_own_wish_is_obeyed_and_else_we_back_off() -> None:
    wished = pace("e.org", failed("status", 429, 77.0), now=NOW, rules=RULES, strikes=1, random=lambda: 1.0)
    assert wished.blocked_until == NOW + 77.0
    assert "Retry-After" in wished.reason
    kinds: list[tuple[FailureKind, int]] = [
        ("status", 503),
        ("connect", 0),
        ("timeout", 0),
        ("dns", 0),
        ("too-slow", 0),
    ]
    for kind, status in kinds:
        silent = pace("e.org", failed(kind, status), now=NOW, rules=RULES, strikes=3, random=lambda: 1.0)
        assert silent.blocked_until == NOW + 40.0
    assert pace("e.org", failed("status", 404), now=NOW, rules=RULES, random=lambda: 1.0).blocked_until == 0.0


def test_nothing_sent_nothing_waited_nothing_spent() -> None:
    result = pace("e.org", failed("robots"), now=NOW, rules=RULES, random=lambda: 1.0)
    assert (result.next_at, result.blocked_until, result.cost) == (NOW, 0.0, 0.0)


def test_strikes_count_in_a_row() -> None:
    assert strikes_after(failed("status", 429), 2) == 3
    assert strikes_after(failed("connect"), 0) == 1
    assert strikes_after(failed("robots"), 2) == 2
    assert strikes_after(failed("status", 404), 2) == 0
    assert strikes_after(page(), 2) == 0


def test_errors_and_duplicates_cost_more_than_pages() -> None:
    results = (page(), failed("status", 404), failed("timeout"))
    costs = [politeness.cost_of(result) for result in results]
    assert costs == sorted(set(costs))
    assert politeness.cost_of(page(), duplicate=True) > politeness.cost_of(page())


def test_site_tables_change_what_they_name() -> None:
    settings = Settings(
        site=[SiteSettings(match="*.slow.org", delay=9.0), SiteSettings(match="own.org", robots="ignore")]
    )
    assert rules_for("a.slow.org:8080", settings).delay == 9.0
    assert rules_for("own.org", settings).robots == "ignore"
    assert rules_for("e.org", settings) == settings.politeness


def test_an_own_site_has_no_pauses_but_those_it_names() -> None:
    own = SiteSettings(match="*.own.org", own=True)
    settings = Settings(site=[SiteSettings(match="calm.own.org", delay=0.5, per_site=2), own])
    rules = rules_for("a.own.org", settings)
    assert (rules.delay, rules.ip_delay, rules.per_site, rules.robots) == (0.0, 0.0, 16, "obey")
    assert delay_of(3.0, 10.0, rules) == 0.0, "neither a slow answer nor its Crawl-delay slows it down"
    calm = rules_for("calm.own.org", settings)
    assert (calm.delay, calm.per_site) == (0.5, 2)
    assert rules_for("other.org", settings) == settings.politeness


def test_address_clock_spaces_turns_and_is_never_early_after_a_restart() -> None:
    clock = AddressClock(0.2, NOW)
    turns = [clock.reserve("8.8.8.8", NOW) for _ in range(5)]
    assert turns == pytest.approx([NOW + 0.2 * n for n in range(1, 6)], abs=1e-4)
    assert clock.reserve("9.9.9.9", NOW + 5) == NOW + 5
    assert clock.reserve("8.8.8.8", NOW + 5) == NOW + 5
    assert AddressClock(0.0, NOW).reserve("8.8.8.8", NOW) == NOW
    crowd = AddressClock(0.2, NOW)
    for number in range(70_000):
        crowd.reserve(str(number), NOW + number)
    assert len(crowd._free) <= 65_537
