"""`quadloom bench topical`: compare strategies of the topical crawl on simulated webs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from quadloom.cli.session import session
from quadloom_lab.topical.evaluation import BUDGET, RECALL, Interval, recall_chart
from quadloom_lab.topical.evaluation import run as evaluate
from quadloom_lab.topical.sites import Family


def topical(
    *,
    seeds: int = 5,
    budget: int = BUDGET,
    sites: int = 60,
    templates: Literal["held-out", "foreign", "known"] = "held-out",
    plot: Path | None = None,
    curves: bool = False,
) -> None:
    """Compare topical strategies on webs where the relevant pages are known; every request counts.

    Parameters
    ----------
    seeds
        number of webs, each with its own topic and words
    budget
        requests per run
    sites
        sites per web
    templates
        page templates and worlds: those reserved for measuring, those with other engines and letters, or those used for
        tuning
    plot
        SVG file for recall over requests
    curves
        with --json, also print the whole curves
    """
    s = session()
    family: Family = "held_out" if templates == "held-out" else templates
    result = evaluate(seeds=seeds, budget=budget, sites=sites, family=family, progress=s.say)
    if plot is not None:
        plot.write_text(recall_chart(result), encoding="utf-8")
        s.say(f"plot in {plot}")
    if s.json:
        runs = result.runs if curves else tuple(msgspec.structs.replace(run, curve=()) for run in result.runs)
        s.emit(msgspec.structs.replace(result, runs=runs))
        return
    s.table(
        ("strategy", "harvest", "per request", "recall", f"webs at recall {RECALL}", "harvest there", "requests there"),
        [
            (
                row.strategy,
                _shown(row.harvest),
                _shown(row.per_request),
                _shown(row.recall),
                f"{row.reached}/{result.seeds}",
                _shown(row.harvest_at_recall),
                f"{row.requests_at_recall.mean:.0f}" if row.requests_at_recall else "-",
            )
            for row in result.rows
        ],
    )
    best = result.advantage
    s.write(
        f"adaptive against {result.best_baseline}, the best baseline, at equal recall: "
        f"{best.mean:.2f} times the documents per request (95 % {best.low:.2f} to {best.high:.2f})"
    )


def _shown(value: Interval | None) -> str:
    return f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]" if value else "-"
