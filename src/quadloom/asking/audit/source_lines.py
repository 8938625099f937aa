"""Lines of findings that only several pages together show: the value is looked for in the archived page."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from urllib.parse import unquote, urlsplit

import msgspec

from quadloom.asking.audit.report import AuditReport
from quadloom.asking.urls import page_of
from quadloom.model.finding import FindingRecord
from quadloom.model.page import Page
from quadloom.stores.opened import Stores

_MOST_PAGES = 300  # that are read from the archive for one report
_WIDTH = 160


class SourceLines:
    """Reads each page once. `read`: the body of a page by its URL, empty if there is none."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._bodies: dict[str, bytes] = {}

    def report(self, report: AuditReport) -> AuditReport:
        """The report with the lines of its examples."""
        groups = [
            msgspec.structs.replace(group, examples=tuple(self.record(one) for one in group.examples))
            for group in report.groups
        ]
        return msgspec.structs.replace(report, groups=tuple(groups))

    def record(self, record: FindingRecord) -> FindingRecord:
        """The record with its line, if the value is in the page."""
        if record.line or record.phase != "index" or not record.found:
            return record
        body = self._body(record.page)
        place = next((place for text in _written(record.found) if (place := body.find(text.encode())) >= 0), -1)
        if place < 0:
            return record
        begin = body.rfind(b"\n", 0, place) + 1
        column = len(body[begin:place].decode("utf-8", "replace")) + 1
        shown = body[max(begin, place - 28) : place + _WIDTH].decode("utf-8", "replace").split("\n")[0]
        return msgspec.structs.replace(
            record, line=body.count(b"\n", 0, place) + 1, column=column, excerpt=shown, caret=min(column, 29)
        )

    def _body(self, url: str) -> bytes:
        if url not in self._bodies:
            self._bodies[url] = self._read(url) if len(self._bodies) < _MOST_PAGES else b""
        return self._bodies[url]


def archived(stores: Stores) -> Callable[[str], bytes]:
    """Reads bodies from the archive."""

    def read(url: str) -> bytes:
        row = page_of(stores.catalog, url)
        stored = stores.archive.get(row.archive) if row is not None and row.archive else None
        return stored.body if isinstance(stored, Page) else b""

    return read


def _written(value: str) -> list[str]:
    """Ways in which a page may write a value: as it is, escaped, or as an address without its host."""
    ways = [value, escape(value), value.replace("/", "\\/")]
    if "://" in value:
        parts = urlsplit(value)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        ways += [one for one in (path, unquote(path), path.rpartition("/")[2]) if len(one) > 1]
    return ways
