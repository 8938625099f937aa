"""Which terms to query next: those that relevant documents have and others do not, by log-odds and coverage.

The log-odds have an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008): a term seen twice by chance does not
outrank one seen in forty documents. Coverage decides among strong terms, since a query is worth the new documents it
finds (Ntoulas, Zerfos and Cho 2005), not all that it finds.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Literal

import msgspec

from quadloom.documents.words.languages import language_of
from quadloom.documents.words.written_words import stop_words, words_of, written_words

Mode = Literal["unknown", "all", "any"]
_LEAST_LENGTH = 3
_TERMS_OF_DOCUMENT = 400
_FEWEST_OTHERS = 3  # documents off the topic, before their common words count as stop words


class QueryTerm(msgspec.Struct, frozen=True):
    """`text`: as documents write it; `coverage`: share of relevant documents that have it; `purity`: share of its
    documents that are relevant."""

    text: str
    z: float
    coverage: float
    purity: float


class TermStatistics:
    """Document frequencies of words among relevant and other documents."""

    def __init__(self) -> None:
        self.relevant: Counter[str] = Counter()
        self.other: Counter[str] = Counter()
        self.relevant_documents = 0
        self.other_documents = 0
        self._written = WrittenForms()
        self._stale = True
        self._ranked: list[QueryTerm] = []

    def add(self, title: str, text: str, is_relevant: bool) -> None:
        together = f"{title} {text}"
        stop = stop_words(language_of(together))
        words = {w for w in words_of(together)[:_TERMS_OF_DOCUMENT] if len(w) >= _LEAST_LENGTH and w not in stop}
        if is_relevant:
            self._written.add(together)
            self.relevant.update(words)
            self.relevant_documents += 1
        else:
            self.other.update(words)
            self.other_documents += 1
        self._stale = True

    def ranked(self, limit: int = 40) -> list[QueryTerm]:
        """Significant terms, most promising first, by coverage times purity squared. The square moves back words of the
        wider subject, which most relevant documents have, but most others too."""
        if self._stale and self.relevant_documents >= 3:
            terms = [term for word, n in self.relevant.items() if n >= 2 and (term := self._term(word)).z > 2.0]
            self._ranked = sorted(terms, key=lambda term: (-(term.purity**2) * term.coverage, term.text))[:limit]
            self._stale = False
        return self._ranked

    def _term(self, word: str) -> QueryTerm:
        a, b = self.relevant[word], self.other[word]
        prior = 0.01 * (a + b) + 0.5
        total = self.relevant_documents + self.other_documents + 1.0
        rest = 0.01 * total + 1.0
        here = (a + prior) / (self.relevant_documents - a + rest)
        there = (b + prior) / (max(0, self.other_documents - b) + rest)
        z = (math.log(here) - math.log(there)) / math.sqrt(1 / (a + prior) + 1 / (b + prior))
        share_here = a / max(1, self.relevant_documents)
        share_there = b / max(1, self.other_documents)
        # Both classes have the same weight: most fetched documents are relevant, most documents of an engine are not.
        purity = share_here / (share_here + 2 * share_there + 0.02)
        return QueryTerm(self._written.form_of(word), z, share_here, purity)


class WrittenForms:
    """How documents write words. A form that was chosen stays, so that no engine is asked for two forms of a word."""

    def __init__(self) -> None:
        self._forms: dict[str, Counter[str]] = {}
        self._chosen: dict[str, str] = {}

    def add(self, text: str) -> None:
        for word, written in written_words(text):
            self._forms.setdefault(word, Counter())[written] += 1

    def form_of(self, word: str) -> str:
        """The most frequent form."""
        if word not in self._chosen:
            forms = self._forms.get(word, Counter())
            self._chosen[word] = min(forms, key=lambda form: (-forms[form], form), default=word)
        return self._chosen[word]


def combining(alone: tuple[int, int], together: int) -> Mode:
    """How an engine combines two words, from the totals of each alone and of both: AND narrows, OR widens."""
    if min(*alone, together) < 0 or alone == (0, 0):
        return "unknown"
    if together >= max(alone) and max(alone) > 0 and (together > max(alone) or min(alone) > 0):
        return "any"
    return "all" if together <= min(alone) else "unknown"


def top_terms(texts: list[tuple[str, str]], stop: set[str], limit: int = 10) -> list[str]:
    """The terms that most of these documents have, without stop words of their language and without `stop`: the paper's
    candidates for a longer query, as the documents write them. Among equally common ones, those that occur more often.
    `stop`: in the form for comparisons."""
    written = WrittenForms()
    having: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for title, text in texts:
        together = f"{title} {text}"
        written.add(together)
        common = stop_words(language_of(together)) | stop
        words = [word for word in words_of(together) if len(word) >= _LEAST_LENGTH and word not in common]
        counts.update(words)
        having.update(set(words))
    chosen = sorted(having, key=lambda word: (-having[word], -counts[word], word))[:limit]
    return [written.form_of(word) for word in chosen]


def site_stop_words(others: list[str]) -> set[str]:
    """Words of most documents of a site that are *not* on the topic: its own manner of speaking. Words of the relevant
    ones must not count, since there the topic itself is common."""
    if len(others) < _FEWEST_OTHERS:
        return set()
    having: Counter[str] = Counter()
    for text in others:
        having.update(set(words_of(text)))
    return {word for word, n in having.items() if n > len(others) / 2}
