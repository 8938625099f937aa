"""Classes and properties counted again, page by page: each task counts a range of pages, and the counts are summed.

A crawl counts as it goes (`quadloom.asking.statistics`). Counting again is for a cluster in which a worker was killed,
which has not counted the pages that it was indexing, and for stores that something else has written to.
"""

from __future__ import annotations

from collections.abc import Callable

from quadloom.asking.export.selection import Selection, StoredPages
from quadloom.maintenance.parallel.jobs import warehouse_job
from quadloom.maintenance.parallel.ranges import range_of, range_tasks
from quadloom.maintenance.parallel.results import TaskFolder
from quadloom.process.bulk_tasks import Runner
from quadloom.stores.opened import Stores
from quadloom.stores.statistics import STATISTICS, Statistics, mark_complete

FOLDER = "statistics.tasks"


def recount(
    stores: Stores, runner: Runner, *, resume: bool = False, progress: Callable[[int, int], None] = lambda _n, _of: None
) -> Statistics:
    """Count again and save the counts. Nothing else may write to the warehouse meanwhile. `progress` gets the number of
    ranges that are done, and that of all."""
    job = warehouse_job("statistics", stores.path, stores.settings)
    results = TaskFolder(stores.path / FOLDER, job, range_tasks(stores.catalog), resume=resume)
    counted = Statistics()
    for number, task in enumerate(results.run(runner), 1):
        counted.add(results.path(task).read_bytes())
        progress(number, len(results.tasks))
    counted.changes = Statistics.saved(stores.catalog).changes  # how much versions changed, the stores cannot tell
    with stores.catalog.transaction():
        STATISTICS.put_encoded_for_all(stores.catalog, counted.encode())
        mark_complete(stores.catalog)
    results.finish()
    return counted


def count_range(stores: Stores, task: str, _argument: bytes) -> bytes:
    """The task of one range of pages. Returns encoded counts."""
    counted = Statistics()
    for row in StoredPages(stores.catalog, stores.quads, stores.archive, *range_of(task)).rows(Selection()):
        counted.count(stores.quads.graph(row.graph))
    return counted.encode()
