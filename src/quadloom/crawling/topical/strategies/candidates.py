"""Pages of which only title, snippet or anchor text is known, and the probability that each is on the topic.

The estimate is a small logistic regression over a dozen dense features. It starts with plausible weights and is fitted
again as documents are fetched and assessed, with the first weights as its prior. Early on the words count most; later
the model knows which sites, queries and kinds of links lead to relevant documents.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import count
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from quadloom.crawling.topical.relevance import Example, Relevance
from quadloom.crawling.topical.search.site_indexes import slug_words
from quadloom.documents.words.written_words import words_of
from quadloom.model.url import host_of

Vector = NDArray[np.float64]
Source = Literal["result", "index", "link"]

# bias, words of title and URL, words of title and snippet, has snippet, share of query words, link, index, parent,
# rank, tally of the site, tally of the query
PRIOR = np.array([-0.4, 0.35, 0.55, 0.0, 0.6, -0.5, 0.0, 1.5, -0.2, 0.6, 0.5])
_SPREAD = np.array([1.0, 0.3, 0.3, 0.5, 0.7, 1.0, 1.0, 1.0, 0.3, 0.3, 0.3])
_MAX_ROWS = 3000  # fitted at most, the newest


class Candidate:
    """A page that could be fetched. `fixed`: its features without the tallies; `p`: its estimated relevance."""

    __slots__ = ("example", "fixed", "host", "key", "p", "query", "source", "url")

    def __init__(self, url: str, key: str, example: Example, source: Source, query: str, fixed: Vector) -> None:
        self.url = url
        self.key = key
        self.host = host_of(url)
        self.example = example
        self.source = source
        self.query = query
        self.fixed = fixed
        self.p = 0.0


class RelevanceTally:
    """Documents fetched and relevant ones so far, of a site or a query."""

    __slots__ = ("fetched", "relevant")

    def __init__(self) -> None:
        self.fetched = 0
        self.relevant = 0.0

    def lift(self, mean: float) -> float:
        """Log-odds against the average, shrunk by four imagined average documents."""
        rate = (self.relevant + 4 * mean) / (self.fetched + 4)
        rate, mean = min(max(rate, 0.02), 0.98), min(max(mean, 0.02), 0.98)
        return math.log(rate / (1 - rate)) - math.log(mean / (1 - mean))


class CandidateModel:
    """Estimates the relevance of candidates and learns from assessed documents."""

    def __init__(self, relevance: Relevance) -> None:
        self._relevance = relevance
        self._query = set(words_of(relevance.topic.narrow))
        self.weights = PRIOR.copy()
        self._rows: list[Vector] = []
        self._labels: list[float] = []
        self.overall = RelevanceTally()
        self.sites: dict[str, RelevanceTally] = {}
        self.queries: dict[str, RelevanceTally] = {}
        self._next_fit = 12

    def candidate(
        self,
        url: str,
        key: str,
        title: str,
        snippet: str,
        source: Source,
        *,
        query: str = "",
        parent: float = 0.5,
        rank: int = 0,
    ) -> Candidate:
        """Make a candidate with its features and first estimate. `parent`: relevance of the page that links to it."""
        slug = slug_words(url)
        words = set(words_of(f"{title} {snippet} {slug}"))
        share = len(words & self._query) / len(self._query) if self._query else 0.0
        headline = self._relevance.score(Example(title, slug))
        full = self._relevance.score(Example(title, snippet)) if snippet else headline
        fixed = np.array(
            [
                1.0,
                headline / 2,
                full / 2,
                float(bool(snippet)),
                share,
                float(source == "link"),
                float(source == "index"),
                parent - 0.5 if source == "link" else 0.0,
                math.log1p(rank) / 3,
                0.0,  # `row` fills in the tallies
                0.0,
            ]
        )
        found = Candidate(url, key, Example(title, snippet, url), source, query, fixed)
        found.p = self.estimate(found)
        return found

    def row(self, candidate: Candidate) -> Vector:
        """The features of a candidate as of now."""
        mean = self.mean
        row = candidate.fixed.copy()
        site, query = self.sites.get(candidate.host), self.queries.get(candidate.query)
        row[9] = site.lift(mean) if site else 0.0
        row[10] = query.lift(mean) if query and candidate.query else 0.0
        return row

    @property
    def mean(self) -> float:
        return (self.overall.relevant + 2) / (self.overall.fetched + 4)

    def estimate(self, candidate: Candidate) -> float:
        """Probability that a candidate is relevant."""
        z = float(self.row(candidate) @ self.weights)
        return 1.0 / (1.0 + math.exp(-max(-20.0, min(20.0, z))))

    def learn(self, candidate: Candidate, verdict: float) -> bool:
        """Add the relevance of a fetched candidate. True = the weights have changed, so estimates should be renewed."""
        self._rows.append(self.row(candidate))
        self._labels.append(verdict)
        records = [self.overall, self.sites.setdefault(candidate.host, RelevanceTally())]
        if candidate.query:
            records.append(self.queries.setdefault(candidate.query, RelevanceTally()))
        for record in records:
            record.fetched += 1
            record.relevant += verdict
        if len(self._rows) < self._next_fit:
            return False
        self._next_fit = len(self._rows) + max(10, len(self._rows) // 6)
        self._fit()
        return True

    def _fit(self) -> None:
        """Newton steps towards the maximum a posteriori; with eleven unknowns, six steps are exact."""
        rows, labels = np.array(self._rows[-_MAX_ROWS:]), np.array(self._labels[-_MAX_ROWS:])
        precision = np.diag(1.0 / _SPREAD**2)
        w = self.weights.copy()
        for _ in range(6):
            p = 1.0 / (1.0 + np.exp(-np.clip(rows @ w, -20, 20)))
            gradient = rows.T @ (labels - p) - precision @ (w - PRIOR)
            hessian = (rows * (p * (1 - p))[:, None]).T @ rows + precision
            step = np.linalg.solve(hessian, gradient)
            w += step / max(1.0, float(np.abs(step).max()))
        self.weights = w


class CandidateQueue:
    """Candidates by estimated relevance, each URL once."""

    def __init__(self, model: CandidateModel) -> None:
        self._model = model
        self._heap: list[tuple[float, int, Candidate]] = []
        self._sequence = count()
        self.seen: set[str] = set()

    def offer(self, candidate: Candidate) -> bool:
        """Add a candidate; False if its URL is queued or was fetched already."""
        if candidate.key in self.seen:
            return False
        self.seen.add(candidate.key)
        heapq.heappush(self._heap, (-candidate.p, next(self._sequence), candidate))
        return True

    def best(self, barred: set[str]) -> Candidate | None:
        """The best candidate whose host is not barred; it stays in the queue. Only the first fifty are considered."""
        for _, _, candidate in heapq.nsmallest(1 if not barred else 50, self._heap):
            if candidate.host not in barred:
                return candidate
        return None

    def take(self, candidate: Candidate) -> None:
        """Remove a candidate."""
        if self._heap and self._heap[0][2] is candidate:
            heapq.heappop(self._heap)
            return
        self._heap = [entry for entry in self._heap if entry[2] is not candidate]
        heapq.heapify(self._heap)

    def renew(self) -> None:
        """Estimate all candidates again, after the model has changed."""
        candidates = [entry[2] for entry in self._heap]
        for candidate in candidates:
            candidate.p = self._model.estimate(candidate)
        self._heap = [(-candidate.p, next(self._sequence), candidate) for candidate in candidates]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Candidate]:
        return (entry[2] for entry in self._heap)
