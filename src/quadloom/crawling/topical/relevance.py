"""Is a text on the topic? A small model: hashed words, word pairs, URL tokens and types, by logistic regression.

There are two estimates. `Relevance.judge` is for a *document* with its whole text. `CandidateModel.estimate` is for a
*candidate*, of which only title, snippet, URL and source are known: it starts from the score of the document model for
those few words and is corrected by every document that was fetched, so that its probabilities are calibrated. No
network, no large library; a larger model can be passed wherever a `Judge` is expected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import msgspec
import numpy as np
import scipy  # its parts load on first use: half a second that most commands need not wait
from numpy.typing import NDArray
from xxhash import xxh32_intdigest

from quadloom.documents.words.written_words import words_of

Vector = NDArray[np.float64]
BITS = 16  # 65,536 positions: collisions are rare with the few thousand words of the examples
_SIZE = 1 << BITS
_FOLDS = 4
_PRIOR = 0.15  # share of relevant documents among those assessed
_UNTYPED = -1.0  # highest log-odds of a page without a wanted type
_STRENGTH = 0.02  # of the penalty on weights


class Example(msgspec.Struct, frozen=True):
    """A text whose relevance is known or to be assessed."""

    title: str = ""
    text: str = ""
    url: str = ""
    types: tuple[str, ...] = ()


class Topic(msgspec.Struct, frozen=True):
    """The topic of a crawl. `broad` finds sites, `narrow` finds pages; `types` are IRIs or their last parts."""

    broad: str
    narrow: str
    examples: tuple[Example, ...] = ()
    counterexamples: tuple[Example, ...] = ()
    types: tuple[str, ...] = ()


class Judge(Protocol):
    """A relevance model: `judge` returns the probability that a document is on the topic."""

    def judge(self, document: Example) -> float: ...


@lru_cache(maxsize=200_000)
def _place(token: str) -> int:
    return xxh32_intdigest(token.encode()) & (_SIZE - 1)


def bag(document: Example) -> dict[int, float]:
    """Counts of hashed words; a word in the title counts twice."""
    counts: dict[int, float] = {}
    title, body = words_of(document.title), words_of(document.text)
    for weight, words in ((2.0, title), (1.0, body)):
        for word in words:
            place = _place(word)
            counts[place] = counts.get(place, 0.0) + weight
    for one, two in pairwise(title):
        counts[_place(f"{one} {two}")] = 1.0
    for name in document.types:
        counts[_place("type:" + re.split(r"[/#:]", name)[-1].lower())] = 3.0
    return counts


class Relevance:
    """The document model of a topic. It learns from examples, and without counterexamples from pages (`observe`)."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._query = set(words_of(topic.narrow))
        self._types = {re.split(r"[/#:]", name)[-1].lower() for name in topic.types}
        self._frequency = np.zeros(_SIZE)
        self._documents = 0
        self._weights: Vector | None = None
        self._bias = 0.0
        self._background: list[Example] = []
        if topic.examples and topic.counterexamples:
            self.fit(topic.examples, topic.counterexamples)

    @property
    def trained(self) -> bool:
        return self._weights is not None

    def fit(self, positives: Sequence[Example], negatives: Sequence[Example]) -> None:
        """Learn from scratch. Both classes have the same total weight. Scores are calibrated on held-out folds: with
        few examples a regression is more certain about what it was trained on (Platt 1999)."""
        bags = [bag(example) for example in (*positives, *negatives)]
        self._frequency[:] = 0.0
        for counts in bags:
            self._frequency[list(counts)] += 1
        self._documents = len(bags)
        used = np.flatnonzero(self._frequency >= 1)
        column = {int(place): number for number, place in enumerate(used)}
        rows = np.zeros((len(bags), len(used)))
        for number, counts in enumerate(bags):
            for place, value in self._scaled(counts).items():
                rows[number, column[place]] = value
        labels = np.array([1.0] * len(positives) + [0.0] * len(negatives))
        shares = np.where(labels > 0, 0.5 / max(1, len(positives)), 0.5 / max(1, len(negatives))) * len(bags)
        weights, bias = logistic(rows, labels, shares, _STRENGTH)
        slope, shift = _calibration(rows, labels, shares)
        self._weights = np.zeros(_SIZE)
        self._weights[used] = slope * weights
        self._bias = slope * bias + shift

    def score(self, document: Example) -> float:
        """Log-odds by the words; before training, by the words of the topic alone."""
        if self._weights is None:
            return self._by_words(document)
        scaled = self._scaled(bag(document))
        total = self._bias + sum(self._weights[place] * value for place, value in scaled.items())
        return float(max(-12.0, min(12.0, total)))

    def judge(self, document: Example) -> float:
        """Probability that a document is on the topic. If the topic has types, a page with none of them is not."""
        score = self.score(document)
        if self._types:
            own = {re.split(r"[/#:]", name)[-1].lower() for name in document.types}
            score = score + 1.0 if own & self._types else min(score - 2.0, _UNTYPED)
        return 1.0 / (1.0 + math.exp(-score))

    def observe(self, document: Example) -> None:
        """Add a fetched page as background, if the topic has no counterexamples and the page none of the topic's words.
        With twenty such pages and one example the model is trained."""
        if self.topic.counterexamples or len(self._background) >= 300:
            return
        if self._query & set(words_of(f"{document.title} {document.text}")):
            return
        self._background.append(document)
        if len(self._background) in (20, 60, 150, 300) and self.topic.examples:
            self.fit(self.topic.examples, self._background)

    def _by_words(self, document: Example) -> float:
        """The score before training: how many of the topic's words occur in title and text, and how often."""
        if not self._query:
            return 0.0
        title, text = set(words_of(document.title)), words_of(document.text)
        in_title = len(self._query & title) / len(self._query)
        in_text = len(self._query & set(text)) / len(self._query)
        density = sum(word in self._query for word in text) / max(20, len(text))
        return -3.0 + 2.5 * in_title + 2.0 * in_text + min(3.0, 100.0 * density)

    def _scaled(self, counts: dict[int, float]) -> dict[int, float]:
        scaled = {
            place: (1.0 + math.log(value)) * math.log((self._documents + 1.0) / (self._frequency[place] + 0.5))
            for place, value in counts.items()
        }
        norm = math.sqrt(sum(value * value for value in scaled.values())) or 1.0
        return {place: 4.0 * value / norm for place, value in scaled.items()}


def _calibration(rows: Vector, labels: Vector, shares: Vector) -> tuple[float, float]:
    """Slope and shift from raw scores to log-odds."""
    if min(labels.sum(), (1 - labels).sum()) < _FOLDS:
        return 1.0, 0.0
    fold = np.empty(len(labels), dtype=int)
    for value in (0.0, 1.0):  # every fold has both classes
        members = np.flatnonzero(labels == value)
        fold[members] = np.arange(len(members)) % _FOLDS
    scores = np.zeros(len(labels))
    for number in range(_FOLDS):
        inside, outside = fold != number, fold == number
        weights, bias = logistic(rows[inside], labels[inside], shares[inside], _STRENGTH)
        scores[outside] = rows[outside] @ weights + bias
    shares = np.where(labels > 0, _PRIOR / labels.sum(), (1 - _PRIOR) / (1 - labels).sum()) * len(labels)
    slope, shift = logistic(scores[:, None], labels, shares, 0.02)
    return max(0.5, min(5.0, float(slope[0]))), shift


def logistic(rows: Vector, labels: Vector, shares: Vector, strength: float) -> tuple[Vector, float]:
    """Weights and bias of a logistic regression; `shares`: weights of the rows, `strength`: L2 penalty on weights."""

    def loss(w: Vector) -> tuple[float, Vector]:
        p = 1.0 / (1.0 + np.exp(-np.clip(rows @ w[1:] + w[0], -30, 30)))
        value = -np.sum(shares * (labels * np.log(p + 1e-12) + (1 - labels) * np.log(1 - p + 1e-12)))
        error = shares * (p - labels)
        gradient = np.concatenate(([error.sum()], rows.T @ error + strength * w[1:]))
        return float(value + strength / 2 * (w[1:] ** 2).sum()), gradient

    w = np.asarray(
        scipy.optimize.minimize(
            loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 60}
        ).x
    )
    return w[1:], float(w[0])
