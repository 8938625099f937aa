"""What the graph of pages says about each page: where it was found, its rank, and when it is read again.

A description depends only on the page's row in the catalog, so `rebuild` computes the same one. Numbers have three
significant digits, more than their precision.
"""

from __future__ import annotations

import math
from functools import lru_cache

from quadloom.documents.descriptions import GONE, PAGES, page_description
from quadloom.documents.syntaxes.terms import XSD, iri
from quadloom.model.lru import LruCache
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.timestamps import iso_time
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow, gone_since
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog

REPROCESSED_AT = NamedValue("woven-again-at", float)  # time of the last replay or rebuild
_SOURCES = 20_000  # URLs in memory
_REDIRECTS = 10
_DAY = 86_400.0
_TENTH = 1.2816  # standard deviations from the mean of a normal distribution to its lower or upper tenth


def description(row: PageRow, status: int, source: str, *, schedule: bool) -> bytes:
    """The statements about a page, as N-Quads. `status`: of the version described; `source`: the page that links to it;
    `schedule`: with its rank and its next visit (`index.schedule`)."""
    about = page_description(row, status, source)
    if about and row.outcome is Outcome.GONE:
        about += f'{iri(row.graph)} <{GONE}> "{iso_time(gone_since(row))}"^^<{XSD}dateTime> <{PAGES}> .\n'.encode()
    return about + _schedule_statements(row) if about and schedule and row.schedule else about


def _schedule_statements(row: PageRow) -> bytes:
    schedule = decode(row.schedule, PageScheduleRow)
    plan = schedule.plan
    numbers: list[tuple[str, float]] = []
    if schedule.importance:
        numbers += [("importance", schedule.importance), ("usefulness", schedule.usefulness)]
    if plan.period and row.visits > 1:  # after one visit the rate only reflects the site's other pages
        # A log-normal with the posterior's mean and variance of ln λ: using its grid would cost 40 µs per page.
        spread = _TENTH * math.sqrt(plan.log_variance)
        numbers += [
            ("changesPerDay", plan.changes_per_second * _DAY),
            ("changesPerDayLow", math.exp(plan.log_mean - spread) * _DAY),
            ("changesPerDayHigh", math.exp(plan.log_mean + spread) * _DAY),
        ]
    parts = [f'{name}> "{_digits(number)}"^^<{XSD}double>' for name, number in numbers]
    if (due := schedule.next_visit) is not None:
        parts.append(f'nextVisit> "{iso_time(due)}"^^<{XSD}dateTime>')
    subject = iri(row.graph)
    return "".join(f"{subject} <urn:quadloom:{part} <{PAGES}> .\n" for part in parts).encode()


@lru_cache(maxsize=4096)
def _digits(number: float) -> str:
    """Format with 3 significant digits as the quad store does, so that equal values compare equal as text."""
    if not number > 0.0:
        return "0"
    number = float(f"{number:.3g}")
    text = f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class SourceUrls:
    """URLs of source pages, cached: pages read one after another often share their source."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._hrefs: LruCache[int, str] = LruCache(_SOURCES)

    def learn(self, fingerprint: int, href: str) -> None:
        """Add a source that the catalog may not have yet: dumps list pages in any order."""
        self._hrefs.put(fingerprint, href)

    def href(self, fingerprint: int) -> str:
        """The URL of the page with the link, before any redirects. Empty for a seed or an unknown source."""
        if not fingerprint:
            return ""
        href = self._hrefs.get(fingerprint)
        if href is None:
            row = self._catalog.page(fingerprint)
            for _ in range(_REDIRECTS):
                if row is None or row.kind != "redirect":
                    break
                row = self._catalog.page(row.via) if row.via else None
            href = row.href if row is not None else ""
            self._hrefs.put(fingerprint, href)
        return href
