"""A lake of ten million quads: what a sync costs and how long DuckDB takes for a join. By hand, about five minutes:

    python -m quadloom_lab.benchmarks.lake [quads]

The catalog and the quad store are generated on the fly: 25 quads a page, 500 pages a host. Everything from there on is
the product's: plan, rows, sorting, files, manifests, views. Generated statements repeat themselves, so bytes per quad
are less than in life.
"""

from __future__ import annotations

import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

from quadloom.maintenance.lake.place import place_of
from quadloom.maintenance.lake.query import ask
from quadloom.maintenance.lake.sync import LakeReport, sync, sync_part
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.url import fingerprint
from quadloom.process.bulk_tasks import BulkJob, TaskResult
from quadloom.settings import Settings
from quadloom.stores.opened import Stores

T = TypeVar("T")
_QUADS = 25
_PAGES_PER_HOST = 500
_SCHEMA = "https://schema.org/"
_PROPERTIES = ("name", "startDate", "location", "offers", "description", "image", "organizer", "url")
QUESTIONS = {
    "join of quads and pages": """
        SELECT p.host, count(*) AS n FROM quads q JOIN pages p USING (page)
        WHERE q.predicate = 'https://schema.org/name' GROUP BY 1 ORDER BY 2 DESC LIMIT 10""",
    "self-join of quads: events with name and date": """
        SELECT count(*) FROM quads a JOIN quads b ON a.subject = b.subject AND a.page = b.page
        WHERE a.predicate = 'https://schema.org/name' AND b.predicate = 'https://schema.org/startDate'""",
    "self-join of all quads by subject": """
        SELECT count(*) FROM quads a JOIN quads b ON a.subject = b.subject AND a.page = b.page
        WHERE b.predicate = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type'""",
    "count by predicate": "SELECT predicate, count(*) FROM quads GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
}


class GeneratedPages:
    """A catalog and a quad store of pages that are made when they are asked for."""

    def __init__(self, pages: int) -> None:
        self._urls = [f"http://host{n // _PAGES_PER_HOST}.example/page/{n}" for n in range(pages)]
        self._numbers = {fingerprint(url): number for number, url in enumerate(self._urls)}
        self._sorted = sorted(self._numbers)
        self.changed: set[int] = set()

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        start = bisect_right(self._sorted, after)
        return [self._row(key) for key in self._sorted[start : start + limit]]

    def pages(self, fingerprints: Sequence[int], *, lock: bool = False) -> dict[int, PageRow]:
        return {key: self._row(key) for key in fingerprints}

    def graph(self, graph: str) -> bytes:
        number = int(graph.rpartition("/")[2])
        lines = []
        for thing in range(3):
            subject = f"<{graph}#thing-{thing}>"
            lines.append(f"{subject} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{_SCHEMA}Event> <{graph}> .")
            for place, name in enumerate(_PROPERTIES[: 7 + (thing == 0)]):
                lines.append(f'{subject} <{_SCHEMA}{name}> "{name} of thing {thing} {number * place}"@en <{graph}> .')
        return "\n".join(lines).encode()

    def _row(self, key: int) -> PageRow:
        number = self._numbers[key]
        url = self._urls[number]
        visits = 1 + (number in self.changed)
        digest = number.to_bytes(8, "big") + bytes([visits])
        return PageRow(
            fingerprint=key,
            key=url,
            href=url,
            host=url.split("/")[2],
            status=200,
            outcome=Outcome.NEW,
            kind="html",
            title=f"Page {number}",
            fetched_at=1e9 + number + visits,
            visits=visits,
            quads=_QUADS,
            quads_digest=digest,
            indexed_quads=digest,
        )


def main(quads: int) -> None:
    generated = GeneratedPages(quads // _QUADS)
    with tempfile.TemporaryDirectory(prefix="quadloom-bench-") as folder:
        path = Path(folder)
        stores = cast(
            Stores,
            SimpleNamespace(
                path=path,
                settings=Settings(),
                catalog=generated,
                quads=generated,
                places=SimpleNamespace(links=path / "links"),
            ),
        )

        def run(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
            return (TaskResult(task, sync_part(stores, task, job.argument)) for task in tasks)

        def synced() -> LakeReport:
            return sync(stores, parts=16, runner=run)

        report = _timed("first sync", synced)
        quads = report.rows["quads"]
        print(f"  {quads} quads in {report.files} files, {report.bytes / quads:.1f} bytes each")
        _timed("sync without a change", synced)
        generated.changed = set(range(0, quads // _QUADS, 1000))
        print(f"  {_timed('sync after one page in a thousand changed', synced).written} pages written")
        place = place_of(path, Settings())
        for name, sql in QUESTIONS.items():
            for _ in range(2):
                rows = _timed(name, lambda sql=sql: ask(place, sql).rows)  # type: ignore[misc]
            print(f"  {len(rows)} rows")


def _timed(name: str, action: Callable[[], T]) -> T:
    wall, cpu = time.monotonic(), time.process_time()
    result = action()
    print(f"{name}: {time.monotonic() - wall:.2f} s, {time.process_time() - cpu:.2f} CPU-s", flush=True)
    return result


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
