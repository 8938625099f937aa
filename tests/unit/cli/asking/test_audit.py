"""What `quadloom audit` says about groups that it does not print."""

from __future__ import annotations

import pytest

from quadloom.asking.audit.report import AuditReport, DefectGroup, SiteAudit
from quadloom.cli.asking.audit_text import group_report, report_lines, screen_lines
from quadloom.model.finding import Finding, Severity, reported
from quadloom.web.audit_report import audit_html


def group(severity: Severity) -> DefectGroup:
    return DefectGroup(severity, "bad-date", "a.example", "/x/", "", "", "no date", "", 2, 2, 0, ())


@pytest.mark.parametrize(
    ("severities", "limit", "said"),
    [
        (("error", "warning"), 5, ""),
        (("error", "info"), 5, "not shown: 1 group of remarks with 2 findings"),
        (
            ("error", "error", "error", "info", "info"),
            2,
            "not shown: 1 group of errors and warnings with 2 findings, 2 groups of remarks with 4 findings",
        ),
        (("info", "info", "info"), 1, "not shown: 2 groups of remarks with 4 findings"),
        ((), 5, ""),
    ],
)
def test_only_what_is_left_out_is_counted(severities: tuple[Severity, ...], limit: int, said: str) -> None:
    lines = list(group_report(AuditReport((), tuple(map(group, severities)), ()), limit))
    assert [line for line in lines if line.startswith("not shown")] == ([said] if said else [])


def test_a_site_without_data_has_no_score() -> None:
    """100 of 100 for a site of dead links would be praise for nothing."""
    site = SiteAudit(
        site="a.example",
        pages=9,
        with_data=0,
        errors=0,
        warnings=9,
        remarks=0,
        new=0,
        still=0,
        fixed=0,
        score=100.0,
        compared=0,
        types=(),
        features=(),
    )
    report = AuditReport((site,), (group("warning"),), ())
    assert next(report_lines(report, 5)).startswith("a.example  no data to score · 9 pages, 0 with data")
    shown = audit_html(report, title="a.example", now=1e9)
    assert "no data to score" in shown and "score of 100" not in shown
    assert "Fix: ." not in shown, "a group without advice"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_largest_audit_fits_a_screen_and_says_what_to_do_first(width: int, height: int) -> None:
    def long(severity: Severity, number: int) -> DefectGroup:
        example = reported(Finding("bad-date", "no date", severity), f"https://a.example/{'folder/' * 30}{number}")
        return DefectGroup(
            severity, "bad-date", "a.example", "/x/", "", f"Path {number}", "no date " * 30, "write one " * 30, 2, 2, 0,
            (example,), folders={"/x/": 2},
        )  # fmt: skip

    sites = tuple(
        SiteAudit(
            site=f"site-{number}.example", pages=9, with_data=9, errors=9, warnings=9, remarks=0, new=0, still=0,
            fixed=0, score=1.0, compared=0, types=(), features=(), scored=9,
        )
        for number in range(40)
    )  # fmt: skip
    groups = (*(long("error", number) for number in range(500)), long("info", 1))
    lines = list(screen_lines(AuditReport(sites, groups, ()), None, width, height))
    assert len(lines) <= height - 2, "a line for the hint and one for the prompt"
    assert max(map(len, lines)) <= width
    assert lines[lines.index("Do this first:") + 1].startswith(" 1 ✗ 2 pages: no date")
    assert lines[-1].startswith("not shown: 49")
    assert len(list(screen_lines(AuditReport(sites, groups, ()), 50, width, height))) > 150, "--limit is kept to"
