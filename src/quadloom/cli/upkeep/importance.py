"""`quadloom importance`: the importance of all pages, computed now."""

from __future__ import annotations

from quadloom.cli.progress import Progress
from quadloom.cli.session import session
from quadloom.cli.upkeep.bulk import runner_of_many_jobs
from quadloom.warehouse import Warehouse


def importance(
    *,
    limit: int = 20,
    workers: int = 1,
    ray: str | None = None,
    resume: bool = False,
) -> None:
    """Compute the importance of all pages from all links, and print the most important ones.

    Crawls compute it by themselves every freshness.importance_every, and take up what this command has computed if that
    is younger. On a shared database cluster.links must be set; the command may run beside the workers.

    Parameters
    ----------
    limit
        number of pages to print
    workers
        processes that compute; more than one pays from some million pages on, 0 = one per core
    ray
        address of a Ray cluster (auto, local, ray://host:10001) whose machines compute; they need cluster.links, too
    resume
        with several processes or machines: go on after an interrupted run
    """
    s = session()
    with (
        runner_of_many_jobs(s, workers, ray) as runner,
        Warehouse.open(s.warehouse, settings=s.settings) as warehouse,
        Progress(s, "importance", unit="passes") as progress,
    ):
        report = warehouse.rank(
            runner=runner,
            resume=resume,
            limit=limit,
            progress=lambda passes, _error: progress.show(passes),
        )
    if s.json:
        s.emit({"pages": report.pages, "top": [{"url": url, "importance": value} for url, value in report.top]})
        return
    s.table(["page", "importance"], report.top)
    s.say(f"{report.pages:,} pages ranked; 1 is the mean of all")
