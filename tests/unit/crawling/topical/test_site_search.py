"""Queries of an ordinary crawl to the search of a site: how many unknown pages they show within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from quadloom.crawling.topical.crawl import run_strategy
from quadloom.crawling.topical.relevance import Topic
from quadloom.crawling.topical.run import TopicalRun
from quadloom.crawling.topical.site_search import SiteQueries, _KnownSite
from quadloom.model.url import canonical
from quadloom_lab.topical.corpus import Corpus
from quadloom_lab.topical.engines import EngineKind
from quadloom_lab.topical.evaluation import SimulatedAccess
from quadloom_lab.topical.sites import _site
from quadloom_lab.topical.web import TopicalWeb

_PAGES, _ORPHANS, _BUDGET = 120, 29, 60


def searched(seed: int, engine: EngineKind, *, orphans: int = _ORPHANS, per_page: int = 10) -> tuple[int, int]:
    """(orphans found, requests) on a site of which all pages but the orphans are known."""
    random, corpus = Random(f"{seed} {engine}"), Corpus(seed)
    topics = [random.randrange(30) for _ in range(5)]
    texts = [corpus.text(random.choice(topics), random) for _ in range(_PAGES)]
    plan = _site("site.test", "form", texts, [], "held_out", random)
    plan = plan._replace(engine=engine, per_page=per_page, sitemap=False, soft_404=False)
    hidden = set(random.sample(range(_PAGES), orphans))
    urls = [canonical(f"http://site.test{placed.path}") for placed in plan.documents]
    known = {url for number, url in enumerate(urls) if number not in hidden}
    wanted = set(urls) - known

    def offer(shown: Sequence[str]) -> int:
        new = {canonical(url) for url in shown} - known
        known.update(new)
        return len(new)

    titles = [placed.text.title for number, placed in enumerate(plan.documents) if number not in hidden]
    strategy = SiteQueries(_KnownSite("http://site.test/", titles, None), offer, Random(1), 0.0)
    run = TopicalRun(Topic("", ""), _BUDGET)
    run_strategy(strategy, run, SimulatedAccess(TopicalWeb([plan])))
    return len(wanted & known), run.spent


@pytest.mark.parametrize("engine", ["all", "any", "tantivy", "newest", "oldest"])
def test_most_orphans_are_found_also_if_the_engine_lists_known_pages_first(engine: EngineKind) -> None:
    for seed in (31, 32):
        found, requests = searched(seed, engine)
        assert found >= 24 and requests <= _BUDGET, (engine, seed, found, requests)


def test_a_site_without_orphans_costs_little() -> None:
    found, requests = searched(33, "newest", orphans=0)
    assert found == 0 and requests <= 20
