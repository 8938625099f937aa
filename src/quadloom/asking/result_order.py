"""From hits of the text index to what a person sees: ranked by the page as well.

    score = score of the words × importance × kind × recency        (docs/explanation/search-ranking.md)

Only the first `WINDOW` hits are ranked anew; the index's own order is right for those further down. A page never leaves
its tier, so a page with all words stays above one with most of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from quadloom.asking.urls import fingerprint_of
from quadloom.model.outcome import Outcome
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.stores.protocols.catalog import PageSummary
from quadloom.stores.protocols.text import Hit, ScorePart

WINDOW = 40  # hits
TIER = 200.0  # as the indexes add for each tier
_IMPORTANCE, _MOST_IMPORTANCE = 0.1, 1.5
_FEEDS = frozenset(("rss", "atom", "jsonfeed", "sitemap", "sitemapindex", "opml"))
_FEED, _DATA = 0.7, 0.9  # factors of lists of pages, and of data files
_PAGES = frozenset(("html", "xhtml", "text", "pdf", "office", "markdown"))
_NEW, _HALF_LIFE = 1.0, 30.0 * 86_400.0  # what a page of today gains if news are asked for, and when half of it is left


class PageFact(msgspec.Struct, frozen=True):
    """What the catalog knows of a hit."""

    importance: float = 0.0  # 1 = the mean of all pages, 0 = unknown
    gone: bool = False


class PageSummaries(Protocol):
    """The part of `Catalog` that is needed here."""

    def summaries(self, fingerprints: Sequence[int]) -> dict[int, PageSummary]: ...


def page_facts(catalog: PageSummaries | None, hits: Sequence[Hit]) -> dict[str, PageFact]:
    """By the hit's URL. A page that was reached by a redirect has a row under its own URL only if it was visited."""
    if catalog is None or not hits:
        return {}
    urls = {number: hit.id for hit in hits if (number := fingerprint_of(hit.id)) is not None}
    return {
        urls[number]: PageFact(_importance(row.schedule), row.outcome is Outcome.GONE)
        for number, row in catalog.summaries(list(urls)).items()
        if row.kind != "redirect"
    }


def _importance(schedule: bytes) -> float:
    return decode(schedule, PageScheduleRow).importance if schedule else 0.0


def ranked(hits: Sequence[Hit], facts: dict[str, PageFact], *, newest: bool) -> list[Hit]:
    """Best first, with scores and explanations that include the factors."""
    now = max((hit.fetched_at for hit in hits), default=0.0)
    scored = [_scored(hit, facts.get(hit.id), now if newest else 0.0) for hit in hits]
    return sorted(scored, key=lambda hit: (-hit.tier, -hit.score))


def _scored(hit: Hit, fact: PageFact | None, now: float) -> Hit:
    factors: list[tuple[str, float]] = []
    if fact is not None and fact.importance > 0.0:
        value = min(_MOST_IMPORTANCE, 1.0 + _IMPORTANCE * math.log2(1.0 + fact.importance))
        factors.append((f"importance {fact.importance:.2f} of the mean", value))
    if hit.kind in _FEEDS:
        factors.append((f"a list of pages ({hit.kind})", _FEED))
    elif hit.kind and hit.kind not in _PAGES:
        factors.append((f"a data file ({hit.kind})", _DATA))
    if now:
        age = max(0.0, now - hit.fetched_at)
        factors.append(("recent, as asked for", 1.0 + _NEW * 0.5 ** (age / _HALF_LIFE)))
    score = hit.score - hit.tier * TIER
    for _, value in factors:
        score *= value
    score += hit.tier * TIER
    gone = fact is not None and fact.gone
    if not hit.explanation:
        return replace(hit, score=score, gone=gone)
    explained = tuple(ScorePart(what, value, factor=True) for what, value in factors)
    return replace(hit, score=score, explanation=(*hit.explanation, *explained), gone=gone)
