"""Weights beside the crawl: from its links, for new pages by OPIC, lifted by subscriptions, kept over a restart."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from quadloom.model.url import fingerprint
from quadloom.run.ranking import Ranking, Weights
from quadloom.scheduling.importance import importance
from quadloom.scheduling.subscriptions import Subscription, personalization
from quadloom.settings import Freshness

NOW = 1_000_000.0
KEYS = [fingerprint(f"https://a.example/{n}") for n in range(40)]


def packed(*numbers: int) -> bytes:
    return array("q", [KEYS[number] for number in numbers]).tobytes()


def star(ranking: Ranking) -> None:
    """Everybody links to page 0; page 0 links to 1."""
    ranking.append(KEYS[0], packed(1))
    for number in range(1, 30):
        ranking.append(KEYS[number], packed(0))
    ranking.flush()


def make(folder: Path, *subscriptions: Subscription, structured: tuple[int, ...] = ()) -> Ranking:
    return Ranking(folder, Freshness(), lambda: structured, lambda: subscriptions)


def test_what_many_link_to_weighs_most(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    assert ranking.weigh(KEYS[:2]) == [None, None]
    star(ranking)
    ranking.turn(NOW)
    found = ranking.weigh([*KEYS[:30], KEYS[39]])
    weights = [weight for weight in found if weight is not None]
    assert found[30] is None and len(weights) == 30
    assert np.mean(weights) == pytest.approx(1.0)
    assert weights[0] > weights[1] > 3.0 * max(weights[2:])


def test_weights_are_those_of_the_fixpoint(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    links = {n: sorted({int(m) for m in chance.integers(0, 30, 4)} - {n}) for n in range(30)}
    ranking = make(tmp_path)
    for source, targets in links.items():
        ranking.append(KEYS[source], packed(*targets))
    ranking.flush()
    ranking.turn(NOW)
    rows = [n for n in range(30) for _ in links[n]]
    columns = [m for n in range(30) for m in links[n]]
    csr = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(30, 30))
    assert ranking.weigh(KEYS[:30]) == pytest.approx(list(importance(csr) * 30), rel=1e-3)


def test_a_page_read_again_replaces_its_links(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    star(ranking)
    for number in range(1, 30):
        ranking.append(KEYS[number], packed(2 if number != 2 else 3))
    ranking.flush()
    ranking.turn(NOW)
    weights = ranking.weigh(KEYS[:4])
    assert weights[0] is not None and weights[2] is not None and weights[2] > 10.0 * weights[0]


def test_pages_met_after_a_fixpoint_have_an_estimate(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    star(ranking)
    ranking.turn(NOW)
    ranking.append(KEYS[0], packed(1, 35))
    ranking.append(KEYS[5], packed(0, 36))
    ranking.estimate_new(NOW + 1.0)
    beside_hub, beside_leaf, never_met = ranking.weigh([KEYS[35], KEYS[36], KEYS[39]])
    assert beside_hub is not None and beside_leaf is not None and never_met is None
    assert beside_hub > beside_leaf > 0.0


def test_subscribed_pages_are_lifted_into_the_top(tmp_path: Path) -> None:
    plain, wanted = make(tmp_path / "a"), make(tmp_path / "b", Subscription(id="s", urls=("https://a.example/17",)))
    for ranking in (plain, wanted):
        star(ranking)
        ranking.turn(NOW)
    before, after = plain.weigh(KEYS[:30]), wanted.weigh(KEYS[:30])
    assert before[17] == pytest.approx(before[16])
    top = sorted((weight or 0.0 for weight in after), reverse=True)[:2]  # 5 % of 30 pages
    assert (after[17] or 0.0) >= top[-1]


def test_jumps_go_to_the_virtual_pages_of_subscriptions() -> None:
    assert personalization(10, [np.array([], dtype=np.intp)]) is None
    vector = personalization(10, [np.array([3, 4]), np.array([4])])
    assert vector is not None and vector.sum() == pytest.approx(1.0)
    assert vector[0] == pytest.approx(0.08) and vector[3] == pytest.approx(0.13) and vector[4] == pytest.approx(0.23)


def test_a_restart_begins_with_the_last_weights(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    star(ranking)
    ranking.turn(NOW)
    ranking.close()
    again = make(tmp_path)
    assert again.weigh(KEYS[:30]) == ranking.weigh(KEYS[:30])
    assert Weights.load(tmp_path / "nowhere").of([1]) == [None]
