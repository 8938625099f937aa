"""The report of an audit: counts by severity and site, scores, rich results, and defects grouped by template.

Score of a site: 100 times the mean over its pages that have data, an error or a warning, where a page without defects
counts 1, one with warnings only one half, one with an error 0. It is rounded down, so that 100 means that nothing is
wrong. Remarks do not count, nor do pages that have neither data nor a defect. Score of a type: the same over the pages
that have the type, with the defects of its items.

Findings are new if their first visit is not before `since`; without `since`, if the page's last visit found them first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator

import msgspec

from quadloom.asking.audit.groups import DefectGroup, FixedGroup, Groups, first_folder
from quadloom.model.finding import WEIGHT, Finding, Severity
from quadloom.model.outcome import PageRow
from quadloom.model.url import belongs_to, site_of
from quadloom.stores.protocols.catalog import Catalog

_SLICE = 1000
_MAX_GROUPS = 5000
_STEP = 60.0  # seconds within which visits count as one
_STEPS = (60.0, 3600.0, 86400.0, 7 * 86400.0)
_MAX_POINTS = 200
_MEANT = re.compile(
    r"[/?&@=._-](?:s|q|search|suche|recherche|buscar|log-?in|log-?out|sign-?in|sign-?up|register|account|my-?account|"
    r"password|lost-?password|cart|basket|warenkorb|panier|add[_-]to[_-]cart|remove_item|checkout|wishlist|compare|"
    r"replytocom|preview|print|404|thank-?you)(?=[/?&=._-]|\Z)",
    re.IGNORECASE,
)
FORMULA = (
    "100 × mean over pages that have data, an error or a warning: 1 without defects, ½ with warnings only, 0 with an "
    "error; rounded down, so that 100 means that nothing is wrong"
)


class TypeAudit(msgspec.Struct, frozen=True):
    type: str
    pages: int
    items: int
    errors: int
    warnings: int
    score: float


class FeatureAudit(msgspec.Struct, frozen=True):
    """A rich result: pages that aim at it, and those that have all it requires."""

    feature: str
    pages: int
    eligible: int


class SiteAudit(msgspec.Struct, frozen=True):
    site: str
    pages: int
    with_data: int
    errors: int
    warnings: int
    remarks: int
    new: int
    still: int
    fixed: int
    score: float
    compared: int  # pages that were read before, so that new and fixed mean something
    types: tuple[TypeAudit, ...]
    features: tuple[FeatureAudit, ...]
    scored: int = 0  # pages that the score is about


class TrendPoint(msgspec.Struct, frozen=True):
    """Errors and warnings that were open at a time."""

    at: float
    errors: int
    warnings: int


class AuditReport(msgspec.Struct, frozen=True):
    sites: tuple[SiteAudit, ...]
    groups: tuple[DefectGroup, ...]
    trend: tuple[TrendPoint, ...]
    improved: tuple[FixedGroup, ...] = ()
    formula: str = FORMULA
    left_out: int = 0  # findings that are in no group, since there are too many groups

    def count(self, severity: Severity) -> int:
        names = {"error": "errors", "warning": "warnings", "info": "remarks"}
        return sum(getattr(site, names[severity]) for site in self.sites)

    @property
    def score(self) -> float | None:
        """Of all sites, by their pages; None if there is nothing to score."""
        scored = sum(site.scored for site in self.sites)
        return math.floor(sum(site.score * site.scored for site in self.sites) / scored) if scored else None


class PageFindings(msgspec.Struct, frozen=True):
    """A page with the findings to report, which need not be those of its row."""

    row: PageRow
    findings: tuple[Finding, ...]


def pages_of(catalog: Catalog, sites: Collection[str] = ()) -> Iterator[PageFindings]:
    """Every page that was read. `sites` (registered domains or hosts): empty = all."""
    after = -(1 << 63)
    while rows := catalog.scan(after=after, limit=_SLICE):
        after = rows[-1].fingerprint
        for row in rows:
            if row.kind != "redirect" and belongs_to(row.host, sites):
                yield PageFindings(row, _without_what_is_meant(row))


def _without_what_is_meant(row: PageRow) -> tuple[Finding, ...]:
    """Pages of search, sign-in and cart are not to be indexed, nor are addresses that do something: no defect. What
    would make the result of a page better says nothing about a page that is in no result."""
    if not any(one.code == "noindex" for one in row.findings):
        return row.findings
    dropped = {"schema-missing-recommended", *(["noindex"] if _MEANT.search(row.href) else [])}
    return tuple(one for one in row.findings if one.code not in dropped)


def audit(pages: Iterable[PageFindings], *, since: float = 0.0, codes_wanted: Collection[str] = ()) -> AuditReport:
    """One pass over the pages; only counts and three examples of each group are held."""
    tally = _Tally(since, frozenset(codes_wanted))
    for page in pages:
        tally.page(page)
    return tally.report()


class _Counts:
    def __init__(self) -> None:
        self.pages = self.with_data = self.scored = self.new = self.still = self.fixed = self.compared = 0
        self.severities: dict[str, int] = {"error": 0, "warning": 0, "info": 0}
        self.sum = 0.0
        self.types: dict[str, _TypeCounts] = {}
        self.features: dict[str, list[int]] = {}


class _TypeCounts:
    def __init__(self) -> None:
        self.pages = self.items = self.errors = self.warnings = 0
        self.sum = 0.0


class _Tally:
    def __init__(self, since: float, wanted: frozenset[str]) -> None:
        self._since = since
        self._wanted = wanted
        self._sites: dict[str, _Counts] = {}
        self._groups = Groups()
        self._improved: dict[tuple[Severity, str, str, str, str], int] = {}
        self._events: dict[float, list[int]] = {}

    def page(self, page: PageFindings) -> None:
        row = page.row
        site = site_of(row.host)
        counts = self._sites.setdefault(site, _Counts())
        counts.pages += 1
        counts.compared += row.visits > 1
        findings = [one for one in page.findings if not self._wanted or one.code in self._wanted]
        worst: dict[str, int] = {}
        for finding in findings:
            counts.severities[finding.severity] += 1
            is_new = self._is_new(finding, row)
            if finding.since:  # what only several pages together show has no visit of its own
                counts.new += is_new
                counts.still += not is_new
            worst[finding.type] = min(worst.get(finding.type, 9), WEIGHT[finding.severity])
            self._groups.add(site, row, finding, is_new=is_new)
            self._event(finding.since, finding.severity, 1)
        for fixed in (one for one in row.fixed if not self._wanted or one.code in self._wanted):
            if fixed.fixed_at >= self._since if self._since else fixed.fixed_at == row.fetched_at:
                counts.fixed += 1
                key = (fixed.severity, fixed.code, site, first_folder(row.href), fixed.path)
                if key in self._improved or len(self._improved) < _MAX_GROUPS:
                    self._improved[key] = self._improved.get(key, 0) + 1
            self._event(fixed.since, fixed.severity, 1)
            self._event(fixed.fixed_at, fixed.severity, -1)
        gravest = min(worst.values(), default=9)
        if row.audit.types or gravest < WEIGHT["info"]:
            counts.scored += 1
            counts.sum += _worth(gravest)
        if row.audit.types:
            counts.with_data += 1
            self._types(counts, row, worst, findings)
        for feature, complete in row.audit.features:
            pair = counts.features.setdefault(feature, [0, 0])
            pair[0] += 1
            pair[1] += complete

    def _types(self, counts: _Counts, row: PageRow, worst: dict[str, int], findings: list[Finding]) -> None:
        for name, number in row.audit.types:
            of = counts.types.setdefault(name, _TypeCounts())
            of.pages += 1
            of.items += number
            of.sum += _worth(worst.get(name, 9))
            of.errors += sum(one.type == name and one.severity == "error" for one in findings)
            of.warnings += sum(one.type == name and one.severity == "warning" for one in findings)

    def _is_new(self, finding: Finding, row: PageRow) -> bool:
        if self._since:
            return finding.since >= self._since
        return row.visits > 1 and finding.since == row.fetched_at

    def _event(self, at: float, severity: Severity, change: int) -> None:
        if at and severity != "info":
            self._events.setdefault(at - at % _STEP, [0, 0])[WEIGHT[severity]] += change

    def report(self) -> AuditReport:
        sites = [_site(name, counts) for name, counts in self._sites.items()]
        sites.sort(key=lambda site: (-site.errors, -site.warnings, site.site))
        improved = [FixedGroup(*key, pages) for key, pages in self._improved.items()]
        improved.sort(key=lambda one: (WEIGHT[one.severity], -one.pages, one.code))
        return AuditReport(
            tuple(sites), self._groups.ordered(), self._trend(), tuple(improved), left_out=self._groups.left_out
        )

    def _trend(self) -> tuple[TrendPoint, ...]:
        """What was open after each step, of which there are fewer than `_MAX_POINTS`."""
        if not self._events:
            return ()
        first, last = min(self._events), max(self._events)
        step = next((one for one in _STEPS if (last - first) / one < _MAX_POINTS), _STEPS[-1])
        points: dict[float, TrendPoint] = {}
        errors = warnings = 0
        for at in sorted(self._events):
            errors += self._events[at][0]
            warnings += self._events[at][1]
            begin = at - at % step
            points[begin] = TrendPoint(begin, errors, warnings)
        return tuple(points.values())


def _worth(worst: int) -> float:
    return 0.0 if worst == 0 else 0.5 if worst == 1 else 1.0


def _site(name: str, counts: _Counts) -> SiteAudit:
    types = [
        TypeAudit(kind, of.pages, of.items, of.errors, of.warnings, math.floor(100 * of.sum / of.pages))
        for kind, of in counts.types.items()
    ]
    types.sort(key=lambda kind: (-kind.pages, kind.type))
    features = [FeatureAudit(title, pages, eligible) for title, (pages, eligible) in sorted(counts.features.items())]
    return SiteAudit(
        name,
        counts.pages,
        counts.with_data,
        counts.severities["error"],
        counts.severities["warning"],
        counts.severities["info"],
        counts.new,
        counts.still,
        counts.fixed,
        math.floor(100 * counts.sum / counts.scored) if counts.scored else 100,
        counts.compared,
        tuple(types),
        tuple(features),
        counts.scored,
    )
