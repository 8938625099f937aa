"""An audit as one HTML file: no network, no scripts, light and dark. It can be sent to somebody who has no Quadloom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from quadloom.asking.audit.groups import page_defects
from quadloom.asking.audit.report import AuditReport
from quadloom.documents.checks.codes import codes
from quadloom.web.view.charts import trend
from quadloom.web.view.environment import report_document
from quadloom.web.view.filters import number

_MAX_GROUPS = 200


def audit_html(report: AuditReport, *, title: str, now: float) -> str:
    """The whole document."""
    templates = _templates(report)
    return report_document(
        "audit_report.html",
        report=report,
        title=title,
        now=now,
        tiles=list(_tiles(report)),
        worst=[group for group in report.groups if group.severity != "info"][:3],
        types=_types(report),
        features=_features(report),
        templates=templates,
        most_defects=max((errors + warnings for _, errors, warnings in templates), default=0),
        trend=trend(report.trend, "Open errors and warnings"),
        max_groups=_MAX_GROUPS,
        known=codes(),
    )


def _tiles(report: AuditReport) -> Iterator[tuple[str, str, str]]:
    """Label, value and tone of each figure."""
    score, errors, warnings = report.score, report.count("error"), report.count("warning")
    if score is None:
        yield "no data to score", "–", ""
    else:
        yield "score of 100", f"{score:.0f}", "good" if score >= 90 else "warn" if score >= 60 else "bad"
    yield "pages", number(sum(site.pages for site in report.sites)), ""
    yield "with data", number(sum(site.with_data for site in report.sites)), ""
    yield "errors", number(errors), "bad" if errors else "good"
    yield "warnings", number(warnings), "warn" if warnings else "good"
    yield "new", number(sum(site.new for site in report.sites)), ""
    yield "fixed", number(sum(site.fixed for site in report.sites)), "good"


def _types(report: AuditReport) -> list[tuple[str, list[float]]]:
    """For each type its pages, items, errors, warnings and sum of scores, over all sites; most pages first."""
    merged: dict[str, list[float]] = {}
    for kind in (kind for site in report.sites for kind in site.types):
        sums = merged.setdefault(kind.type, [0.0] * 5)
        for place, value in enumerate((kind.pages, kind.items, kind.errors, kind.warnings, kind.score * kind.pages)):
            sums[place] += value
    return sorted(merged.items(), key=lambda one: -one[1][0])[:25]


def _features(report: AuditReport) -> list[tuple[str, int, int]]:
    """Rich result, its pages, and those that are eligible."""
    pages, eligible = Counter[str](), Counter[str]()
    for feature in (feature for site in report.sites for feature in site.features):
        pages[feature.feature] += feature.pages
        eligible[feature.feature] += feature.eligible
    return [(name, count, eligible[name]) for name, count in pages.most_common()]


def _templates(report: AuditReport) -> list[tuple[str, int, int]]:
    """Folders with their pages that have errors and warnings; the worst first."""
    several = len({group.site for group in report.groups}) > 1
    merged = page_defects(report.groups, several=several)
    found = [(name, errors, warnings) for name, (errors, warnings) in merged.items()]
    return sorted(found, key=lambda row: (-row[1], -row[2], row[0]))[:15]
