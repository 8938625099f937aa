"""The table of phases: costs, ratios and the balance that they imply, beside the figures of MultiCrawler's table 2."""

from __future__ import annotations

import pytest

from quadloom_lab.commands.bench_phases import PAPER, MeasuredPhase, figures


def test_the_balance_follows_from_the_costs() -> None:
    seconds = (1.0, 0.5, 2.0, 1.0, 0.5)
    measured = {phase: MeasuredPhase(100, cpu) for phase, cpu in zip(PAPER, seconds, strict=True)}
    table = {row.phase: row for row in figures(measured, 4)}
    assert table["transform"].per_core == 50.0 and table["transform"].ratio == 0.25
    assert sum(row.cores for row in table.values()) == pytest.approx(4.0, abs=0.05)
    assert table["transform"].cores == 1.6, "two fifths of the work"
    assert (table["fetch"].paper_ratio, table["transform"].paper_servers) == (0.083, 92)
