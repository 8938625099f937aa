"""Which of the visits in hand killed the fetch process: innocent ones are never given up."""

from __future__ import annotations

import random

from quadloom.fetching.crashing_visits import CrashingVisits
from quadloom.model.visit import Visit


def visit(number: int) -> Visit:
    href = f"http://site.example/{number}"
    return Visit(href, href, "site.example", number)


def run(visits: list[Visit], deadly: set[int], seed: int) -> tuple[set[int], set[int], int]:
    """Send everything until it came back: what was answered, what was given up, and how often the process died. A
    process dies at a random moment after it got a deadly visit, with the visits that it had not answered yet."""
    chance = random.Random(seed)
    crashing = CrashingVisits()
    queue = list(visits)
    answered: set[int] = set()
    given_up: set[int] = set()
    deaths = 0
    while queue and deaths < 1000:
        in_hand = {one.fingerprint: one for one in queue[:16]}
        del queue[:16]
        process = crashing.admit(list(in_hand.values()))
        while process:
            safe = [one for one in process if one.fingerprint not in deadly]
            if len(safe) < len(process) and (not safe or chance.random() < 0.5):
                deaths += 1
                guilty = crashing.died(list(in_hand.values()))
                given_up.update(one.fingerprint for one in guilty)
                queue += [one for one in in_hand.values() if one not in guilty]
                in_hand, process = {}, []
            else:
                done = safe[0]
                process.remove(done)
                answered.add(done.fingerprint)
                del in_hand[done.fingerprint]
                process += crashing.ended([done.fingerprint])
        assert not in_hand, "visits that wait for ever"
    return answered, given_up, deaths


def test_only_what_kills_is_given_up() -> None:
    for seed in range(50):
        visits = [visit(number) for number in range(60)]
        deadly = set(random.Random(seed).sample(range(60), 3))
        answered, given_up, deaths = run(visits, deadly, seed)
        assert given_up == deadly, seed
        assert answered == set(range(60)) - deadly, seed
        assert deaths <= 20, seed


def test_without_deaths_nothing_waits() -> None:
    crashing = CrashingVisits()
    visits = [visit(number) for number in range(100)]
    assert crashing.admit(visits) == visits
    crashing.died(visits)
    assert crashing.admit(visits) == visits, "one death may have come from outside"
