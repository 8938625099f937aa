"""Ask every engine every question: MRR, success at 1 and at 5, CPU time of a query, bytes per page of its index.

All languages are in one index, as in a real warehouse. MRR is the mean of 1 / rank of the right page among the first
ten, 0 if it is not there.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from quadloom.documents.pipeline import process_page
from quadloom.model.page import Page
from quadloom.model.text import TextDocument
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom_lab.benchmarks.search.engines import Engine, engines
from quadloom_lab.benchmarks.search.known_items import KINDS, KnownItems, KnownPage, Question, known_items, lexicons

_DEPTH = 10
_FETCHED = 1_780_000_000.0


class Score(msgspec.Struct, frozen=True):
    """Of one engine for one language and one kind of question; `kind` "all" is the mean of all questions."""

    engine: str
    language: str
    kind: str
    questions: int
    mrr: float
    first: float  # share of questions with the right page first
    five: float  # … among the first five


class EngineCost(msgspec.Struct, frozen=True):
    engine: str
    cpu_ms: float  # of a query, mean
    cpu_ms_p95: float
    bytes_per_page: float


class SearchQuality(msgspec.Struct, frozen=True):
    pages: int
    scores: tuple[Score, ...]
    costs: tuple[EngineCost, ...]

    def score(self, engine: str, language: str, kind: str) -> Score:
        return next(s for s in self.scores if (s.engine, s.language, s.kind) == (engine, language, kind))


def evaluate(
    *,
    languages: Sequence[str] = (),
    questions: int = 40,
    seed: int = 1,
    make: Callable[[Path], list[Engine]] = engines,
    progress: Callable[[str], None] = lambda _text: None,
) -> SearchQuality:
    """Without `languages`: all there are word lists for."""
    known = lexicons()
    items = [known_items(name, known[name], seed=seed, questions=questions) for name in languages or known]
    documents = [document_of(page) for item in items for page in item.pages]
    scores: list[Score] = []
    costs: list[EngineCost] = []
    with tempfile.TemporaryDirectory(prefix="quadloom-search-") as temporary:
        for engine in make(Path(temporary)):
            progress(f"{engine.name}: {len(documents)} pages")
            with closing(engine):
                engine.fill(documents)
                ranks, spent = _ask_all(engine, [question for item in items for question in item.questions])
            folder = Path(temporary) / engine.name.split()[-1]
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            scores += _scores(engine.name, items, ranks)
            costs.append(
                EngineCost(
                    engine.name,
                    round(statistics.mean(spent) * 1000, 3),
                    round(statistics.quantiles(spent, n=20)[18] * 1000, 3),
                    round(size / len(documents), 1),
                )
            )
    return SearchQuality(len(documents), tuple(scores), tuple(costs))


def document_of(page: KnownPage) -> TextDocument:
    """What the crawl would put into the index of this page."""
    headers = (("content-type", "text/html; charset=utf-8"),)
    fetched = Page(page.url, page.url, 200, headers, page.html, _FETCHED, 0.0)
    text = process_page(fetched, Visit(page.url, page.url, f"{page.language}.example", 0), Settings(), ()).text
    assert text is not None, page.url
    return text


def _ask_all(engine: Engine, questions: Iterable[Question]) -> tuple[dict[Question, int], list[float]]:
    ranks: dict[Question, int] = {}
    spent: list[float] = []
    for question in questions:
        started = time.process_time()
        found = engine.ask(question.text, _DEPTH)
        spent.append(time.process_time() - started)
        ranks[question] = found.index(question.url) + 1 if question.url in found else 0
    return ranks, spent


def _scores(engine: str, items: Sequence[KnownItems], ranks: dict[Question, int]) -> list[Score]:
    scores = []
    for item in items:
        for kind in (*KINDS, "all"):
            asked = [ranks[question] for question in item.questions if kind in ("all", question.kind)]
            scores.append(
                Score(
                    engine,
                    item.language,
                    kind,
                    len(asked),
                    round(statistics.mean(1 / rank if rank else 0.0 for rank in asked), 3),
                    round(statistics.mean(rank == 1 for rank in asked), 3),
                    round(statistics.mean(0 < rank <= 5 for rank in asked), 3),
                )
            )
    return scores
