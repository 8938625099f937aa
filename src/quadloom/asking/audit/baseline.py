"""What was wrong before, in a file: findings that it lists are old, others are new, and those that are gone are fixed.

For CI, where no warehouse remembers the last crawl: `quadloom audit ./public --save-baseline audit-baseline.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from quadloom.asking.audit.report import PageFindings
from quadloom.errors import UsageError
from quadloom.model.finding import Finding, FixedFinding, Severity


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """A finding of a page: enough to know it again, and to name it when it is fixed."""

    id: str
    code: str
    severity: Severity
    path: str
    type: str


class Baseline(msgspec.Struct, frozen=True):
    """Findings by the URL of their page. `at`: unix time of the audit."""

    at: float
    pages: dict[str, list[_Known]]

    def compare(self, pages: Iterable[PageFindings], now: float) -> Iterator[PageFindings]:
        """The pages with findings dated `at` if the baseline has them and `now` if not, and with what was fixed. A page
        may have one mistake several times: as many as before are old."""
        for page in pages:
            known = self.pages.get(page.row.href, [])
            left = Counter(one.id for one in known)
            findings: list[Finding] = []
            for finding in page.findings:
                is_old = left[finding.identity] > 0
                left[finding.identity] -= is_old
                findings.append(msgspec.structs.replace(finding, since=self.at if is_old else now))
            fixed = [
                FixedFinding(one.code, one.severity, one.path, one.type, self.at, now)
                for one in {one.id: one for one in known}.values()
                if left[one.id] > 0
            ]
            row = msgspec.structs.replace(page.row, visits=2, fetched_at=now, fixed=tuple(fixed))
            yield PageFindings(row, tuple(findings))


class BaselineWriter:
    """Notes the findings of pages that pass `through`."""

    def __init__(self) -> None:
        self._pages: dict[str, list[_Known]] = {}

    def through(self, pages: Iterable[PageFindings]) -> Iterator[PageFindings]:
        """The pages themselves, for another reader."""
        for page in pages:
            if page.findings:
                self._pages[page.row.href] = [
                    _Known(one.identity, one.code, one.severity, one.path, one.type) for one in page.findings
                ]
            yield page

    def write(self, path: Path, now: float) -> None:
        text = msgspec.json.format(msgspec.json.encode(Baseline(now, self._pages)), indent=1)
        path.write_bytes(text + b"\n")


def read_baseline(path: Path) -> Baseline:
    """Raises `UsageError` if the file is not a baseline."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(
            f"the baseline {path} cannot be read: {error}", hint="to write one: `quadloom audit --save-baseline FILE`"
        ) from None
