"""An audit as text: all of it for a file or another program, and what to do first for a screen."""

from __future__ import annotations

from collections.abc import Iterator

from quadloom.asking.audit.groups import DefectGroup
from quadloom.asking.audit.report import AuditReport, SiteAudit
from quadloom.cli.tables import shortened
from quadloom.cli.words import counted
from quadloom.documents.checks.profiles import UNVERIFIED, ProfileRule

_MARKS = {"error": "✗", "warning": "!", "info": "·"}
_MAX_IMPROVED = 5  # groups of what was fixed that are printed
_LINES_OF_AN_ENTRY = 3
_OTHER_LINES = 7  # of a screen: blank lines, what is left out, the hint and the prompt


def report_lines(report: AuditReport, limit: int) -> Iterator[str]:
    """The report as text."""
    for one in report.sites:
        yield _site_line(one)
        if rich := [f"{feature.feature} {feature.eligible} of {feature.pages}" for feature in one.features]:
            yield f"  eligible for rich results: {' · '.join(rich)}"
    yield from group_report(report, limit)


def _site_line(one: SiteAudit) -> str:
    change = f" · {one.new} new, {one.still} still there, {one.fixed} fixed" if one.compared or one.new else ""
    score = f"score {one.score:.0f} of 100" if one.scored else "no data to score"
    return (
        f"{one.site}  {score} · {counted(one.pages, 'page')}, {one.with_data} with data · "
        f"{counted(one.errors, 'error')}, {counted(one.warnings, 'warning')}, {counted(one.remarks, 'remark')}{change}"
    )


def group_report(report: AuditReport, limit: int) -> Iterator[str]:
    """The groups as text, the most rewarding first."""
    shown = _worth_showing(report)
    for group in shown[:limit]:
        yield ""
        yield from group_lines(group)
    for one in report.improved[:_MAX_IMPROVED]:
        yield ""
        yield f"✓ fixed  {one.site}"
        yield f"  {one.headline}"
    if left := _left_out(report, shown[limit:]):
        yield ""
        yield left
    if not report.sites:
        yield "no pages"


def group_lines(group: DefectGroup) -> Iterator[str]:
    yield f"{_MARKS[group.severity]} {group.code}  {group.site}"
    yield f"  {group.headline}" + (f" ({group.new} new)" if group.new else "")
    if group.fix:
        yield f"  fix: {group.fix}"
    for example in group.examples:
        place = f" line {example.line}" if example.line else ""
        found = f": {shortened(' '.join(example.found.split()), 40)}" if example.found and example.line else ""
        yield f"    {example.page}{place}{found}"
        for page in group.linked_from.get(example.page, ()):
            yield f"      linked from {page}"


def screen_lines(report: AuditReport, limit: int | None, width: int, height: int) -> Iterator[str]:
    """What fits a screen: the sites, rich results that are missed, then what to do first. `limit`: that many entries,
    however long it gets."""
    most_sites = max(2, height // 8)
    rows = [_site_line(one) for one in report.sites[:most_sites]]
    if len(report.sites) > most_sites:
        rows.append(f"and {counted(len(report.sites) - most_sites, 'more site')}")
    if rich := _missed_results(report):
        rows.append(f"eligible for rich results: {rich}")
    yield from (_cropped(row, width) for row in rows)
    shown = _worth_showing(report)
    fitting = max(1, (height - _OTHER_LINES - len(rows)) // _LINES_OF_AN_ENTRY)
    listed = shown[: fitting if limit is None else limit]
    if listed:
        yield ""
        yield "Do this first:" if listed[0].severity != "info" else "No errors and no warnings. What could be better:"
    several = len(report.sites) > 1
    for number, group in enumerate(listed, 1):
        yield from (_cropped(line, width) for line in _entry(number, group, width, several=several))
    if report.improved:
        yield f"✓ fixed: {counted(sum(one.pages for one in report.improved), 'finding')}"
    if left := _left_out(report, shown[len(listed) :]):
        yield _cropped(left, width)
    if not report.sites:
        yield "no pages"


def rule_lines(rule: ProfileRule) -> Iterator[str]:
    """A rule with its source."""
    yield (
        f"{rule.type}" + (f" for {rule.feature}" if rule.feature else "") + (f", in {rule.within}" * bool(rule.within))
    )
    if rule.retired:
        since = f"since {rule.retired}" if rule.retired != UNVERIFIED else "(since when is unverified)"
        yield f"  no longer shown {since}{', ' * bool(rule.note)}{rule.note}"
    else:
        required = [*rule.required, *(" or ".join(names) for names in rule.any_of)]
        if required:
            yield f"  required: {', '.join(required)}"
        if rule.recommended:
            yield f"  recommended{' on the home page' * rule.home}: {', '.join(rule.recommended)}"
        if rule.note:
            yield f"  {rule.note}"
    yield f"  {rule.by or 'unnamed'}, {rule.date or UNVERIFIED}: {rule.source}"


def _entry(number: int, group: DefectGroup, width: int, *, several: bool) -> Iterator[str]:
    new = f", {group.new} new" if group.new else ""
    pages, _, where = group.where.partition(" ")[2].partition(" ")
    place = f" ({f'{group.site}, ' if several else ''}{where.lstrip()})" if group.pages > 1 else ""
    yield f"{number:2} {_MARKS[group.severity]} {group.pages} {pages.rstrip(',')}{new}: {group.what}{place}"
    indent = "     "
    yield f"{indent}{group.fix or group.message}"
    if group.examples:
        example = group.examples[0]
        linked = next(iter(group.linked_from.get(example.page, ())), "")
        tail = f" line {example.line}" if example.line else f" ← {shortened(linked, 30)}" if linked else ""
        tail += f"  ({group.code})"
        yield f"{indent}{shortened(example.page, max(20, width - len(indent) - len(tail)))}{tail}"


def _missed_results(report: AuditReport) -> str:
    """Those with pages that are not eligible first."""
    rich: dict[str, list[int]] = {}
    for feature in (feature for one in report.sites for feature in one.features):
        sums = rich.setdefault(feature.feature, [0, 0])
        sums[0] += feature.eligible
        sums[1] += feature.pages
    ordered = sorted(rich.items(), key=lambda one: (one[1][0] == one[1][1], one[1][0] - one[1][1]))
    return ", ".join(f"{name} {found} of {pages}" for name, (found, pages) in ordered)


def _worth_showing(report: AuditReport) -> list[DefectGroup]:
    """Errors and warnings; remarks only if there is nothing else."""
    return [group for group in report.groups if group.severity != "info"] or list(report.groups)


def _left_out(report: AuditReport, hidden: list[DefectGroup]) -> str:
    remarks = [group for group in report.groups if group.severity == "info"]
    shows_remarks = len(remarks) == len(report.groups)
    left = []
    if hidden:
        kind = "remarks" if shows_remarks else "errors and warnings"
        findings = counted(sum(group.findings for group in hidden), "finding")
        left.append(f"{counted(len(hidden), 'group')} of {kind} with {findings}")
    if remarks and not shows_remarks:
        findings = counted(sum(group.findings for group in remarks), "finding")
        left.append(f"{counted(len(remarks), 'group')} of remarks with {findings}")
    if report.left_out:
        left.append(f"{counted(report.left_out, 'finding')} of further mistakes")
    return f"not shown: {', '.join(left)}" if left else ""


def _cropped(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
