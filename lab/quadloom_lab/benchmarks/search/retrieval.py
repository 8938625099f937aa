"""How well engines answer the questions of a test collection: nDCG@10, MAP, MRR and recall, each at 100 documents, with
confidence intervals.

An interval is that of 95 % of the means of 2,000 samples of the questions (bootstrap). Differences are those of the
same questions, so that an interval without 0 is a difference.
"""

from __future__ import annotations

import html
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from quadloom.documents.pipeline import process_page
from quadloom.model.page import Page
from quadloom.model.text import TextDocument
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom_lab.benchmarks.search.collections import Collection, Judged
from quadloom_lab.benchmarks.search.engines import Engine, Fts5AnyWord, PlainTantivy, QuadloomEngine

MEASURES = ("nDCG@10", "MAP", "MRR", "recall@100")
_DEPTH = 100
_SAMPLES = 2000
_FETCHED = 1_780_000_000.0
_SITE = "http://collection.example/"


class Estimate(msgspec.Struct, frozen=True):
    """A mean over questions, and its interval."""

    mean: float
    low: float
    high: float


class EngineAnswers(msgspec.Struct, frozen=True):
    """`ahead`: Quadloom's mean minus this engine's, by measure. `unanswered`: questions without any document."""

    engine: str
    measures: dict[str, Estimate]
    ahead: dict[str, Estimate]
    unanswered: int
    cpu_ms: float  # of a question, mean
    cpu_ms_p95: float


def retrieval(
    collection: Collection, *, seed: int = 1, progress: Callable[[str], None] = lambda _text: None
) -> list[EngineAnswers]:
    """Of Quadloom first, then of the engines that it is compared with."""
    documents = [_page(document) for document in collection.documents]
    found: list[tuple[str, dict[str, list[float]], int, list[float]]] = []
    with tempfile.TemporaryDirectory(prefix="quadloom-search-") as temporary:
        folder = Path(temporary)
        engines: list[Engine] = [QuadloomEngine(folder / "quadloom")]
        engines += (Fts5AnyWord(folder / "fts5"), PlainTantivy(folder / "tantivy"))
        for engine in engines:
            progress(f"{engine.name}: {len(documents)} documents, {len(collection.questions)} questions")
            with closing(engine):
                engine.fill(documents)
                found.append(_asked(engine, collection))
    own = found[0][1]
    return [
        EngineAnswers(
            name,
            {measure: _estimate(values[measure], seed) for measure in MEASURES},
            {
                measure: _estimate(
                    [one - other for one, other in zip(own[measure], values[measure], strict=True)], seed
                )
                for measure in MEASURES
            },
            unanswered,
            statistics.mean(spent) * 1000,
            statistics.quantiles(spent, n=20)[18] * 1000,
        )
        for name, values, unanswered, spent in found
    ]


def _page(document: Judged) -> TextDocument:
    """As the crawl of a page with this title and text would index it."""
    url = f"{_SITE}{document.id}"
    title = html.escape(document.title)
    body = f"<html><title>{title}</title><main><h1>{title}</h1><p>{html.escape(document.text)}</p></main></html>"
    headers = (("content-type", "text/html; charset=utf-8"),)
    fetched = Page(url, url, 200, headers, body.encode("utf-8", "replace"), _FETCHED, 0.0)
    text = process_page(fetched, Visit(url, url, "collection.example", 0), Settings(), ()).text
    assert text is not None, url
    return msgspec.structs.replace(text, id=url)


def _asked(engine: Engine, collection: Collection) -> tuple[str, dict[str, list[float]], int, list[float]]:
    values: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    spent: list[float] = []
    unanswered = 0
    for question in collection.questions:
        started = time.process_time()
        ids = engine.ask(question.text or question.title, _DEPTH)
        spent.append(time.process_time() - started)
        unanswered += not ids
        gains = collection.gains[question.id]
        graded = [gains.get(id.removeprefix(_SITE), 0) for id in ids]
        for measure, value in _measured(graded, gains).items():
            values[measure].append(value)
    return engine.name, values, unanswered, spent


def _measured(graded: Sequence[int], gains: dict[str, int]) -> dict[str, float]:
    """`graded`: gains of what was found, best first."""
    useful = sum(gain > 0 for gain in gains.values())
    hits = [place for place, gain in enumerate(graded, 1) if gain > 0]
    ideal = _discounted(sorted(gains.values(), reverse=True))
    return {
        "nDCG@10": _discounted(graded) / ideal if ideal else 0.0,
        "MAP": sum(number / place for number, place in enumerate(hits, 1)) / useful,
        "MRR": 1 / hits[0] if hits else 0.0,
        "recall@100": len(hits) / useful,
    }


def _discounted(graded: Sequence[int]) -> float:
    return sum((2.0**gain - 1.0) / math.log2(place + 1) for place, gain in enumerate(graded[:10], 1))


def _estimate(values: Sequence[float], seed: int) -> Estimate:
    chance = random.Random(seed)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(_SAMPLES))
    return Estimate(statistics.fmean(values), means[_SAMPLES // 40], means[-_SAMPLES // 40])
