"""`quadloom bench pages`: what the pages of an archive cost, by their size and by the data that they have."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from selectolax.lexbor import LexborHTMLParser

from quadloom.cli.session import session
from quadloom.documents.transform import transform
from quadloom.errors import UsageError
from quadloom.maintenance.importing.imported_pages import read_files
from quadloom.model.page import Page
from quadloom.settings import AuditSettings, LimitSettings, Settings
from quadloom_lab.charts import Series, line_chart

_ROUNDS = 3
_BINS = 8
_WITHOUT_CHECKS = Settings(audit=AuditSettings(checks=False))
_PAGE_WORDS = frozenset(("html", "meta", "text"))


class PageCost(msgspec.Struct, frozen=True):
    """CPU-ms of one page: the HTML parser alone, transform without the checks of data, and all of transform."""

    kilobytes: float
    syntaxes: tuple[str, ...]
    parser: float
    unchecked: float
    whole: float


class CostRow(msgspec.Struct, frozen=True):
    """Means over a group of pages; `median` and `slowest` are of `whole`."""

    pages: int
    kilobytes: float
    parser: float
    unchecked: float
    whole: float
    median: float
    slowest: float


def pages(
    archives: Annotated[list[Path], Parameter(help="WARC files")],
    /,
    *,
    rounds: Annotated[int, Parameter(help="rounds by turns; the best of a page counts")] = _ROUNDS,
    plot: Annotated[Path | None, Parameter(help="write a chart by size: FILE.svg or FILE.png")] = None,
) -> None:
    """Transform the HTML pages of archives; print CPU-ms by size and by syntax, beside the HTML parser alone."""
    s = session()
    limits = LimitSettings()
    found = read_files(archives, limits, now=time.time(), report=lambda finding: s.write(f"skipped\t{finding.message}"))
    html = [item.page for item in found if "html" in item.page.content_type]
    if not html:
        raise UsageError("these files have no HTML page", hint="name WARC files with responses of type text/html")
    costs = measured(html, rounds)
    by_size, by_syntax = sizes(costs), constructs(costs)
    if plot is not None:
        chart(plot, by_size)
    if s.json:
        s.emit({"sizes": by_size, "syntaxes": by_syntax})
        return
    columns = ["pages", "KB", "parser", "no checks", "transform", "median", "slowest"]
    s.table(["by size", *columns], [("", *_rounded(row)) for row in by_size])
    s.table(["by syntax", *columns], [(name, *_rounded(row)) for name, row in by_syntax.items()])


def measured(html: Sequence[Page], rounds: int) -> list[PageCost]:
    """The best of several rounds for each page, the three by turns."""
    best = [[float("inf")] * 3 for _ in html]
    syntaxes: list[tuple[str, ...]] = [()] * len(html)
    for _ in range(rounds):
        for place, page in enumerate(html):
            result = transform(page.body, url=page.url, content_type=page.content_type)
            syntaxes[place] = tuple(name for name, _ in result.facts.syntaxes if name not in _PAGE_WORDS)
            for part, spent in enumerate(
                (
                    _milliseconds(lambda body: LexborHTMLParser(body), page),
                    _milliseconds(_unchecked(page), page),
                    _milliseconds(_whole(page), page),
                )
            ):
                best[place][part] = min(best[place][part], spent)
    return [PageCost(len(page.body) / 1024, names, *row) for page, names, row in zip(html, syntaxes, best, strict=True)]


def sizes(costs: Sequence[PageCost]) -> list[CostRow]:
    """Groups of about the same number of pages, by size."""
    ordered = sorted(costs, key=lambda cost: cost.kilobytes)
    count = min(_BINS, len(ordered))
    cuts = [len(ordered) * part // count for part in range(count + 1)]
    return [_row(ordered[begin:end]) for begin, end in pairwise(cuts)]


def constructs(costs: Sequence[PageCost]) -> dict[str, CostRow]:
    """All pages, those without data, and those that have data in a syntax; a page with several counts in each."""
    groups: dict[str, list[PageCost]] = {"all": list(costs), "no data": [cost for cost in costs if not cost.syntaxes]}
    for cost in costs:
        for name in cost.syntaxes:
            groups.setdefault(name, []).append(cost)
    return {name: _row(group) for name, group in groups.items() if group}


def chart(path: Path, rows: Sequence[CostRow]) -> None:
    line_chart(
        path,
        [
            Series("transform", [(row.kilobytes, row.whole) for row in rows]),
            Series("without the checks", [(row.kilobytes, row.unchecked) for row in rows]),
            Series("the HTML parser alone", [(row.kilobytes, row.parser) for row in rows]),
        ],
        title="CPU time of a page by its size",
        x_label="KB of HTML",
        y_label="CPU-ms",
    )


def _row(group: Sequence[PageCost]) -> CostRow:
    whole = [cost.whole for cost in group]
    return CostRow(
        len(group),
        statistics.fmean(cost.kilobytes for cost in group),
        statistics.fmean(cost.parser for cost in group),
        statistics.fmean(cost.unchecked for cost in group),
        statistics.fmean(whole),
        statistics.median(whole),
        max(whole),
    )


def _rounded(row: CostRow) -> tuple[object, ...]:
    return row.pages, round(row.kilobytes), *(f"{value:.2f}" for value in msgspec.structs.astuple(row)[2:])


def _unchecked(page: Page) -> Callable[[bytes], object]:
    return lambda body: transform(body, url=page.url, content_type=page.content_type, settings=_WITHOUT_CHECKS)


def _whole(page: Page) -> Callable[[bytes], object]:
    return lambda body: transform(body, url=page.url, content_type=page.content_type)


def _milliseconds(work: Callable[[bytes], object], page: Page) -> float:
    begin = time.process_time()
    work(page.body)
    return (time.process_time() - begin) * 1000
