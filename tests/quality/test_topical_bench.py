"""Floors of the topical crawl on webs with templates and topics that nothing was tuned on."""

from __future__ import annotations

import pytest

from quadloom_lab.topical.evaluation import (
    Evaluation,
    EvaluationRun,
    Interval,
    World,
    equal_recall_ratio,
    interval,
    recall_chart,
    run,
)


def test_adaptive_beats_following_links_on_a_held_out_web() -> None:
    world = World(0, "held_out")
    ours, links = world.run("adaptive", 450), world.run("best-first", 450)
    assert ours.recall >= 0.45
    reached = ours.at_recall(0.45)
    assert reached is not None
    assert reached[1] >= 0.85
    assert equal_recall_ratio(ours, links) >= 1.3


def test_the_same_seed_gives_the_same_crawl() -> None:
    one, two = (World(1, "known", 6).run("adaptive", 40) for _ in range(2))
    assert one == two


def test_an_interval_holds_its_mean_and_a_constant_has_none() -> None:
    spread = interval([1.0, 2.0, 3.0, 4.0])
    assert spread.low <= spread.mean == 2.5 <= spread.high
    assert interval([2.0, 2.0]).low == interval([2.0, 2.0]).high == 2.0


def test_the_chart_has_a_line_and_a_band_for_each_strategy() -> None:
    runs = tuple(
        EvaluationRun(name, seed, 10, 5, 2, 4, ((3, 1, 2), (7, 1 + seed, 4)), {})
        for name in ("adaptive", "best-first")
        for seed in (0, 1)
    )
    drawn = recall_chart(Evaluation((), "best-first", Interval(0.0, 0.0, 0.0), {}, runs, "held_out", 2, 10, 60))
    assert drawn.count("<polyline") == drawn.count("<polygon") == 2
    assert "2 webs of 60 sites, held-out templates" in drawn


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_webs_with_other_letters_engines_and_paging_are_harvested_as_well(seed: int) -> None:
    world = World(seed, "foreign")
    ours, links = world.run("adaptive", 700), world.run("best-first", 700)
    reached = ours.at_recall(0.5)
    assert reached is not None
    assert reached[1] >= 0.88
    assert equal_recall_ratio(ours, links) >= 1.3


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_targets_of_the_bench() -> None:
    """Harvest at half the recall, and documents per request against the best baseline, with its interval."""
    result = run(seeds=5)
    ours = next(row for row in result.rows if row.strategy == "adaptive")
    assert ours.reached == 5
    assert ours.harvest_at_recall is not None
    assert ours.harvest_at_recall.mean >= 0.88
    assert result.advantage.mean >= 1.3
    assert result.advantage.low > 1.0
    assert recall_chart(result).count("<polyline") == len(result.rows)
