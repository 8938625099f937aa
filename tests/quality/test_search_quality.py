"""Floors of `quadloom bench search`: the page that a person has in mind comes first, in every language."""

from __future__ import annotations

import pytest

from quadloom_lab.benchmarks.search.evaluation import SearchQuality, evaluate
from quadloom_lab.benchmarks.search.known_items import lexicons

LANGUAGES = tuple(lexicons())


@pytest.fixture(scope="module")
def quality() -> SearchQuality:
    return evaluate(questions=8, seed=3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_known_items_are_found(quality: SearchQuality, language: str) -> None:
    exact = quality.score("quadloom", language, "exact")
    assert exact.five >= 0.95 and exact.mrr >= 0.9
    floors = {"inflected": 0.75, "misspelt": 0.75, "partial": 0.75, "long": 0.6}  # eight questions each: one may fail
    found = {kind: quality.score("quadloom", language, kind).mrr for kind in floors}
    assert all(found[kind] >= floor for kind, floor in floors.items()), found


@pytest.mark.parametrize("language", LANGUAGES)
def test_search_is_ahead_of_fts5(quality: SearchQuality, language: str) -> None:
    own = quality.score("quadloom", language, "all").mrr
    assert own > max(quality.score(name, language, "all").mrr for name in ("fts5 unicode61", "fts5 trigram", "tantivy"))


@pytest.mark.slow
def test_the_whole_bench_reaches_its_goals() -> None:
    quality = evaluate()
    for language in LANGUAGES:
        exact = quality.score("quadloom", language, "exact")
        assert exact.five >= 0.95 and exact.mrr >= 0.9, language
        for kind in ("inflected", "misspelt", "partial"):
            assert quality.score("quadloom", language, kind).mrr >= 0.8, (language, kind)
