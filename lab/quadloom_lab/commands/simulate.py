"""`quadloom simulate`, `quadloom bench scheduling` and `first-reads`: what to read again, and what to read first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom_lab.scheduling.figures import LearnedFreshness, closed_forms, learned_rates, real_history
from quadloom_lab.scheduling.first_reads import MARKS, compare, graph_of_folder, simulated_graph
from quadloom_lab.scheduling.simulated_web import Process, WebShape
from quadloom_lab.scheduling.simulator import Estimator, SimulatedPolicy, SimulationPlan, run

Processes = list[Process] | None
Policies = list[SimulatedPolicy] | None
Estimators = list[Estimator] | None
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


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
    """Compare the freshness of policies and estimators on simulated webs, or on a real history of changes.

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
        bandwidth, as reads per page and day
    min_interval
        shortest time between two reads of a page, days
    history
        CSV file of real changes to replay instead
    plot
        write freshness over time to this .svg or .png (which needs the extra `plots`)
    seed
        seed of the random numbers
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


def scheduling(*, history: Path | None = None, pages: int = 1000) -> None:
    """Compare refresh policies in closed form, learned with known change rates, and both on a real history of changes.

    Parameters
    ----------
    history
        CSV file (gzipped or not) of real changes, with the columns page and changed_at in unix seconds
    pages
        pages of the simulated webs
    """
    s = session()
    if pages < 1:
        raise UsageError("pages must be positive", hint="the default is 1000")
    if history is not None and not history.is_file():
        raise UsageError(f"no file at {history}", hint="give a CSV file with the columns page and changed_at")
    closed, learned = closed_forms(), learned_rates(pages)
    replayed = [] if history is None else real_history(history)
    if s.json:
        s.emit({"closed_forms": closed, "learned_rates": learned, "real_history": replayed})
        return
    s.table(
        ("reads per page and day", "policy", "weighted freshness", "COST", "harmonic", "starved"),
        [
            (
                f"{r.per_page:g}",
                r.policy,
                f"{r.freshness:.4f}",
                f"{r.cost:.4f}",
                f"{r.harmonic:.4f}",
                f"{r.starved:.1%}",
            )
            for r in closed
        ],
    )
    s.table(("simulated web", "rates", "weighted freshness", "of known"), _rows(learned))
    if replayed:
        s.table(("real history", "rates", "weighted freshness", "of known"), _rows(replayed))


def _rows(found: Sequence[LearnedFreshness]) -> list[tuple[str, str, str, str]]:
    return [(r.policy, r.estimator, f"{r.freshness:.4f}", f"{r.kept:.2%}") for r in found]


def first_reads(*, folder: Path | None = None, pages: int = 20_000, seed: int = 1) -> None:
    """Compare orders of first reads on a simulated web, or on the links between the HTML files of a folder.

    It prints the share of all importance that was read after a share of all pages.

    Parameters
    ----------
    folder
        a saved site, or the documentation of a program; each folder directly below it counts as a host
    pages
        most pages
    seed
        seed of the simulated web
    """
    s = session()
    if folder is not None and not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint="give a folder with HTML files that link to each other")
    graph = graph_of_folder(folder, most=pages) if folder else simulated_graph(pages, max(2, pages // 100), seed)
    rows = compare(graph, _SHARES)
    if s.json:
        s.emit({"pages": len(graph.urls), "links": sum(map(len, graph.links)), "orders": rows})
        return
    s.say(f"{len(graph.urls)} pages, {sum(map(len, graph.links))} links")
    s.table(
        ("order", "guided share", *(f"at {mark:.0%} of pages" for mark in MARKS), "mean"),
        [
            (
                row.order,
                f"{row.guided_share:g}" if row.order == "breadth-first" else "-",
                *(f"{x:.3f}" for x in row.at),
                f"{row.mean:.4f}",
            )
            for row in rows
        ],
    )
