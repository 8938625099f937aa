"""An audit for other programs: SARIF for code scanning, JUnit for test reports."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import msgspec

from quadloom.asking.audit.report import AuditReport, DefectGroup
from quadloom.checks.codes import codes
from quadloom.model.finding import Severity
from quadloom.version import __version__

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def sarif(report: AuditReport) -> str:
    """SARIF 2.1.0: one result for each group, with its examples as places."""
    used = dict.fromkeys(group.code for group in report.groups)
    known = codes()
    rules = [
        {
            "id": code,
            "shortDescription": {"text": known[code].title if code in known else code},
            "help": {"text": known[code].fix if code in known else "see docs/reference/findings.md"},
        }
        for code in used
    ]
    results = [
        {
            "ruleId": group.code,
            "level": _LEVELS[group.severity],
            "message": {"text": f"{group.headline}. {group.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": example.page},
                        "region": {"startLine": max(1, example.line), "startColumn": max(1, example.column)},
                    },
                    "logicalLocations": [{"fullyQualifiedName": example.path}],
                }
                for example in group.examples[:1]
            ],
            "relatedLocations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": example.page},
                        "region": {"startLine": max(1, example.line)},
                    }
                }
                for example in group.examples[1:]
            ],
            "partialFingerprints": {"quadloom/v1": f"{group.site}{group.template}{group.examples[0].id}"},
            "properties": {"pages": group.pages, "findings": group.findings, "new": group.new},
        }
        for group in report.groups
    ]
    driver = {"name": "Quadloom", "version": __version__, "rules": rules}
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


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
    text = escape("\n".join(f"{one.page} line {one.line}: {one.message}" for one in group.examples))
    inside = (
        f"<skipped message={quoteattr(group.what)}/>"
        if group.severity == "info"
        else f"<failure type={quoteattr(group.severity)} message={quoteattr(group.headline)}>{text}</failure>"
    )
    return f"<testcase classname={quoteattr(group.site)} name={name}>{inside}</testcase>"
