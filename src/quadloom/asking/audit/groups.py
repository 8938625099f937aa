"""Findings of many pages as entries that a person can work off: one mistake, one entry, the most rewarding first.

A mistake is known by its code, its syntax and the way to the value (`Product › offers › price`), which is the same on
all pages of one template whatever their addresses are. What has no such way is known by its message without values.
An address that could not be fetched says nothing about its page, so these are grouped by their first folder.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec

from quadloom.documents.checks.profiles import profiles
from quadloom.model.finding import Finding, FindingRecord, Severity, reported
from quadloom.model.outcome import PageRow
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow

_MAX_EXAMPLES = 3
_MAX_QUOTED = 60  # characters of a value that a message quotes at most
_MAX_FOLDERS = 50
_MAX_GROUPS = 5000
_FEW_PAGES, _MANY_FOLDERS = 3, 8  # dead pages of more folders than that, with fewer pages each, are one entry
_NUMBER = re.compile(r"\d+|[0-9a-f]{8,}", re.IGNORECASE)
_VALUE = re.compile(r"""(?:https?:)?//\S+|'[^']*'|"[^"]*"|: .*""")
_SEVERITY: dict[Severity, float] = {"error": 1.0, "warning": 0.3, "info": 0.01}
_LOST = 4.0  # whole descriptions, or a rich result
_LOSES = frozenset(
    (
        "jsonld-invalid",
        "jsonld-in-template",
        "offer-expired",
        "rdfa-no-vocabulary",
        "schema-missing-required",
        "schema-namespace",
        "schema-unknown-type",
    )
)


class DefectGroup(msgspec.Struct, frozen=True):
    """One mistake, with three examples. `folders`: first folders of the addresses with their pages, most pages first.
    `template`: the folder, if there is only one. `linked_from`: pages that link to an example which could not be
    fetched, three at most. `gain`: what the order goes by."""

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
    folders: dict[str, int] = {}
    gain: float = 0.0

    @property
    def headline(self) -> str:
        """`212 pages under /products/: offers.price is not a plain number`."""
        return f"{self.where}: {self.what}"

    @property
    def where(self) -> str:
        if self.pages == 1 and self.examples:
            return f"1 page at {self.examples[0].page}"
        if len(self.folders) > 1:
            folder, count = next(iter(self.folders.items()))
            if count == 1:
                return f"{self.pages} pages in {len(self.folders)} folders"
            return f"{self.pages} pages, {count} of them under {folder}"
        return f"{self.pages} pages under {self.template}"

    @property
    def what(self) -> str:
        """The mistake, without the value of a single page."""
        message = self.message.partition(": '")[0]
        found = dict.fromkeys(example.found[:_MAX_QUOTED] for example in self.examples)
        if len(found) > 1:
            message = message.replace(f" {next(iter(found))!r}", "", 1)
        steps = self.path.split(" › ")
        return f"{'.'.join(steps[1:-1])}: {message}" if len(steps) > 2 else message


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


class _Key(msgspec.Struct, frozen=True):
    site: str
    code: str
    type: str
    about: str
    severity: Severity
    folder: str = ""  # only of what could not be fetched


class _Group:
    def __init__(self, first: Finding) -> None:
        self.first = first
        self.pages = self.findings = self.new = 0
        self.worth = 0.0  # sum of the importance of its pages
        self.examples: list[FindingRecord] = []
        self.folders: Counter[str] = Counter()
        self.last = ""

    def add(self, row: PageRow, finding: Finding, *, is_new: bool) -> None:
        self.findings += 1
        self.new += is_new
        if self.last == row.href:
            return
        self.last = row.href
        self.pages += 1
        self.worth += _importance(row)
        folder = first_folder(row.href)
        self.folders[folder if folder in self.folders or len(self.folders) < _MAX_FOLDERS else "/"] += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(reported(finding, row.href))

    def join(self, other: _Group) -> None:
        self.pages += other.pages
        self.findings += other.findings
        self.new += other.new
        self.worth += other.worth
        self.examples = (self.examples + other.examples)[:_MAX_EXAMPLES]
        self.folders += other.folders


class Groups:
    """Collects findings; only counts and three examples of each group are held. `left_out` counts the findings of
    mistakes beyond the five thousandth."""

    def __init__(self) -> None:
        self._groups: dict[_Key, _Group] = {}
        self.left_out = 0

    def add(self, site: str, row: PageRow, finding: Finding, *, is_new: bool) -> None:
        """Findings of one page must follow each other."""
        folder = first_folder(row.href) if finding.phase == "fetch" else ""
        key = _Key(site, finding.code, finding.type, _about(finding), finding.severity, folder)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MAX_GROUPS:
                self.left_out += 1
                return
            group = self._groups[key] = _Group(finding)
        group.add(row, finding, is_new=is_new)

    def ordered(self) -> tuple[DefectGroup, ...]:
        """By what fixing them gains, remarks last."""
        groups = [_defect(key, group) for key, group in _with_rests(self._groups).items()]
        groups.sort(key=lambda one: (one.severity == "info", -one.gain, one.code, one.path, one.site))
        return tuple(groups)


def _about(finding: Finding) -> str:
    if finding.path:
        return f"{finding.syntax} {finding.path}"
    if finding.phase == "fetch":
        return _VALUE.sub("", finding.message)
    if finding.severity == "info":
        return ""
    return f"{finding.syntax} {finding.found or _NUMBER.sub('', _VALUE.sub('', finding.message))}"


@lru_cache(maxsize=1)
def _required() -> frozenset[tuple[str, str]]:
    """Types and properties without which there is no rich result."""
    rules = [rule for profile in profiles(("rich-results",)) for rule in profile.rules if not rule.retired]
    return frozenset((rule.type, name) for rule in rules for name in rule.needs)


def _importance(row: PageRow) -> float:
    """1 for a page that no ranking has seen; by its logarithm, since a home page is no thousand others."""
    ranked = decode(row.schedule, PageScheduleRow).importance if row.schedule else 0.0
    return 1.0 + math.log2(1.0 + ranked) if ranked > 0.0 else 1.0


def _with_rests(groups: dict[_Key, _Group]) -> dict[_Key, _Group]:
    """The groups, but small ones of many folders joined: they are what is left of many templates, or of none."""
    of_mistake: dict[_Key, list[_Key]] = {}
    for key in groups:
        if key.folder:
            of_mistake.setdefault(msgspec.structs.replace(key, folder=""), []).append(key)
    joined = dict(groups)
    for rest, keys in of_mistake.items():
        small = [key for key in keys if groups[key].pages < _FEW_PAGES]
        if len(small) <= _MANY_FOLDERS:
            continue
        first = joined[rest] = joined.pop(small[0])
        for key in small[1:]:
            first.join(joined.pop(key))
    return joined


def _defect(key: _Key, group: _Group) -> DefectGroup:
    first = group.examples[0]
    folders = dict(group.folders.most_common())
    property = group.first.path.rpartition(" › ")[2]
    is_lost = key.code in _LOSES or (key.severity == "error" and (key.type, property) in _required())
    importance = _LOST if is_lost else 1.0
    return DefectGroup(
        key.severity,
        key.code,
        key.site,
        next(iter(folders)) if len(folders) == 1 else "/",
        key.type,
        group.first.path,
        first.message,
        first.fix,
        group.pages,
        group.findings,
        group.new,
        tuple(group.examples),
        folders=folders,
        gain=round(group.worth * importance * _SEVERITY[key.severity], 2),
    )


def first_folder(url: str) -> str:
    """`/blog/` for all of `/blog/x`, `/blog/x/` and `/blog/2026/x.html`; numbers are replaced by `*`."""
    folders = urlsplit(url).path.strip("/").split("/")[:-1]
    return f"/{_NUMBER.sub('*', folders[0])}/" if folders else "/"


def page_defects(groups: Iterable[DefectGroup], *, several: bool) -> dict[str, list[int]]:
    """Pages with errors and with warnings by folder; `several` sites are named."""
    counted: dict[str, list[int]] = {}
    for group in groups:
        if group.severity != "info":
            for folder, pages in group.folders.items():
                pair = counted.setdefault(f"{group.site if several else ''}{folder}", [0, 0])
                pair[group.severity == "warning"] += pages
    return counted
