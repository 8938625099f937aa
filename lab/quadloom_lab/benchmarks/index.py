"""CPU cost of indexing and searching: `python -m quadloom_lab.benchmarks.index [refresh|growth|search] …`.

refresh  pages per CPU-second when 2–3 of 30 statements changed: difference against drop-and-insert, in turn
growth   CPU-ms per new page at 1 M quads against 50 k quads, in turn
search   keyword p50 and p95 on 300,000 documents, milliseconds of CPU and of the clock
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
from quadloom.stores.protocols.text import SearchRequest, TextDocument
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.stores.text.tantivy import TantivyText

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


def search(documents: int = 300_000, words: int = 60, questions: int = 300) -> None:
    draw = random.Random(7)
    vocabulary = [f"{a}{b}" for a in WORDS for b in WORDS[:100]]
    weights = [1.0 / (rank + 5) for rank in range(len(vocabulary))]  # like real words: few common, most rare
    with tempfile.TemporaryDirectory() as folder:
        index = TantivyText(Path(folder) / "text")
        used = cpu(lambda: _fill_text(index, documents, words, vocabulary, weights, draw))
        print(f"{documents:,} documents of {words} words: {used / documents * 1e6:.0f} CPU-µs a document")
        clock, spent = [], []
        for number in range(questions):
            text = " ".join(draw.choices(vocabulary[:5000], weights[:5000], k=1 + number % 2))
            started, cpu_started = time.perf_counter(), time.process_time()
            index.search(SearchRequest(text=text, limit=10))
            clock.append((time.perf_counter() - started) * 1000)
            spent.append((time.process_time() - cpu_started) * 1000)
        index.close()
    for name, values in (("clock", clock), ("CPU", spent)):
        quantiles = statistics.quantiles(values, n=20)
        print(f"{name:>6}  p50 {statistics.median(values):.2f} ms  p95 {quantiles[18]:.2f} ms")


def _fill_text(
    index: TantivyText, documents: int, words: int, vocabulary: list[str], weights: list[float], draw: random.Random
) -> None:
    for start in range(0, documents, 10_000):
        stock = draw.choices(vocabulary, weights, k=words * 10_000)
        index.put(
            [
                TextDocument(
                    id=f"http://h{n % 500}.example/{n}",
                    title=" ".join(stock[at * words : at * words + 4]),
                    body=" ".join(stock[at * words : (at + 1) * words]),
                    site=f"h{n % 500}.example",
                    kind="html",
                    fetched_at=1.7e9,
                )
                for at, n in enumerate(range(start, min(start + 10_000, documents)))
            ]
        )
        index.commit()


if __name__ == "__main__":
    known: dict[str, Callable[[], None]] = {"refresh": refresh, "growth": growth, "search": search}
    for chosen in sys.argv[1:] or known:
        known[chosen]()
