"""The statistics of a lake as one HTML file: no network, no scripts, light and dark. `quadloom lake statistics` and
`quadloom bulk` write it with `--report`."""

from __future__ import annotations

from collections.abc import Sequence

from quadloom.asking.things.paths import type_name
from quadloom.maintenance.lake.statistics import LakeStatistics
from quadloom.web.view import filters
from quadloom.web.view.charts import Mark, bars
from quadloom.web.view.environment import report_document

_MOST_ROWS = 50
_MOST_BARS = 15
_TITLES = {
    "syntaxes": "Pages and domains by syntax",
    "classes": "Entities by class",
    "properties": "Properties",
    "domains": "Domains with most pages that have data",
    "tlds": "Top-level domains by syntax",
    "findings": "Findings by code",
}


def lake_report_html(found: LakeStatistics, *, title: str, now: float) -> str:
    """The whole document."""
    charts = {
        "syntaxes": _bars(found.tables["syntaxes"].rows, "Pages by syntax"),
        "classes": _bars(
            [(type_name(str(name)), number) for name, number, *_ in found.tables["classes"].rows], "Entities"
        ),
    }
    return report_document(
        "lake_report.html",
        title=title,
        now=now,
        tiles=[(name.replace("_", " "), filters.number(number), "") for name, number in found.summary.items()],
        charts=charts,
        tables=[
            (
                name,
                heading,
                found.tables[name].columns,
                found.tables[name].rows[:_MOST_ROWS],
                len(found.tables[name].rows),
            )
            for name, heading in _TITLES.items()
        ],
    )


def _bars(rows: Sequence[tuple[object, ...]], title: str) -> str:
    return bars([Mark(str(row[0]), float(str(row[1]))) for row in rows[:_MOST_BARS]], title)
