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
from quadloom.asking.audit.places import Places
from quadloom.asking.audit.report import AuditReport, PageFindings, pages_of
from quadloom.asking.audit.report import audit as audited
from quadloom.asking.finding_codes import refuse_unknown
from quadloom.asking.search import moment
from quadloom.cli.asking.audit_text import report_lines, rule_lines, screen_lines
from quadloom.cli.options import FailOn, Profiles, Sites
from quadloom.cli.session import Session, session
from quadloom.crawling.inspect.child import InspectTask, InspectWorker
from quadloom.documents.checks.page import check_audit_settings, rules_of
from quadloom.documents.syntaxes.plugins import check_syntaxes
from quadloom.errors import NothingFound
from quadloom.model.finding import WEIGHT
from quadloom.model.page import Page
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse

_MAX_LISTED = 20  # groups, if the output is no screen
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
    limit: int | None = None,
    rules: bool = False,
) -> int:
    """Report what is wrong with the data: one entry for each mistake, the most rewarding to fix first.

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
        number of groups to print as text; without it, as many as the screen holds, and 20 elsewhere
    rules
        print the rules that pages are checked against, with their sources and dates, and end
    """
    s = session()
    s.override({"audit.profiles": [*profile]})
    check_audit_settings(s.settings.audit)
    if rules:
        for rule in rules_of(s.settings.audit):
            s.report(rule, "\n".join(rule_lines(rule)))
        return 0
    with s.read() as warehouse:
        stores = warehouse.stores
        pages = pages_of(stores.catalog, site)
        if profile:
            pages = _again(pages, warehouse, s.settings)
        gravest = GravestFindings(code)
        report = audited(gravest.through(with_across(pages, stores)), since=moment(since), codes_wanted=code)
        places = Places(stores)
        report = places.report(with_linking_pages(report, stores))
        gravest.place(places.record)
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


def _print(s: Session, report: AuditReport, limit: int | None, output: Path | None) -> None:
    if s.is_terminal and output is None:
        for line in screen_lines(report, limit, s.out.width, s.out.height):
            s.print(line)
    else:
        _write(s, "\n".join(report_lines(report, _MAX_LISTED if limit is None else limit)) + "\n", output)
    if report.groups:
        s.say("more: --limit 50; to send it: --format html; for CI: --fail-on error")
