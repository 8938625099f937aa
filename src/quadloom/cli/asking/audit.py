"""`quadloom audit`: what is wrong with the data of the sites in the warehouse, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from quadloom.asking.audit.across_pages import with_across
from quadloom.asking.audit.baseline import BaselineWriter, read_baseline
from quadloom.asking.audit.formats import GravestFindings, junit, sarif
from quadloom.asking.audit.linking_pages import with_linking_pages
from quadloom.asking.audit.markdown import markdown
from quadloom.asking.audit.report import AuditReport, PageFindings, pages_of
from quadloom.asking.audit.report import audit as audited
from quadloom.asking.audit.shacl import with_shapes
from quadloom.asking.audit.source_lines import SourceLines, archived
from quadloom.asking.finding_codes import refuse_unknown
from quadloom.asking.search import moment
from quadloom.cli.asking.audit_text import report_lines, rule_lines, screen_lines
from quadloom.cli.options import Profiles, Sites
from quadloom.cli.session import Session, session
from quadloom.crawling.inspect.child import InspectTask, InspectWorker
from quadloom.crawling.inspect.folder import FolderAudit, audit_folder
from quadloom.documents.checks.page import check_audit_settings, left_to_the_complete_pass, rules_of
from quadloom.documents.syntaxes.plugins import check_syntaxes
from quadloom.errors import NothingFound
from quadloom.model.finding import WEIGHT, FindingRecord
from quadloom.model.page import Page
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse

_MAX_LISTED = 20  # groups, if the output is no screen
AuditFormat = Literal["text", "json", "sarif", "junit", "html", "markdown"]
AuditFailOn = Annotated[
    Literal["error", "warning", "new", "never"],
    Parameter(help="exit with code 1 if there is a finding of this severity or a graver one, or a new error; for CI"),
]


def audit(
    folder: Path | None = None,
    /,
    *,
    site: Sites = (),
    since: str = "",
    profile: Profiles = (),
    code: tuple[str, ...] = (),
    format: AuditFormat = "text",
    output: Path | None = None,
    fail_on: AuditFailOn = "never",
    baseline: Path | None = None,
    save_baseline: Path | None = None,
    url: str = "",
    limit: int | None = None,
    shapes: tuple[Path, ...] = (),
    rules: bool = False,
) -> int:
    """Report what is wrong with the data: one entry for each mistake, the most rewarding to fix first.

    With --profile the archived pages are checked again. With a folder its files are audited, as the site that they will
    be, without a server and a warehouse.

    Parameters
    ----------
    folder
        the built site, such as ./public; without it, the pages of the warehouse
    since
        count findings as new or fixed since this date; without it, by each page's last visit
    code
        only findings with this code; may be repeated
    format
        text for people; json, sarif (one result for each finding, the gravest 5,000) or junit for programs; markdown
        for a comment on a pull request; html is one file to send
    output
        write to this file instead of stdout
    baseline
        count findings as new or fixed since the audit that wrote this file
    save_baseline
        write the findings to this file, for --baseline of later audits
    url
        the address at which a folder will be published; without it, that of rel=canonical on its first page
    limit
        number of groups to print as text; without it, as many as the screen holds, and 20 elsewhere
    shapes
        check the pages against all of SHACL in this Turtle file, by pySHACL (`pip install 'quadloom[shacl]'`); may be
        repeated
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
    for name, words in left_to_the_complete_pass(s.settings.audit).items() if not shapes else ():
        s.say(f"{name}: sh:{', sh:'.join(words)} is checked only by `quadloom audit --shapes {name}`")
    comparison = _Comparison(baseline, save_baseline, moment(since))
    gravest = GravestFindings(code)
    if folder is not None:
        read = audit_folder(folder, s.settings, url)
        pages = iter(read.pages)
        if shapes:
            pages = with_shapes(pages, shapes, read.graph)
        report = comparison.report(gravest, pages, code)
        places = SourceLines(read.body)
        gravest.place(lambda record: _filed(places.record(record), read))
        report = _with_files(places.report(report), read)
    else:
        with s.read() as warehouse:
            stores = warehouse.stores
            pages = pages_of(stores.catalog, site)
            if profile:
                pages = _again(pages, warehouse, s.settings)
            pages = with_across(pages, stores)
            if shapes:
                pages = with_shapes(pages, shapes, stores.quads.graph)
            report = comparison.report(gravest, pages, code)
            places = SourceLines(archived(stores))
            report = places.report(with_linking_pages(report, stores))
            gravest.place(places.record)
    if site and not report.sites:  # a misspelt site must not pass a check
        raise NothingFound(f"no page of {', '.join(site)} was visited", hint="to list the sites: `quadloom sites`")
    refuse_unknown(code, [group.code for group in report.groups])
    if format == "text" and not s.json:
        _print(s, report, limit, output)
    else:
        title = ", ".join(site) or s.warehouse.name
        text = _encoded(report, gravest, "json" if s.json else format, title, comparison.since)
        _write(s, text, output)
    if fail_on == "never":
        return 0
    if fail_on == "new":
        return 1 if any(group.new and group.severity == "error" for group in report.groups) else 0
    worst = [severity for severity in WEIGHT if report.count(severity) and WEIGHT[severity] <= WEIGHT[fail_on]]
    return 1 if worst else 0


class _Comparison:
    """What findings are compared with: a date, a file, or each page's last visit."""

    def __init__(self, baseline: Path | None, save: Path | None, since: float) -> None:
        self._now = time.time()
        self._baseline = read_baseline(baseline) if baseline is not None else None
        self._save = save
        self.since = self._now if self._baseline is not None else since

    def report(self, gravest: GravestFindings, pages: Iterator[PageFindings], codes: tuple[str, ...]) -> AuditReport:
        """The report of the pages, which also pass through `gravest`. Writes the file if one was asked for."""
        if self._baseline is not None:
            pages = self._baseline.compare(pages, self._now)
        writer = BaselineWriter()
        if self._save is not None:
            pages = writer.through(pages)
        report = audited(gravest.through(pages), since=self.since, codes_wanted=codes)
        if self._save is not None:
            writer.write(self._save, self._now)
        return report


def _with_files(report: AuditReport, read: FolderAudit) -> AuditReport:
    """The report with files in place of the addresses that they will have."""
    groups = [
        msgspec.structs.replace(group, examples=tuple(_filed(one, read) for one in group.examples))
        for group in report.groups
    ]
    return msgspec.structs.replace(report, groups=tuple(groups))


def _filed(record: FindingRecord, read: FolderAudit) -> FindingRecord:
    path = read.files.get(record.page)
    return record if path is None else msgspec.structs.replace(record, page=path.as_posix())


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


def _encoded(report: AuditReport, gravest: GravestFindings, format: AuditFormat, title: str, since: float) -> str:
    if format == "sarif":
        return sarif(gravest, since)
    if format == "markdown":
        return markdown(report)
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
