"""CPU cost of indexing quads: `python -m quadloom_lab.benchmarks.index [refresh|growth] …`.

refresh  pages per CPU-second when 2–3 of 30 statements changed: difference against drop-and-insert, in turn
growth   CPU-ms per new page at 1 M quads against 50 k quads, in turn
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyoxigraph as ox

from quadloom.model.quads import Quads, line_fingerprints
from quadloom.stores.quads.oxigraph import OxigraphQuads

QUADS = 30
WORDS = [
    f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "io", "ou") for c in ("lan", "ter", "mos", "vik", "dra")
]


def page(number: int, revision: int = 0) -> Quads:
    """Thirty statements; three of them depend on the revision."""
    draw = random.Random(number)
    graph = f"http://host{number % 2000}.example/page/{number}"
    lines = []
    for place in range(QUADS):
        changing = f" revision {revision}" if place % 10 == 0 else ""
        text = " ".join(draw.choices(WORDS, k=8)) + changing
        lines.append(f'<{graph}#thing{place // 6}> <http://schema.org/p{place}> "{text}" <{graph}> .\n')
    return Quads.of(graph, "".join(sorted(lines)).encode())


def cpu(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def refresh(pages: int = 100, rounds: int = 15, base: int = 5_000) -> None:
    """Both ways in turn, round by round, because the machine's speed drifts; the ratio is the median of the rounds'."""
    with tempfile.TemporaryDirectory() as folder:
        store = OxigraphQuads(Path(folder) / "difference")
        engine = ox.Store(str(Path(folder) / "dropped"))
        for start in range(0, base, 500):
            batch = [page(number) for number in range(start, start + 500)]
            store.insert_new(batch)
            engine.bulk_load(b"".join(item.nquads for item in batch), ox.RdfFormat.N_QUADS)
        store.optimize()  # as an idle crawl does; for both
        engine.optimize()
        costs: dict[str, list[float]] = {"difference": [], "drop and insert": [], "nothing changed": []}
        for turn in range(rounds):
            numbers = range(turn * pages, (turn + 1) * pages)
            changed = [page(number, 1) for number in numbers]
            known = [line_fingerprints(page(number).nquads) for number in numbers]
            ways: list[tuple[str, Callable[[], object]]] = [
                ("difference", partial(_replace, store, changed, known)),
                ("drop and insert", partial(_drop_and_insert, engine, changed)),
            ]
            for name, way in ways if turn % 2 else reversed(ways):
                costs[name].append(cpu(way) / pages)
            costs["nothing changed"].append(cpu(partial(_replace, store, changed)) / pages)
        store.close()
    ratios = [dropped / by for by, dropped in zip(costs["difference"], costs["drop and insert"], strict=True)]
    for name, each in costs.items():
        print(f"{name:16} {1 / statistics.median(each):8.0f} pages per CPU-s")
    print(f"ratio {_spread(ratios)}")


def _replace(store: OxigraphQuads, items: list[Quads], known: list[bytes] | None = None) -> None:
    for item, fingerprints in zip(items, known or [b""] * len(items), strict=True):
        store.replace(item, fingerprints)


def _drop_and_insert(engine: ox.Store, items: list[Quads]) -> None:
    for item in items:
        tail = f" <{item.graph}> ."
        triples = item.nquads.decode().replace(tail, " .")
        engine.update(f"DROP SILENT GRAPH <{item.graph}> ; INSERT DATA {{ GRAPH <{item.graph}> {{ {triples} }} }}")


def growth(small: int = 50_000, large: int = 1_000_000, rounds: int = 12, batch: int = 128) -> None:
    """Two stores take the same new pages in turn."""
    with tempfile.TemporaryDirectory() as folder:
        stores = {size: OxigraphQuads(Path(folder) / str(size)) for size in (small, large)}
        for size, store in stores.items():
            for start in range(0, size // QUADS, 1000):
                store.insert_new([page(number) for number in range(start, start + 1000)])
            store.optimize()
        costs: dict[int, list[float]] = {size: [] for size in stores}
        for turn in range(rounds):
            start = large + turn * batch
            new = [page(number) for number in range(start, start + batch)]
            for size in (small, large) if turn % 2 else (large, small):
                costs[size].append(cpu(partial(stores[size].insert_new, new)) / batch)
        for store in stores.values():
            store.close()
    for size, each in costs.items():
        print(f"{size:>9,} quads  {statistics.median(each) * 1000:.3f} CPU-ms per new page of {QUADS} quads")
    print(f"ratio {_spread([more / less for less, more in zip(costs[small], costs[large], strict=True)])}")


def _spread(values: list[float]) -> str:
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.2f} (middle half {low:.2f} to {high:.2f}, {len(values)} rounds)"


if __name__ == "__main__":
    known: dict[str, Callable[[], None]] = {
        "refresh": refresh,
        "growth": growth,
    }
    for chosen in sys.argv[1:] or known:
        known[chosen]()
