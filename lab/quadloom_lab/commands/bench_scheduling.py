"""`quadloom bench scheduling`: the figures that the scheduler is judged by, made anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom_lab.scheduling.figures import LearnedFreshness, closed_forms, learned_rates, real_history


def scheduling(*, history: Path | None = None, pages: int = 1000) -> None:
    """Compare refresh policies in closed form, learned with known rates, and both on a real history of changes.

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
