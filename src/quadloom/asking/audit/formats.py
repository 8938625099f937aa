"""An audit for other programs: SARIF for code scanning, JUnit for test reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

import msgspec
from xxhash import xxh3_64_hexdigest

from quadloom.asking.audit.groups import DefectGroup
from quadloom.asking.audit.report import AuditReport, PageFindings
from quadloom.documents.checks.codes import codes
from quadloom.model.finding import WEIGHT, FindingRecord, Severity, reported
from quadloom.model.version import __version__

MOST_RESULTS = 5000  # code scanning shows no more of one run
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


class GravestFindings:
    """The gravest findings of the pages that pass `through`, at most `MOST_RESULTS`, in the order of the pages."""

    def __init__(self, codes_wanted: Collection[str] = ()) -> None:
        self._wanted = frozenset(codes_wanted)
        self._kept: dict[Severity, list[FindingRecord]] = {severity: [] for severity in WEIGHT}
        self.total = 0

    def through(self, pages: Iterable[PageFindings]) -> Iterator[PageFindings]:
        """The pages themselves, for another reader."""
        for page in pages:
            for finding in page.findings:
                if not self._wanted or finding.code in self._wanted:
                    self.total += 1
                    kept = self._kept[finding.severity]
                    if len(kept) < MOST_RESULTS:
                        kept.append(reported(finding, page.row.href))
            yield page

    def place(self, placed: Callable[[FindingRecord], FindingRecord]) -> None:
        """Give records the places that are only looked for in a report."""
        self._kept = {severity: [placed(one) for one in kept] for severity, kept in self._kept.items()}

    def records(self) -> list[FindingRecord]:
        """Errors first."""
        return [record for severity in WEIGHT for record in self._kept[severity]][:MOST_RESULTS]


def sarif(found: GravestFindings, since: float = 0.0) -> str:
    """SARIF 2.1.0: one result for each finding, at its line. `properties` of the run count those that were left out.
    With `since`, results say whether they are new."""
    records = found.records()
    used = {code: number for number, code in enumerate(dict.fromkeys(record.code for record in records))}
    known = codes()
    rules = [
        {
            "id": code,
            "shortDescription": {"text": known[code].title if code in known else code},
            "help": {"text": known[code].fix if code in known else "see docs/reference/findings.md"},
        }
        for code in used
    ]
    driver = {"name": "Quadloom", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(record, used[record.code], since) for record in records],
        "properties": {"findings": found.total, "leftOut": found.total - len(records)},
    }
    document = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _result(record: FindingRecord, rule: int, since: float) -> dict[str, object]:
    place: dict[str, object] = {"artifactLocation": {"uri": record.page}}
    if record.line:
        region: dict[str, object] = {"startLine": record.line, "startColumn": max(1, record.column)}
        if record.excerpt:
            region["snippet"] = {"text": record.excerpt}
        place["region"] = region
    location: dict[str, object] = {"physicalLocation": place}
    if record.path:
        location["logicalLocations"] = [{"fullyQualifiedName": record.path}]
    state = {"baselineState": "new" if record.since >= since else "unchanged"} if since else {}
    return {
        **state,
        "ruleId": record.code,
        "ruleIndex": rule,
        "level": _LEVELS[record.severity],
        "message": {"text": f"{record.message}. {record.fix}".strip()},
        "locations": [location],
        "partialFingerprints": {"quadloom/v1": record.id, "page/v1": xxh3_64_hexdigest(record.page.encode())},
    }


def junit(report: AuditReport) -> str:
    """JUnit XML: a suite for each site, a case for each group; errors and warnings fail, remarks are skipped."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for site in report.sites:
        groups = [group for group in report.groups if group.site == site.site]
        failures = sum(group.severity != "info" for group in groups)
        tests = max(1, len(groups))
        lines.append(f'<testsuite name={quoteattr(site.site)} tests="{tests}" failures="{failures}">')
        if not groups:
            lines.append('<testcase classname="quadloom" name="no findings"/>')
        lines += [_case(group) for group in groups]
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _case(group: DefectGroup) -> str:
    name = quoteattr(f"{group.code} {group.template} {group.path}".strip())
    text = escape("\n".join(f"{_place(group, one)}: {one.message}" for one in group.examples))
    inside = (
        f"<skipped message={quoteattr(group.what)}/>"
        if group.severity == "info"
        else f"<failure type={quoteattr(group.severity)} message={quoteattr(group.headline)}>{text}</failure>"
    )
    return f"<testcase classname={quoteattr(group.site)} name={name}>{inside}</testcase>"


def _place(group: DefectGroup, example: FindingRecord) -> str:
    """The line of a page, or of a page that could not be fetched, the pages that link to it."""
    if pages := group.linked_from.get(example.page):
        return f"{example.page} linked from {', '.join(pages)}"
    return f"{example.page} line {example.line}"
