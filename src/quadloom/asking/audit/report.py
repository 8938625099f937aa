"""The report of an audit: counts by severity and site, scores, rich results, and defects grouped by template.

Score of a site or a type: 100 times the mean over its pages with data, where a page without defects counts 1, one with
warnings only one half, one with an error 0. Remarks do not count.

A group is one mistake of one template: the same code, type and path on pages whose addresses begin alike. Findings are
new if their first visit is not before `since`; without `since`, if the page's last visit found them first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import urlsplit

import msgspec

from quadloom.documents.checks.codes import codes
from quadloom.model.finding import WEIGHT, Finding, FindingRecord, Severity, reported
from quadloom.model.outcome import PageRow
from quadloom.model.url import belongs_to, site_of
from quadloom.stores.protocols.catalog import Catalog

_SLICE = 1000
_MAX_EXAMPLES = 3
_MAX_QUOTED = 60  # characters of a value that a message quotes at most
_MAX_GROUPS = 5000
_STEP = 60.0  # seconds within which visits count as one
_STEPS = (60.0, 3600.0, 86400.0, 7 * 86400.0)
_MAX_POINTS = 200
_NUMBER = re.compile(r"\d+|[0-9a-f]{8,}", re.IGNORECASE)
FORMULA = "100 × mean over pages with data: 1 without defects, ½ with warnings only, 0 with an error"


class DefectGroup(msgspec.Struct, frozen=True):
    """One mistake of one template, with three examples. `linked_from`: pages that link to an example which could not be
    fetched, three at most."""

    severity: Severity
    code: str
    site: str
    template: str
    type: str
    path: str
    message: str
    fix: str
    pages: int
    findings: int
    new: int
    examples: tuple[FindingRecord, ...]
    linked_from: dict[str, tuple[str, ...]] = {}

    @property
    def headline(self) -> str:
        """`212 pages under /products/: offers.price is not a plain number`."""
        where = f"under {self.template}" if self.pages > 1 else f"at {self.examples[0].page}"
        return f"{self.pages} {'page' if self.pages == 1 else 'pages'} {where}: {self.what}"

    @property
    def what(self) -> str:
        """The mistake, without the value of a single page."""
        message = self.message.partition(": '")[0]
        found = dict.fromkeys(example.found[:_MAX_QUOTED] for example in self.examples)
        if len(found) > 1:
            message = message.replace(f" {next(iter(found))!r}", "", 1)
        steps = self.path.split(" › ")
        return f"{'.'.join(steps[1:-1])}: {message}" if len(steps) > 2 else message


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


class TrendPoint(msgspec.Struct, frozen=True):
    """Errors and warnings that were open at a time."""

    at: float
    errors: int
    warnings: int


class FixedGroup(msgspec.Struct, frozen=True):
    """One mistake of one template that is gone from these pages."""

    severity: Severity
    code: str
    site: str
    template: str
    path: str
    pages: int

    @property
    def headline(self) -> str:
        """`12 pages under /products/: bad-price (Product › offers › price)`."""
        about = f" ({self.path})" if self.path else ""
        return f"{self.pages} {'page' if self.pages == 1 else 'pages'} under {self.template}: {self.code}{about}"


class AuditReport(msgspec.Struct, frozen=True):
    sites: tuple[SiteAudit, ...]
    groups: tuple[DefectGroup, ...]
    trend: tuple[TrendPoint, ...]
    improved: tuple[FixedGroup, ...] = ()
    formula: str = FORMULA

    def count(self, severity: Severity) -> int:
        names = {"error": "errors", "warning": "warnings", "info": "remarks"}
        return sum(getattr(site, names[severity]) for site in self.sites)

    @property
    def score(self) -> float | None:
        """Of all sites, by their pages with data; None if no page has data."""
        with_data = sum(site.with_data for site in self.sites)
        return sum(site.score * site.with_data for site in self.sites) / with_data if with_data else None


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
                yield PageFindings(row, row.findings)


def audit(pages: Iterable[PageFindings], *, since: float = 0.0, codes_wanted: Collection[str] = ()) -> AuditReport:
    """One pass over the pages; only counts and three examples of each group are held."""
    tally = _Tally(since, frozenset(codes_wanted))
    for page in pages:
        tally.page(page)
    return tally.report()


class _Counts:
    def __init__(self) -> None:
        self.pages = self.with_data = self.new = self.still = self.fixed = self.compared = 0
        self.severities: dict[str, int] = {"error": 0, "warning": 0, "info": 0}
        self.sum = 0.0
        self.types: dict[str, _TypeCounts] = {}
        self.features: dict[str, list[int]] = {}


class _TypeCounts:
    def __init__(self) -> None:
        self.pages = self.items = self.errors = self.warnings = 0
        self.sum = 0.0


class _Group:
    def __init__(self) -> None:
        self.pages = self.findings = self.new = 0
        self.severity: Severity = "info"
        self.examples: list[FindingRecord] = []
        self.last = ""


class _Tally:
    def __init__(self, since: float, wanted: frozenset[str]) -> None:
        self._since = since
        self._wanted = wanted
        self._sites: dict[str, _Counts] = {}
        self._groups: dict[tuple[str, str, str, str, str], _Group] = {}
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
            self._group(site, row, finding, is_new)
            self._event(finding.since, finding.severity, 1)
        for fixed in (one for one in row.fixed if not self._wanted or one.code in self._wanted):
            if fixed.fixed_at >= self._since if self._since else fixed.fixed_at == row.fetched_at:
                counts.fixed += 1
                key = (fixed.severity, fixed.code, site, template_of(row.href), fixed.path)
                if key in self._improved or len(self._improved) < _MAX_GROUPS:
                    self._improved[key] = self._improved.get(key, 0) + 1
            self._event(fixed.since, fixed.severity, 1)
            self._event(fixed.fixed_at, fixed.severity, -1)
        if row.audit.types:
            counts.with_data += 1
            counts.sum += _worth(min(worst.values(), default=9))
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

    def _group(self, site: str, row: PageRow, finding: Finding, is_new: bool) -> None:
        key = (site, finding.code, finding.type, finding.path, template_of(row.href))
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MAX_GROUPS:
                return
            group = self._groups[key] = _Group()
        group.findings += 1
        group.new += is_new
        group.pages += group.last != row.href
        if WEIGHT[finding.severity] < WEIGHT[group.severity]:
            group.severity = finding.severity
        if group.last != row.href and len(group.examples) < _MAX_EXAMPLES:
            group.examples.append(reported(finding, row.href))
        group.last = row.href

    def report(self) -> AuditReport:
        groups = [
            DefectGroup(
                group.severity,
                code,
                site,
                template,
                kind,
                path,
                group.examples[0].message,
                group.examples[0].fix,
                group.pages,
                group.findings,
                group.new,
                tuple(group.examples),
            )
            for (site, code, kind, path, template), group in self._groups.items()
        ]
        groups.sort(key=lambda group: (WEIGHT[group.severity], group.code not in codes(), -group.pages, group.code))
        sites = [_site(name, counts) for name, counts in self._sites.items()]
        sites.sort(key=lambda site: (-site.errors, -site.warnings, site.site))
        improved = [FixedGroup(*key, pages) for key, pages in self._improved.items()]
        improved.sort(key=lambda one: (WEIGHT[one.severity], -one.pages, one.code))
        return AuditReport(tuple(sites), tuple(groups), self._trend(), tuple(improved))

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
        TypeAudit(kind, of.pages, of.items, of.errors, of.warnings, round(100 * of.sum / of.pages, 1))
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
        round(100 * counts.sum / counts.with_data, 1) if counts.with_data else 100.0,
        counts.compared,
        tuple(types),
        tuple(features),
    )


def template_of(url: str) -> str:
    """The part of an address that pages of one kind share: its folders, numbers replaced by `*`."""
    folders = urlsplit(url).path.split("/")[1:-1]
    return "/" + "".join(f"{_NUMBER.sub('*', folder)}/" for folder in folders)
