"""CPU time of everything between fetch and the stores, by kind of document and by step, in this process.

Steps are functions of Quadloom. Each is replaced by one that measures; what a step calls is counted as its own unless
it is a step, too. The best of several rounds of each page counts: other programs can only make it slower.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

from quadloom.documents.extract import chosen
from quadloom.documents.pipeline import process_page
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.registry import Context
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode
from quadloom_lab.realweb.web import RealPage

_STEPS = (
    ("quadloom.documents.transform", "detect_body", "detect"),
    ("quadloom.documents.syntaxes.registry:Reading", "find_signs", "signs of syntaxes"),
    ("quadloom.documents.transform", "_add_data_links", "links in data"),
    ("quadloom.documents.transform", "_checked", "checks"),
    ("quadloom.documents.syntaxes.registry", "tame", "guard of the parser"),
    ("quadloom.documents.syntaxes.registry", "parse_html", "parse"),
    ("quadloom.documents.syntaxes.html.elements", "elements_of", "elements by number"),
    ("quadloom.documents.syntaxes.html.page", "read_head", "head"),
    ("quadloom.documents.syntaxes.html.page", "read_links", "links"),
    ("quadloom.documents.pipeline", "page_graph", "canonical quads"),
    ("quadloom.documents.pipeline", "text_document", "words for the index"),
    ("quadloom.documents.pipeline", "targets", "targets of links"),
    ("quadloom.documents.pipeline", "discoveries", "new links"),
    ("quadloom.documents.pipeline", "edges", "link matrix"),
)


class KindCost(NamedTuple):
    """Documents of one kind: how many, their mean size in bytes, statements and CPU-ms."""

    kind: str
    pages: int
    size: float
    statements: float
    cost: float


class StepCosts(NamedTuple):
    """CPU-ms per page: of each kind, and of each step over all pages."""

    kinds: list[KindCost]
    steps: list[tuple[str, float]]

    @property
    def total(self) -> float:
        return sum(cost for _, cost in self.steps)


class _Clock:
    """Time of the steps of one page, each without the steps within it."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._inner: list[float] = []

    def measured(self, work: Callable[..., object], name: str) -> Callable[..., object]:
        def run(*arguments: object, **options: object) -> object:
            self._inner.append(0.0)
            started = time.process_time()
            try:
                return work(*arguments, **options)
            finally:
                took = time.process_time() - started
                self.spent[name] += took - self._inner.pop()
                if self._inner:
                    self._inner[-1] += took

        return run


def step_costs(pages: Sequence[RealPage], settings: Settings, rounds: int = 3) -> StepCosts:
    clock = _Clock()
    best: list[tuple[float, dict[str, float], int]] = []
    strategies = chosen(settings.crawl.strategies)
    with _measuring(clock):
        work = clock.measured(process_page, "the rest")
        record = clock.measured(encode, "archive record")
        syntaxes = SYNTAXES
        for turn in range(rounds):
            for number, one in enumerate(pages):
                clock.spent = defaultdict(float)
                page = Page(one.url, one.url, 200, (("content-type", one.content_type),), one.body, 1.7e9, 0.1)
                visit = Visit(one.url, one.url, one.url.split("/")[2], number)
                result = work(page, visit, settings, strategies, None, syntaxes)
                record(page)
                cost = sum(clock.spent.values())
                if turn == 0:
                    best.append((cost, clock.spent, getattr(result, "quads").nquads.count(b"\n")))  # noqa: B009
                elif cost < best[number][0]:
                    best[number] = (cost, clock.spent, best[number][2])
    return _summary(pages, best)


def _summary(pages: Sequence[RealPage], best: list[tuple[float, dict[str, float], int]]) -> StepCosts:
    steps: Counter[str] = Counter()
    by_kind: dict[str, list[tuple[int, float, int]]] = {}
    for page, (cost, spent, statements) in zip(pages, best, strict=True):
        steps.update(spent)
        by_kind.setdefault(page.kind, []).append((len(page.body), cost, statements))
    kinds = [
        KindCost(
            kind,
            len(rows),
            sum(row[0] for row in rows) / len(rows),
            sum(row[2] for row in rows) / len(rows),
            sum(row[1] for row in rows) * 1000 / len(rows),
        )
        for kind, rows in by_kind.items()
    ]
    per_page = [(name, seconds * 1000 / len(pages)) for name, seconds in steps.most_common()]
    return StepCosts(sorted(kinds, key=lambda kind: -kind.pages), per_page)


@contextmanager
def _measuring(clock: _Clock) -> Iterator[None]:
    """Let the clock see the steps, and every syntax as a step of its own."""
    replaced: list[tuple[object, str, object]] = []
    for place, name, label in _STEPS:
        module, _, inside = place.partition(":")
        owner: object = import_module(module)
        owner = getattr(owner, inside) if inside else owner
        replaced.append((owner, name, getattr(owner, name)))
        setattr(owner, name, clock.measured(getattr(owner, name), label))
    phase = import_module("quadloom.documents.transform")
    guarded = phase._guarded

    def by_syntax(context: Context, syntax: str, run: Callable[[Context], None]) -> object:
        name = syntax if getattr(run, "__name__", "") != "read_text" else "text"
        return clock.measured(guarded, f"syntax {name}")(context, syntax, run)

    replaced.append((phase, "_guarded", guarded))
    setattr(phase, "_guarded", by_syntax)  # noqa: B010
    try:
        yield
    finally:
        for owner, name, work in replaced:
            setattr(owner, name, work)
