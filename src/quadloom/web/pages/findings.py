"""`/findings`: the defects of all pages, filtered by site, code, severity and type; as CSV too."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import msgspec
from starlette.responses import Response

from quadloom.asking.audit.across_pages import audited_pages
from quadloom.asking.audit.groups import DefectGroup
from quadloom.asking.audit.report import PageFindings, audit
from quadloom.asking.sparql.result_formats import without_formulas
from quadloom.documents.checks.codes import CodeEntry, codes
from quadloom.model.finding import WEIGHT, Finding, FindingRecord, reported
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest

_MAX_GROUPS = 40
_MAX_LISTED = 200
_MAX_CSV_LINES = 100_000
_FILTERS = ("site", "code", "severity", "type")


_CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+){1,5}")  # of any phase or plug-in


class FindingsView(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    pages: int
    score: float
    filters: dict[str, str]
    severities: dict[str, int]
    codes: dict[str, int]
    sites: dict[str, int]
    types: dict[str, int]
    groups: tuple[DefectGroup, ...]
    findings: list[FindingRecord]


def findings_page(request: WebRequest) -> ViewResponse:
    filters = _filters(request)
    pages = list(_matching(request, filters))
    report = audit(pages)
    counts: dict[str, dict[str, int]] = {"severities": {}, "codes": {}, "types": {}}
    listed: list[FindingRecord] = []
    total = 0
    for page in pages:
        for finding in page.findings:
            total += 1
            for name, value in (("severities", finding.severity), ("codes", finding.code), ("types", finding.type)):
                if value:
                    counts[name][value] = counts[name].get(value, 0) + 1
            if len(listed) < _MAX_LISTED:
                listed.append(reported(finding, page.row.href))
    view = FindingsView(
        total=total,
        pages=sum(bool(page.findings) for page in pages),
        score=100.0 if report.score is None else report.score,
        filters=filters,
        severities={name: counts["severities"][name] for name in WEIGHT if name in counts["severities"]},
        codes=_ordered(counts["codes"]),
        sites=_ordered({site.site: site.errors + site.warnings + site.remarks for site in report.sites}),
        types=_ordered(counts["types"]),
        groups=report.groups[:_MAX_GROUPS],
        findings=listed,
    )
    extra: dict[str, object] = {"meaning": codes().get(filters.get("code", ""))}
    extra["left_out"] = request.site.across_pages(request.warehouse.stores).left_out
    return ViewResponse("findings.html", view, extra)


def findings_csv(request: WebRequest) -> Response:
    """The same as CSV, one line for each finding."""
    names = [name for name in FindingRecord.__struct_fields__ if name not in ("excerpt", "caret")]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    lines = 0
    for page in _matching(request, _filters(request)):
        for finding in page.findings:
            if lines < _MAX_CSV_LINES:
                record = reported(finding, page.row.href)
                writer.writerow([without_formulas(str(getattr(record, name))) for name in names])
            lines += 1
    return Response(
        text.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="findings.csv"'},
    )


def finding_code(request: WebRequest) -> ViewResponse:
    """`/findings/CODE`: what a code means, with its examples."""
    entry = codes().get(request.path("code"))
    if entry is None and not _CODE.fullmatch(request.path("code")):
        raise HttpError(404, f"there is no code {request.path('code')[:80]}", hint="/findings lists those in use")
    if entry is None:
        entry = CodeEntry(
            request.path("code")[:80],
            "info",
            "A code of another phase",
            "The reference of findings explains it: docs/reference/findings.md.",
            "See the finding itself.",
        )
    return ViewResponse("finding.html", entry)


def _filters(request: WebRequest) -> dict[str, str]:
    return {name: value for name in _FILTERS if (value := request.text(name).strip())}


def _matching(request: WebRequest, filters: dict[str, str]) -> Iterator[PageFindings]:
    site = filters.get("site", "")
    across = request.site.across_pages(request.warehouse.stores)
    for page in audited_pages(request.warehouse.stores, (site,) if site else (), across.pages):
        wanted = tuple(finding for finding in page.findings if _fits(finding, filters))
        yield PageFindings(page.row, wanted)


def _fits(finding: Finding, filters: dict[str, str]) -> bool:
    return all(
        filters.get(name, value) == value
        for name, value in (("code", finding.code), ("severity", finding.severity), ("type", finding.type))
    )


def _ordered(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(((name, count) for name, count in counts.items() if count), key=lambda one: (-one[1], one[0])))
