"""Pinned floors of the scheduler as a whole: learned rates against known ones, real histories, constant slots."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from quadloom_lab.scheduling.figures import closed_forms, learned_rates
from quadloom_lab.scheduling.simulated_web import Process, WebShape
from quadloom_lab.scheduling.simulator import SimulationPlan, SimulationRow, run

SHARED = Path(os.environ.get("QUADLOOM_SHARED") or Path(__file__).resolve().parents[2] / ".." / "shared")
HISTORY = SHARED / "data" / "change-trace-docs-site.csv.gz"


def by_name(rows: tuple[SimulationRow, ...]) -> dict[tuple[str, str], SimulationRow]:
    return {(row.policy, row.estimator): row for row in rows}


def test_learned_rates_cost_harmonic_half_a_per_cent_at_most() -> None:
    """After 20 visits a page (200 days at 0.1 a day). The mean of three webs, since one has noise of its own."""
    ratios = []
    for seed in (1, 2, 3):
        rows = by_name(
            run(
                ("poisson",), ("harmonic",), shape=WebShape(pages=1000), seed=seed,
                plan=SimulationPlan(per_page=0.1, slot=0.5, warm_up=200.0),
            ).rows
        )  # fmt: skip
        ratios.append(rows["harmonic", "bits"].freshness / rows["harmonic", "known"].freshness)
    assert np.mean(ratios) > 0.995


@pytest.mark.parametrize("process", ["poisson", "bursty", "regular", "periodic", "hostwide"])
def test_policies_keep_their_order_on_every_process(process: Process) -> None:
    rows = by_name(
        run(
            (process,), ("by-rate", "uniform", "xyleme", "harmonic", "freshness"), ("known",),
            shape=WebShape(pages=1000, days=300.0), plan=SimulationPlan(per_page=0.1, slot=0.5),
        ).rows
    )  # fmt: skip
    fresh = {policy: row.freshness for (policy, _), row in rows.items()}
    assert fresh["by-rate"] < fresh["uniform"] < fresh["xyleme"] < fresh["harmonic"]
    assert fresh["freshness"] > fresh["xyleme"]
    cost = {policy: row.cost for (policy, _), row in rows.items()}
    assert cost["xyleme"] < cost["harmonic"] < cost["uniform"]
    assert all(row.slot_spread < 0.05 for row in rows.values())


@pytest.mark.skipif(not HISTORY.exists(), reason=f"needs the change history {HISTORY}")
def test_real_history() -> None:
    """Where even reading has a weighted freshness of 0.86, learning from visits alone reaches 0.92."""
    uniform, learned = [], []
    for seed in (1, 2, 3):  # weights are drawn, and a few heavy pages decide a single run
        rows = by_name(
            run(
                policies=("uniform", "harmonic"), estimators=("bits",), history=HISTORY, seed=seed,
                plan=SimulationPlan(per_page=1 / 410, slot=6.0, warm_up=365.0),
            ).rows
        )  # fmt: skip
        uniform.append(rows["uniform", "bits"].freshness)
        learned.append(rows["harmonic", "bits"].freshness)
        assert rows["harmonic", "bits"].slot_spread < 0.05
    assert np.mean(uniform) < 0.87
    assert np.mean(learned) >= 0.92


def test_the_figures_of_the_documentation_are_made_by_one_command() -> None:
    rows = {(row.per_page, row.policy): row for row in closed_forms((0.05, 1.0))}
    assert rows[0.05, "uniform"].freshness == pytest.approx(0.5230, abs=1e-4)
    assert rows[0.05, "harmonic"].cost == pytest.approx(0.8632, abs=1e-4)
    assert rows[0.05, "freshness"].starved == pytest.approx(0.232, abs=1e-3)
    for per_page in (0.05, 1.0):
        names = ("by rate", "uniform", "xyleme", "harmonic", "freshness")
        fresh = [rows[per_page, name].freshness for name in names]
        assert fresh == sorted(fresh)
    small = {row.estimator: row for row in learned_rates(pages=100)}
    assert small["known"].kept == 1.0 and small["push"].kept > 1.03 and 0.9 < small["bits"].kept < 1.1


def test_learning_follows_pages_that_change_their_habits() -> None:
    rows = by_name(
        run(
            ("switching",), ("harmonic", "uniform"), shape=WebShape(pages=300, days=600.0),
            plan=SimulationPlan(per_page=0.1, slot=0.5, warm_up=300.0),
        ).rows
    )  # fmt: skip
    assert rows["harmonic", "bits"].freshness > rows["uniform", "bits"].freshness * 1.03
    assert rows["harmonic", "bits"].freshness > rows["harmonic", "known"].freshness * 0.98
