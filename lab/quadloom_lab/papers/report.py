"""What an experiment found, and the report of all of them: an HTML page, the same as Markdown, a CSV file each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import msgspec

from quadloom_lab.charts import Series, svg

Cell = str | int | float
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 "
    "1rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem "
    ".7rem;border-bottom:1px solid "
    "#ccc;text-align:right}th:first-child,td:first-child{text-align:left}svg{max-width:100%}"
)


class Scale(msgspec.Struct, frozen=True):
    """`full`: sizes that take hours. `history`: a CSV file of real changes. `replay`: a warehouse whose archive serves
    the pages of the phases."""

    full: bool = False
    history: Path | None = None
    replay: Path | None = None

    def size(self, small: int, full: int) -> int:
        return full if self.full else small


class Chart(msgspec.Struct, frozen=True):
    x_label: str
    y_label: str
    series: tuple[Series, ...]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A table or figure of a paper. `key` names its files; `difference`: what differs in method, in one sentence."""

    key: str
    paper: str
    item: str
    title: str
    difference: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    chart: Chart | None = None

    @property
    def heading(self) -> str:
        return f"{self.item}: {self.title}"

    def drawing(self) -> str:
        """The chart as SVG; empty without one."""
        if self.chart is None:
            return ""
        return svg(self.chart.series, title=self.title, x_label=self.chart.x_label, y_label=self.chart.y_label)

    def csv(self) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.columns, *self.rows])
        return out.getvalue()


def write(folder: Path, results: Sequence[Result], how: str) -> Path:
    """Write all files of the report; returns the HTML page. `how`: the command and the machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        (folder / f"{result.key}.csv").write_text(result.csv(), encoding="utf-8")
        if result.chart is not None:
            (folder / f"{result.key}.svg").write_text(result.drawing(), encoding="utf-8")
    (folder / "papers.md").write_text(markdown(results, how), encoding="utf-8")
    page = folder / "papers.html"
    page.write_text(html(results, how), encoding="utf-8")
    return page


def html(results: Sequence[Result], how: str) -> str:
    """The whole report as one page that loads nothing."""
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>The papers' experiments</title><style>{_STYLE}"]
    parts.append(f"</style><h1>The papers' experiments</h1><p>{escape(how)}")
    for paper, members in _by_paper(results):
        parts.append(f"<h2>{escape(paper)}</h2>")
        for result in members:
            parts.append(f"<h3 id={result.key}>{escape(result.heading)}</h3><p>{escape(result.difference)}")
            rows = [_row(result.columns, "th"), *(_row(map(shown, row), "td") for row in result.rows)]
            parts.append(f"<table>{''.join(rows)}</table>{result.drawing()}")
            parts.append(f"<p><a href={result.key}.csv>{result.key}.csv</a>")
    return "\n".join([*parts, "</html>", ""])


def markdown(results: Sequence[Result], how: str) -> str:
    """The same report for the documentation; charts are files beside it."""
    parts = ["# The papers' experiments, repeated", how]
    for paper, members in _by_paper(results):
        parts.append(f"## {paper}")
        for result in members:
            head = "| " + " | ".join(result.columns) + " |"
            rule = "|---" + "|--:" * (len(result.columns) - 1) + "|"
            rows = ["| " + " | ".join(map(shown, row)) + " |" for row in result.rows]
            parts += [f"### {result.heading}", result.difference, "\n".join([head, rule, *rows])]
            if result.chart is not None:
                parts.append(f"![{result.title}]({result.key}.svg)")
    return "\n\n".join(parts) + "\n"


def shown(cell: Cell) -> str:
    """A figure as a reader wants it: four digits, thousands separated."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.0f}" if abs(cell) >= 1000.0 else f"{cell:.4g}"


def _by_paper(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    names = dict.fromkeys(result.paper for result in results)
    return [(name, [result for result in results if result.paper == name]) for name in names]


def _row(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}" for cell in cells)
