"""`quadloom importance`: the importance of all pages, computed now."""

from __future__ import annotations

from quadloom.cli.options import Ray, Resume, Workers
from quadloom.cli.progress import Progress
from quadloom.cli.session import session
from quadloom.cli.upkeep.bulk import runner_of_many_jobs


def importance(
    *,
    limit: int = 20,
    workers: Workers = 1,
    ray: Ray = None,
    resume: Resume = False,
) -> None:
    """Compute the importance of all pages from all links, and print the most important ones.

    A crawl does this every freshness.importance_every, and uses the result of this command if that is newer. On a
    shared database cluster.links must be set; the command may run beside the workers. More than one process pays from
    some million pages on.

    Parameters
    ----------
    limit
        number of pages to print
    """
    s = session()
    with (
        runner_of_many_jobs(s, workers, ray) as runner,
        s.open() as warehouse,
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
