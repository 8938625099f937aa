"""What `quadloom audit` says about groups that it does not print."""

from __future__ import annotations

import pytest

from quadloom.asking.audit.report import AuditReport, DefectGroup
from quadloom.cli.asking.audit import group_report
from quadloom.model.finding import Severity


def group(severity: Severity) -> DefectGroup:
    return DefectGroup(severity, "bad-date", "a.example", "/x/", "", "", "no date", "", 2, 2, 0, ())


@pytest.mark.parametrize(
    ("severities", "limit", "said"),
    [
        (("error", "warning"), 5, ""),
        (("error", "info"), 5, "not shown: 1 group of remarks"),
        (
            ("error", "error", "error", "info", "info"),
            2,
            "not shown: 1 group of errors and warnings, 2 groups of remarks",
        ),
        (("info", "info", "info"), 1, "not shown: 2 groups of remarks"),
        ((), 5, ""),
    ],
)
def test_only_what_is_left_out_is_counted(severities: tuple[Severity, ...], limit: int, said: str) -> None:
    lines = list(group_report(AuditReport((), tuple(map(group, severities)), ()), limit))
    assert [line for line in lines if line.startswith("not shown")] == ([said] if said else [])
