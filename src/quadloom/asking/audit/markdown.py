"""An audit as a comment on a pull request: what is new, what is fixed, what to do first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quadloom.asking.audit.groups import DefectGroup
from quadloom.asking.audit.report import AuditReport

_MOST_ROWS = 20
_NAMES = {"error": "error", "warning": "warning", "info": "remark"}
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&$-])")


def markdown(report: AuditReport) -> str:
    """Markdown of GitHub. Nothing that a page says can act in it: no link, no mention, no HTML."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: AuditReport) -> Iterator[str]:
    new = sum(site.new for site in report.sites)
    fixed = sum(site.fixed for site in report.sites)
    score = f"score {report.score:.0f} of 100, " if report.score is not None else ""
    compared = f", {new} new, {fixed} fixed" if any(site.compared for site in report.sites) else ""
    yield "### Structured data"
    yield ""
    yield f"{score}{report.count('error')} errors, {report.count('warning')} warnings{compared}."
    groups = [group for group in report.groups if group.severity != "info"]
    groups.sort(key=lambda group: group.new == 0)  # stable: the most rewarding first within both
    if not groups:
        yield ""
        yield "No errors and no warnings."
        return
    yield ""
    yield "| | mistake | pages | where | fix |"
    yield "|---|---|---:|---|---|"
    yield from (_row(group) for group in groups[:_MOST_ROWS])
    if len(groups) > _MOST_ROWS:
        yield ""
        yield f"{len(groups) - _MOST_ROWS} more mistakes are not shown."


def _row(group: DefectGroup) -> str:
    example = group.examples[0] if group.examples else None
    where = f"{_cell(example.page)}{f' line {example.line}' if example.line else ''}" if example else ""
    mark = f"{'**new** ' if group.new else ''}{_NAMES[group.severity]}"
    return f"| {mark} | {_cell(group.what)} | {group.pages} | {where} | {_cell(group.fix)} |"


def _cell(text: str) -> str:
    text = " ".join(text.split())[:300]
    return _ACTIVE.sub(r"\\\1", text).replace("://", ":\u200b//")
