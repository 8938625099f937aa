"""Stated rhythms: believed after visits have shown that they distinguish a site's pages, and harmless otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from quadloom.model.link import CHANGE_FREQUENCIES, stated_rhythm
from quadloom.model.outcome import Outcome
from quadloom.planning.policy.planner import PageSchedule, Planner, VisitObservation
from quadloom.settings import FreshnessSettings

DAY = 86_400.0
SETTINGS = FreshnessSettings(min_interval="1h", max_interval="400d", prior_interval="20d")
WORDS = tuple(CHANGE_FREQUENCIES.values())


def nearest_word(interval: float) -> float:
    return min(WORDS, key=lambda word: abs(math.log(word / interval)))


def read(
    planner: Planner, rates: np.ndarray, stated: np.ndarray, *, visits: int = 4, gap: float = 5.0 * DAY
) -> list[PageSchedule]:
    """Visit Poisson pages of one site at equal gaps."""
    rng = np.random.default_rng(11)
    schedules: list[PageSchedule] = [PageSchedule()] * len(rates)
    for number in range(visits):
        now = 1e9 + number * gap
        for page, rate in enumerate(rates):
            changed = rng.random() < -math.expm1(-rate * gap)
            outcome = Outcome.NEW if number == 0 else Outcome.CHANGED if changed else Outcome.UNCHANGED
            observation = VisitObservation(
                "a.org", "a.org", outcome, now, now - gap if number else 0.0, rhythm=float(stated[page])
            )
            schedules[page] = planner.settle(observation, schedules[page]).schedule
    return schedules


def error(schedules: list[PageSchedule], rates: np.ndarray) -> float:
    return float(np.mean([abs(s.log_mean - math.log(rate)) for s, rate in zip(schedules, rates, strict=True)]))


def world() -> np.ndarray:
    return np.exp(np.random.default_rng(2).normal(math.log(1 / 20), 1.8, 200)) / DAY


@pytest.mark.parametrize(
    ("name", "states", "believed", "of_silence"),
    [
        ("honest", lambda rates: np.array([nearest_word(1 / rate) for rate in rates]), True, 0.7),
        # "daily" means weekly, throughout: the mean difference is learned.
        ("eager", lambda rates: np.array([nearest_word(1 / rate) / 7.0 for rate in rates]), True, 0.7),
        ("all alike", lambda rates: np.full(len(rates), 3600.0), False, 1.001),
        ("drawn", lambda rates: np.random.default_rng(3).choice(WORDS, len(rates)), False, 1.001),
    ],
)
def test_what_owners_state_helps_if_it_is_true_and_never_harms(
    name: str, states: Callable[[np.ndarray], np.ndarray], believed: bool, of_silence: float
) -> None:
    rates = world()
    silent = error(read(Planner(SETTINGS, 1.0), rates, np.zeros(len(rates))), rates)
    planner = Planner(SETTINGS, 1.0)
    stated = states(rates)
    schedules = read(planner, rates, stated)
    assert (planner.honesty("a.org") > 0.5) is believed, name
    assert error(schedules, rates) <= of_silence * silent, name
    # A page that was never read: what is expected of it follows the statement only if that is believed.
    fast, slow = planner.prior_of("a.org", 3600.0), planner.prior_of("a.org", 365.25 * DAY)
    assert (fast.centre > slow.centre + 3.0) is believed
    assert planner.prior_of("b.org", 3600.0) == planner.world, "another site has not earned it"


def test_a_newcomer_is_not_believed_and_the_sums_survive_a_restart_and_a_recount() -> None:
    rates = world()[:60]
    stated = np.array([nearest_word(1 / rate) for rate in rates])
    planner = Planner(SETTINGS, 1.0)
    read(planner, rates, stated, visits=1)
    assert planner.honesty("a.org") == 0.0, "first visits compare nothing"
    schedules = read(planner, rates, stated)
    again = Planner(SETTINGS, 1.0, planner.dump())
    assert again.prior_of("a.org", DAY) == planner.prior_of("a.org", DAY)
    recounted = Planner(SETTINGS, 1.0)
    for schedule in schedules:
        recounted.recount("a.org", "a.org", schedule)
    assert recounted.prior_of("a.org", DAY).spread < recounted.prior_of("a.org").spread
    for schedule in schedules:
        recounted.forget("a.org", "a.org", schedule)
    assert recounted.dump().rhythms == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Weekly", 7 * DAY), (" daily ", DAY), ("7 days", 7 * DAY), ("1 month", 30.4 * DAY), ("3hours", 10_800.0),
     ("", 0.0), ("soon", 0.0), ("-1 days", 0.0), ("99999 days", 0.0), ("0 days", 0.0), ("٧ days", 0.0)],
)  # fmt: skip
def test_words_and_numbers(text: str, expected: float) -> None:
    assert stated_rhythm(text) == expected
