"""The crawler of Liu and Agah (2012), as published, with its learning loop corrected.

Site after site: home page, search form, a query learned by twenty probes, its result pages, and every result whose
title or snippet contains the query. The loop in the paper counts a probe only if it was better than all before, so it
may not end; here every probe counts. A probe costs one search and the documents of its first page that were not fetched
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from quadloom.crawling.topical.access import RequestSequence
from quadloom.crawling.topical.run import RELEVANT, AssessedDocument, KnownPages, TopicalRun
from quadloom.crawling.topical.search.channels import SearchChannel, SiteOpening, open_site, query_channel
from quadloom.crawling.topical.search.queries import site_stop_words, top_terms
from quadloom.crawling.topical.search.results import ResultPage, SearchResult
from quadloom.crawling.topical.sites import SeedSite
from quadloom.documents.words.written_words import words_of
from quadloom.model.url import canonical, host_of

PROBES = 20
_MAX_PAGES = 50
_COUNTED_PAGES = 10  # pages that are turned to count results


class LiuAgah:
    """Goodness of a query: precision of its first page times the total number of results, formula (1) of the paper."""

    name = "liu-agah"

    def __init__(self, run: TopicalRun, seeds: Sequence[SeedSite], random: Random, now: float) -> None:
        self.run = run
        self._random = random
        self._now = now
        self._sites = list(seeds)
        self._nonsense = f"zq{random.getrandbits(40):x}x"
        self._documents: dict[str, AssessedDocument | None] = {}

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        seed = next((seed for seed in self._sites if seed.host not in busy), None)
        if seed is None:
            return None
        self._sites.remove(seed)
        return seed.host, self._site(seed)

    def waiting(self) -> KnownPages:
        """It fetches what it takes for relevant at once, and remembers nothing else."""
        return KnownPages()

    def _site(self, seed: SeedSite) -> RequestSequence[None]:
        query = self.run.topic.narrow
        opening: SiteOpening = yield from open_site(seed.home, query, self._nonsense, self._now)
        channel = opening.channel
        if opening.home is not None:
            self.run.note_boilerplate(opening.home)
        if not channel.searchable:
            return  # the paper leaves sites without a search form to other techniques
        learned, first = yield from self._learn(channel, query, opening.first)
        page: ResultPage | None = first
        number = 0
        while page is not None and page.results and number < _MAX_PAGES and not self.run.full(seed.host):
            for result in page.results:
                if self._matches(result) and not self.run.full(seed.host):
                    yield from self._fetch(result, learned)
            number += 1
            page = (
                (yield from query_channel(channel, learned, number, page.next_url, page.next_fields))
                if self._has_next(channel, page)
                else None
            )

    def _learn(self, channel: SearchChannel, query: str, first: ResultPage) -> RequestSequence[tuple[str, ResultPage]]:
        best, best_page = query, first
        goodness = yield from self._goodness(channel, first, query)
        relevant = [
            (document.example.title, document.example.text)
            for result in first.results
            if (document := self._documents.get(canonical(result.url))) and document.verdict >= RELEVANT
        ]
        host = host_of(channel.home)
        others = [
            document.example.text
            for document in self._documents.values()
            if document is not None and document.verdict < RELEVANT and host_of(document.url) == host
        ]
        terms = top_terms(relevant, set(words_of(query)) | site_stop_words(others))
        if len(terms) < 2:
            return best, best_page
        for _ in range(PROBES):
            if self.run.full(host):
                break
            picked = self._random.sample(terms, min(len(terms), self._random.randint(2, 5)))
            probe = f"{query} {' '.join(picked)}"
            page = yield from query_channel(channel, probe)
            value = (yield from self._goodness(channel, page, probe)) if page is not None else 0.0
            if page is not None and value > goodness:
                best, best_page, goodness = probe, page, value
        return best, best_page

    def _goodness(self, channel: SearchChannel, page: ResultPage, query: str) -> RequestSequence[float]:
        if not page.results:
            return 0.0
        relevant = 0
        for result in page.results:
            document = yield from self._fetch(result, query)
            relevant += document is not None and document.verdict >= RELEVANT
        if not relevant:
            return 0.0
        total = page.total if page.total >= 0 else (yield from self._counted(channel, page, query))
        return relevant / len(page.results) * total

    def _counted(self, channel: SearchChannel, first: ResultPage, query: str) -> RequestSequence[int]:
        """The paper's way to a total that is not stated (section 5.4): follow `next` and count pages, at most ten."""
        page: ResultPage | None = first
        pages = 1
        seen = {result.url for result in first.results}
        while page is not None and page.next_url and pages < _COUNTED_PAGES:
            page = yield from query_channel(channel, query, pages, page.next_url, page.next_fields)
            fresh = {result.url for result in page.results} - seen if page is not None else set()
            if not fresh:
                break
            seen |= fresh
            pages += 1
        return max(len(seen), (pages - 1) * len(first.results))

    def _fetch(self, result: SearchResult, query: str) -> RequestSequence[AssessedDocument | None]:
        key = canonical(result.url)
        if key not in self._documents and not self.run.full(host_of(result.url)):
            self._documents[key] = None
            self._documents[key] = yield from self.run.read(result.url, 0.5, "result", query)
        return self._documents.get(key)

    def _matches(self, result: SearchResult) -> bool:
        """The paper's rule: the query in the title or among the forty words after it."""
        words = set(words_of(result.title)) | set(words_of(result.snippet)[:40])
        return bool(words & set(words_of(self.run.topic.narrow)))

    def _has_next(self, channel: SearchChannel, page: ResultPage) -> bool:
        return bool(page.next_url) or channel.format != "html"
