"""What the graph of pages says: where they were found, how they stand and when they are read again.

A description comes from the page's row in the catalog alone, so `rebuild` makes the same one. Numbers have three
digits, which is more than any of them is worth.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from datetime import UTC, datetime

from quadloom.model.outcome import PageRow
from quadloom.model.wire import decode
from quadloom.phases.index import PAGES, page_description
from quadloom.scheduling.page_row import PageScheduleRow
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.syntaxes.terms import XSD, iri

REPROCESSED_AT = NamedValue("woven-again-at", float)  # time of the last replay or rebuild
_KEPT = 20_000
_HOPS = 10
_DAY = 86_400.0
_TENTH = 1.2816  # standard deviations from the middle of a normal distribution to its lower or upper tenth


def description(row: PageRow, status: int, source: str, *, schedule: bool) -> bytes:
    """All that the graph of pages says of one, N-Quads. `status`: of the version described; `source`: where it was
    found; `schedule`: also how it stands and when it is read again (`index.schedule`)."""
    about = page_description(row, status, source)
    return about + _schedule_statements(row) if about and schedule and row.schedule else about


def _schedule_statements(row: PageRow) -> bytes:
    kept = decode(row.schedule, PageScheduleRow)
    plan = kept.plan
    numbers: list[tuple[str, float]] = []
    if kept.importance:
        numbers += [("importance", kept.importance), ("usefulness", kept.usefulness)]
    if plan.period and row.visits > 1:  # after a first visit the rate is only what the site's other pages suggest
        # A log-normal with the posterior's mean and variance of ln λ: the grid itself would cost 40 µs a page.
        spread = _TENTH * math.sqrt(plan.log_variance)
        numbers += [
            ("changesPerDay", plan.changes_per_second * _DAY),
            ("changesPerDayLow", math.exp(plan.log_mean - spread) * _DAY),
            ("changesPerDayHigh", math.exp(plan.log_mean + spread) * _DAY),
        ]
    parts = [f'{name}> "{_digits(number)}"^^<{XSD}double>' for name, number in numbers]
    if kept.next_visit is not None:
        when = f"{datetime.fromtimestamp(int(kept.next_visit), UTC).isoformat()[:19]}Z"
        parts.append(f'nextVisit> "{when}"^^<{XSD}dateTime>')
    subject = iri(row.graph)
    return "".join(f"{subject} <urn:quadloom:{part} <{PAGES}> .\n" for part in parts).encode()


def _digits(number: float) -> str:
    """Three digits without an exponent: the words in which the quad store gives a double back."""
    if not number > 0.0:
        return "0"
    number = float(f"{number:.3g}")
    text = f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class SourceUrls:
    """URLs of source pages. Neighbours in a crawl share their source, so a small memory answers nearly always."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: OrderedDict[int, str] = OrderedDict()

    def learn(self, fingerprint: int, href: str) -> None:
        """A source that the catalog may not have yet: dumps list pages in any order."""
        self._known[fingerprint] = href

    def href(self, fingerprint: int) -> str:
        """The page with the link, also where a redirect lay between. Empty for a seed, and for an unknown source."""
        if not fingerprint:
            return ""
        known = self._known.get(fingerprint)
        if known is None:
            row = self._catalog.page(fingerprint)
            for _ in range(_HOPS):
                if row is None or row.kind != "redirect":
                    break
                row = self._catalog.page(row.via) if row.via else None
            known = row.href if row is not None else ""
            self._known[fingerprint] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return known
