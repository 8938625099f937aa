"""`quadloom audit`: what is wrong with the data of the sites in the warehouse, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from quadloom.asking.audit.across_pages import with_across
from quadloom.asking.audit.formats import GravestFindings, junit, sarif
from quadloom.asking.audit.linking_pages import with_linking_pages
from quadloom.asking.audit.report import AuditReport, DefectGroup, PageFindings, pages_of
from quadloom.asking.audit.report import audit as audited
from quadloom.asking.finding_codes import refuse_unknown
from quadloom.asking.search import moment
from quadloom.cli.options import FailOn, Profiles, Sites
from quadloom.cli.session import Session, session
from quadloom.cli.tables import shortened
from quadloom.cli.words import counted
from quadloom.crawling.inspect.child import InspectTask, InspectWorker
from quadloom.documents.checks.page import check_audit_settings
from quadloom.documents.syntaxes.plugins import check_syntaxes
from quadloom.errors import NothingFound
from quadloom.model.finding import WEIGHT
from quadloom.model.page import Page
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse

_MARKS = {"error": "✗", "warning": "!", "info": "·"}
_MAX_IMPROVED = 5  # groups of what was fixed that are printed
AuditFormat = Literal["text", "json", "sarif", "junit", "html"]


def audit(
    *,
    site: Sites = (),
    since: str = "",
    profile: Profiles = (),
    code: tuple[str, ...] = (),
    format: AuditFormat = "text",
    output: Path | None = None,
    fail_on: FailOn = "never",
    limit: int = 20,
) -> int:
    """Report the defects of the data: by site and severity, grouped by template, with scores and rich results.

    With --profile the archived pages are checked again.

    Parameters
    ----------
    since
        count findings as new or fixed since this date; without it, by each page's last visit
    code
        only findings with this code; may be repeated
    format
        text for people; json, sarif (one result for each finding, the gravest 5,000) or junit for programs; html is one
        file to send
    output
        write to this file instead of stdout
    limit
        number of groups to print as text
    """
    s = session()
    s.override({"audit.profiles": [*profile]})
    check_audit_settings(s.settings.audit)
    with s.read() as warehouse:
        stores = warehouse.stores
        pages = pages_of(stores.catalog, site)
        if profile:
            pages = _again(pages, warehouse, s.settings)
        gravest = GravestFindings(code)
        report = audited(gravest.through(with_across(pages, stores)), since=moment(since), codes_wanted=code)
        report = with_linking_pages(report, stores)
    if site and not report.sites:  # a misspelt site must not pass a check
        raise NothingFound(f"no page of {', '.join(site)} was visited", hint="to list the sites: `quadloom sites`")
    refuse_unknown(code, [group.code for group in report.groups])
    if format == "text" and not s.json:
        _print(s, report, limit, output)
    else:
        title = ", ".join(site) or s.warehouse.name
        _write(s, _encoded(report, gravest, "json" if s.json else format, title), output)
    if fail_on == "never":
        return 0
    worst = [severity for severity in WEIGHT if report.count(severity) and WEIGHT[severity] <= WEIGHT[fail_on]]
    return 1 if worst else 0


def _again(pages: Iterator[PageFindings], warehouse: Warehouse, settings: Settings) -> Iterator[PageFindings]:
    """Transform the archived pages again with other profiles, in a process of its own."""
    check_syntaxes(settings)
    worker = InspectWorker()
    try:
        for page in pages:
            stored = warehouse.stores.archive.get(page.row.archive) if page.row.archive else None
            if not isinstance(stored, Page):
                yield page
                continue
            task = InspectTask(stored.body, stored.final_url, stored.content_type or None, stored.headers, settings)
            seen = worker.transform(task).transformed
            if seen is None:
                yield page
            else:
                # The rules differ from those of earlier visits, so nothing can be compared.
                yield PageFindings(
                    msgspec.structs.replace(page.row, audit=seen.audit, fixed=(), visits=1), seen.findings
                )
    finally:
        worker.close()


def _encoded(report: AuditReport, gravest: GravestFindings, format: AuditFormat, title: str) -> str:
    if format == "sarif":
        return sarif(gravest)
    if format == "junit":
        return junit(report)
    if format == "html":
        from quadloom.web.audit_report import audit_html  # with Jinja: .05 s

        return audit_html(report, title=title, now=time.time())
    return msgspec.json.encode(report).decode() + "\n"


def _write(s: Session, text: str, output: Path | None) -> None:
    if output is None:
        s.write(text)
    else:
        output.write_text(text, encoding="utf-8")
        s.say(f"written to {output}")


def _print(s: Session, report: AuditReport, limit: int, output: Path | None) -> None:
    if s.is_terminal and output is None:
        _print_screen(s, report, limit)
    else:
        _write(s, "\n".join(report_lines(report, limit)) + "\n", output)
    if report.groups:
        s.say("to see all: --limit; to send it: --format html --output report.html; for CI: --fail-on error")


def _print_screen(s: Session, report: AuditReport, limit: int) -> None:
    """For a terminal: sites as a table, text wrapped between words, each address in one line."""
    names = ("pages", "with_data", "errors", "warnings", "new", "fixed")
    s.table(
        ["site", "score", *(name.replace("_", " ") for name in names)],
        [
            (one.site, round(one.score) if one.with_data else "–", *(getattr(one, name) for name in names))
            for one in report.sites
        ],
    )
    rich: dict[str, list[int]] = {}
    for feature in (feature for one in report.sites for feature in one.features):
        sums = rich.setdefault(feature.feature, [0, 0])
        sums[0] += feature.eligible
        sums[1] += feature.pages
    if rich:
        eligible = [f"{name} {found} of {pages}" for name, (found, pages) in rich.items()]
        s.print(f"\neligible for rich results: {', '.join(eligible)}")
    for line in group_report(report, limit):
        place = line.lstrip()
        indent = line[: len(line) - len(place)]
        s.print(indent + shortened(place, s.out.width - len(indent)) if line.startswith("    ") else line)


def report_lines(report: AuditReport, limit: int) -> Iterator[str]:
    """The report as text."""
    for one in report.sites:
        change = f" · {one.new} new, {one.still} still there, {one.fixed} fixed" if one.compared or one.new else ""
        score = f"score {one.score:.0f} of 100" if one.with_data else "no data to score"
        yield (
            f"{one.site}  {score} · {counted(one.pages, 'page')}, {one.with_data} with data · "
            f"{counted(one.errors, 'error')}, {counted(one.warnings, 'warning')}, "
            f"{counted(one.remarks, 'remark')}{change}"
        )
        rich = [f"{feature.feature} {feature.eligible} of {feature.pages}" for feature in one.features]
        if rich:
            yield f"  eligible for rich results: {' · '.join(rich)}"
    yield from group_report(report, limit)


def group_report(report: AuditReport, limit: int) -> Iterator[str]:
    """The groups as text, errors and warnings first."""
    remarks = [group for group in report.groups if group.severity == "info"]
    shown = [group for group in report.groups if group.severity != "info"] or remarks
    for group in shown[:limit]:
        yield ""
        yield from group_lines(group)
    for one in report.improved[:_MAX_IMPROVED]:
        yield ""
        yield f"✓ fixed  {one.site}"
        yield f"  {one.headline}"
    hidden = len(shown) - limit
    left = []
    if hidden > 0:
        left.append(f"{counted(hidden, 'group')} of {'remarks' if shown is remarks else 'errors and warnings'}")
    if remarks and shown is not remarks:
        left.append(f"{counted(len(remarks), 'group')} of remarks")
    if left:
        yield ""
        yield f"not shown: {', '.join(left)}"
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
