"""All workers as one record: what they said last, and what follows from their silence."""

from __future__ import annotations

from quadloom.crawling.cluster.beat import MachineState, WorkerBeat, read_beat, with_waits
from quadloom.crawling.cluster.view import cluster_view, merged_report
from quadloom.crawling.run.report import CrawlReport
from quadloom.stores.protocols.cluster import WorkerRow


def row(name: str, *, silent: float = 0.0, alive: bool = True, **beat: object) -> WorkerRow:
    record = WorkerBeat(machine=MachineState(host=name, cores=2), heartbeat=3.0, **beat).encode()  # type: ignore[arg-type]
    return WorkerRow(f"{name}:1", alive, silent, 0.0, True, 10, record)


def test_a_worker_that_says_nothing_is_silent_then_dead() -> None:
    view = cluster_view([row("a"), row("b", silent=8.0), row("c", silent=10.0), row("d", silent=21.0, alive=False)])
    assert [worker.state for worker in view.workers] == ["running", "running", "silent", "dead"]
    assert [worker.name for worker in view.alive] == ["a", "b", "c"]


def test_a_wrong_clock_and_what_is_away_are_in_the_view() -> None:
    view = cluster_view([row("a", clock_error=300.0, report=CrawlReport(waits_for={"the archive": 5.0}))])
    assert view.workers[0].clock_error == 300.0 and view.workers[0].waits_for == {"the archive": 5.0}


def test_the_record_says_what_the_crawl_waits_for_while_its_thread_cannot() -> None:
    record = WorkerBeat(report=CrawlReport(pages=7, waits_for={"the network": 1.0})).encode()
    beat = read_beat(with_waits(record, {"the archive": 2.0}))
    assert beat.report.pages == 7 and beat.report.waits_for == {"the network": 1.0, "the archive": 2.0}


def test_the_whole_is_of_the_living_on_all_their_cores() -> None:
    rows = [row("a", report=CrawlReport(denied=3)), row("b", report=CrawlReport(denied=4)), row("c", alive=False)]
    whole = merged_report(rows)
    assert whole is not None and whole.denied == 7
    assert cluster_view(rows).machines == (4, 2)
