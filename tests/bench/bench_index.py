"""What indexing and searching cost, in CPU time: `python tests/bench/bench_index.py [refresh|growth|search] …`.

refresh  pages per CPU-second when 2–3 of 30 statements changed: difference against drop-and-insert, in the same run
growth   CPU-ms per new page at 1 M quads against 50 k quads
search   keyword p50 and p95 on 300,000 documents, milliseconds of CPU and of the clock
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox

from quadloom.model.quads import Quads, line_fingerprints
from quadloom.stores.oxigraph_quads import OxigraphQuads
from quadloom.stores.protocols import SearchRequest, TextDocument
from quadloom.stores.tantivy_text import TantivyText

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


def cpu(action: Callable[[], None]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def refresh(pages: int = 600, base: int = 5_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = OxigraphQuads(Path(folder) / "difference")
        engine = ox.Store(str(Path(folder) / "dropped"))
        for start in range(0, base, 500):
            batch = [page(number) for number in range(start, start + 500)]
            store.insert_new(batch)
            engine.bulk_load(b"".join(item.nquads for item in batch), ox.RdfFormat.N_QUADS)
        store.optimize()  # as an idle crawl does; both sides alike
        engine.optimize()
        changed = [page(number, 1) for number in range(pages)]
        known = [line_fingerprints(page(number).nquads) for number in range(pages)]
        by_difference = cpu(lambda: [store.replace(*pair) for pair in zip(changed, known, strict=True)] and None)
        by_dropping = cpu(lambda: [_drop_and_insert(engine, item) for item in changed] and None)
        same = cpu(lambda: [store.replace(item) for item in changed] and None)
        store.close()
    print(f"difference       {pages / by_difference:8.0f} pages per CPU-s")
    print(f"drop and insert  {pages / by_dropping:8.0f} pages per CPU-s   ratio {by_dropping / by_difference:.1f}")
    print(f"nothing changed  {pages / same:8.0f} pages per CPU-s")


def _drop_and_insert(engine: ox.Store, item: Quads) -> None:
    tail = f" <{item.graph}> ."
    triples = item.nquads.decode().replace(tail, " .")
    engine.update(f"DROP SILENT GRAPH <{item.graph}> ; INSERT DATA {{ GRAPH <{item.graph}> {{ {triples} }} }}")


def growth(small: int = 50_000, large: int = 1_000_000, measured: int = 3_840) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = OxigraphQuads(Path(folder) / "quads")
        costs = []
        done = 0
        for size in (small, large):
            while done * QUADS < size:
                store.insert_new([page(number) for number in range(done, done + 1000)])
                done += 1000
            batches = [[page(n) for n in range(start, start + 128)] for start in range(done, done + measured, 128)]
            costs.append(cpu(lambda given=batches: [store.insert_new(batch) for batch in given] and None) / measured)
            done += measured
            print(f"{size:>9,} quads  {costs[-1] * 1000:.3f} CPU-ms per new page of {QUADS} quads")
        store.close()
    print(f"ratio {costs[1] / costs[0]:.2f}")


def search(documents: int = 300_000, words: int = 60, questions: int = 300) -> None:
    draw = random.Random(7)
    vocabulary = [f"{a}{b}" for a in WORDS for b in WORDS[:100]]
    weights = [1.0 / (rank + 5) for rank in range(len(vocabulary))]  # as words are: few common, most rare
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
    known = {"refresh": refresh, "growth": growth, "search": search}
    for chosen in sys.argv[1:] or known:
        known[chosen]()
