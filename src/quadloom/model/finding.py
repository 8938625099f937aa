"""A defect in somebody else's data, with its place and advice: the audit trail of a crawl."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Literal, get_args, get_origin, get_type_hints

import msgspec
from xxhash import xxh3_64_hexdigest

Severity = Literal["info", "warning", "error"]
Phase = Literal["fetch", "detect", "transform", "index", "extract"]
WEIGHT: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}
"""The order of severities, gravest first."""
_DIGITS = re.compile(r"\d+")


class Finding(msgspec.Struct, frozen=True, array_like=True):
    """`code` is stable and documented in docs/reference/findings.md; `line` and `column` count from 1, 0 = unknown.

    An array in stores and between processes, so new fields go to the end; `FindingRecord` is its form for people.
    """

    code: str
    message: str
    severity: Severity = "warning"
    phase: Phase = "transform"
    line: int = 0
    column: int = 0
    advice: str = ""
    syntax: str = ""
    path: str = ""  # of the item and property it is about: `Product › offers › price`
    type: str = ""  # of that item, local name
    found: str = ""
    expected: str = ""
    excerpt: str = ""  # the line of the source, cut around the column
    caret: int = 0  # place of the column in the excerpt, from 1; 0 = unknown
    since: float = 0.0  # unix time of the visit that found it first, 0 = unknown

    @property
    def identity(self) -> str:
        """The same for the same defect at every visit: nothing of it depends on lines, values or counts."""
        about = self.path or _DIGITS.sub("", self.message)
        return xxh3_64_hexdigest(f"{self.code}\0{self.syntax}\0{about}".encode("utf-8", "replace"))

    def __str__(self) -> str:
        place = f" line {self.line}" + (f":{self.column}" if self.column else "") if self.line else ""
        advice = f" — {self.advice}" if self.advice else ""
        return f"{self.syntax or self.phase}{place}: {self.message}{advice}"


class FixedFinding(msgspec.Struct, frozen=True, array_like=True):
    """A defect that an earlier visit found and a later one (`fixed_at`) did not."""

    code: str
    severity: Severity
    path: str
    type: str
    since: float
    fixed_at: float


class FindingRecord(msgspec.Struct, frozen=True):
    """A finding with named fields, as every JSON shows it."""

    id: str
    code: str
    severity: Severity
    page: str
    message: str
    fix: str
    phase: Phase
    syntax: str
    type: str
    path: str
    line: int
    column: int
    excerpt: str
    caret: int
    found: str
    expected: str
    docs: str
    since: float

    def __str__(self) -> str:
        place = f" line {self.line}" + (f":{self.column}" if self.column else "") if self.line else ""
        fix = f" — {self.fix}" if self.fix else ""
        return f"{self.syntax or self.phase}{place}: {self.message}{fix}"


_FAMILIES = (
    "schema-",
    "vocabulary-",
    "bad-",
    "data-",
    "prefix-",
    "iri-",
    "date-",
    "rating-",
    "rich-",
    "value-",
    "offer-",
    "canonical-",
    "shacl-",
    "id-",
)
_ONES = frozenset(
    (
        "microdata-untyped",
        "microdata-loose-property",
        "jsonld-keyword",
        "jsonld-in-template",
        "rdfa-no-vocabulary",
        "checks-failed",
        "broken-data-link",
        "broken-link",
        "broken-sitemap-link",
        "missing-hreflang",
    )
)


def docs_of(code: str) -> str:
    """Where the documentation explains a code: codes of the checks have a page of their own."""
    own = (code.startswith(_FAMILIES) or code in _ONES) and code != "bad-bytes"
    return f"docs/reference/findings/{code}.md" if own else "docs/reference/findings.md"


def reported(finding: Finding, page: str) -> FindingRecord:
    same = {name: getattr(finding, name) for name in FindingRecord.__struct_fields__ if hasattr(finding, name)}
    return FindingRecord(id=finding.identity, page=page, fix=finding.advice, docs=docs_of(finding.code), **same)


class PageAudit(msgspec.Struct, frozen=True, array_like=True):
    """What a page has to offer. `types`: local names with how many items have them; `features`: rich results that the
    page aims at, and whether it has all that they require."""

    types: tuple[tuple[str, int], ...] = ()
    features: tuple[tuple[str, bool], ...] = ()


_MAX_FIXED = 20


def dated(findings: Sequence[Finding], before: Sequence[Finding], now: float) -> tuple[Finding, ...]:
    """The findings of a visit, gravest first, each with the time of the visit that found it first."""
    since = {finding.identity: finding.since for finding in before} if before else {}
    return tuple(
        msgspec.structs.replace(finding, since=since.get(finding.identity, now))
        for finding in sorted(findings, key=lambda finding: WEIGHT[finding.severity])
    )


def fixed(
    findings: Sequence[Finding], before: Sequence[Finding], already: Sequence[FixedFinding], now: float
) -> tuple[FixedFinding, ...]:
    """What the visit before found and this one did not, then what was fixed before that; twenty at most."""
    if not before:
        return tuple(already)
    left = {finding.identity for finding in findings}
    gone = {finding.identity: finding for finding in before if finding.identity not in left}
    new = [FixedFinding(one.code, one.severity, one.path, one.type, one.since, now) for one in gone.values()]
    return (*new, *already)[:_MAX_FIXED]


def named(value: object, page: str = "") -> object:
    """The value with every finding as an object with named fields, for JSON. Other records stay as they are."""
    kind: type = type(value)
    if not _may_hold_findings(kind):
        return value
    if isinstance(value, Finding):
        return reported(value, page)
    if isinstance(value, FixedFinding):
        return msgspec.structs.asdict(value)
    if isinstance(value, PageAudit):
        return {"types": dict(value.types), "features": dict(value.features)}
    if isinstance(value, dict):
        return {key: named(part, page) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [named(part, page) for part in value]
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        if not config.array_like and config.tag is None and not config.omit_defaults:
            page = str(getattr(value, "href", "") or getattr(value, "url", "") or page)
            names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
            return {shown: named(getattr(value, name), page) for name, shown in names}
    return value


_LEAVES = (str, bytes, int, float, bool, NoneType, Ellipsis)
_FINDINGS = (Finding, FixedFinding, PageAudit, msgspec.Struct)


@lru_cache(maxsize=1024)
def _may_hold_findings(kind: type) -> bool:
    """By its declared fields. Most answers hold no finding, and to walk through one costs more than to encode it."""
    return _declares_findings(kind, set())


def _declares_findings(kind: object, seen: set[object]) -> bool:
    """False only if it is certain. `seen`: types that are looked at already, since a record may hold its own kind."""
    if kind in _LEAVES or kind in seen or get_origin(kind) is Literal:
        return False
    seen.add(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return False
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in _FINDINGS:
        return any(_declares_findings(field, seen) for field in get_type_hints(kind).values())
    parts = get_args(kind)
    return not parts or any(_declares_findings(part, seen) for part in parts)
