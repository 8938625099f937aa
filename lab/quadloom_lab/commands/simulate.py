"""`quadloom simulate`: refresh policies and estimators side by side on webs whose every change is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom_lab.scheduling.simulated_web import Process, WebShape
from quadloom_lab.scheduling.simulator import Estimator, SimulatedPolicy, SimulationPlan, run

Processes = Annotated[list[Process] | None, Parameter(negative="")]
Policies = Annotated[list[SimulatedPolicy] | None, Parameter(negative="")]
Estimators = Annotated[list[Estimator] | None, Parameter(negative="")]


def simulate(
    *,
    process: Processes = None,
    policy: Policies = None,
    estimator: Estimators = None,
    pages: int = 2000,
    days: float = 365.0,
    per_page: float = 0.1,
    min_interval: float = 0.0,
    history: Path | None = None,
    plot: Path | None = None,
    seed: int = 1,
) -> None:
    """Run policies and estimators on simulated webs, or on a real history of changes, and compare freshness.

    Parameters
    ----------
    process
        how pages change; may be repeated
    policy
        what the schedule optimises; may be repeated
    estimator
        what the scheduler knows: true rates, bits (changed or not), honest or lying dates and sitemap lastmods
        (believed, or checked: +trust), push; may be repeated
    pages
        pages of the simulated web
    days
        length of the simulation
    per_page
        bandwidth: reads per page and day
    min_interval
        shortest time between two reads of a page, days
    history
        replay this file of real changes instead
    plot
        write freshness over time to this .svg or .png (which needs the extra `plots`)
    seed
        of the random numbers
    """
    s = session()
    if pages < 1 or days <= 0.0 or per_page <= 0.0:
        raise UsageError("pages, days and per-page must be positive", hint="the defaults are 2000, 365 and 0.1")
    if history is not None and not history.is_file():
        raise UsageError(f"no file at {history}", hint="give a CSV file with the columns page and changed_at")
    report = run(
        tuple(process or ("poisson",)),
        tuple(policy or ("uniform", "xyleme", "freshness", "harmonic")),
        tuple(estimator or ("known", "bits")),
        shape=msgspec.structs.replace(WebShape(), pages=pages, days=days),
        plan=SimulationPlan(per_page=per_page, min_interval=min_interval, warm_up=min(100.0, days / 4.0)),
        history=history,
        seed=seed,
    )
    if s.json:
        for row in report.rows:
            s.emit(row)
    else:
        s.write(report.table())
    if plot is not None:
        report.save(plot)
        s.say(f"wrote {plot}")
