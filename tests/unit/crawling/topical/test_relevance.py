"""Relevance, candidates, terms, web search fusion, strategies: what they learn and decide."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import pytest

from quadloom.crawling.topical.access import SiteResponse
from quadloom.crawling.topical.crawl import make_strategy, run_strategy
from quadloom.crawling.topical.relevance import Example, Relevance, Topic
from quadloom.crawling.topical.run import TopicalRun
from quadloom.crawling.topical.search.queries import TermStatistics, combining, site_stop_words, top_terms
from quadloom.crawling.topical.search.web_search import BraveSearcher, FileSearcher, SearxngSearcher, WebHit, sites_of
from quadloom.crawling.topical.strategies.candidates import CandidateModel, CandidateQueue
from quadloom.documents.words.written_words import words_of
from quadloom.errors import SettingsError, UsageError
from quadloom_lab.topical.corpus import Corpus
from quadloom_lab.topical.evaluation import SimulatedAccess, World

CORPUS = Corpus(21)


def example(topic: int, random: Random) -> Example:
    text = CORPUS.text(topic, random)
    return Example(text.title, text.body)


def topic_of(number: int) -> Topic:
    random = Random(1)
    others = [n for n in range(30) if n != number]
    return Topic(
        CORPUS.broad_query(number),
        CORPUS.narrow_query(number),
        tuple(example(number, random) for _ in range(20)),
        tuple(example(random.choice(others), random) for _ in range(100)),
    )


def test_twenty_examples_separate_a_topic_from_its_siblings() -> None:
    model = Relevance(topic_of(7))
    random = Random(2)
    own = [model.judge(example(7, random)) for _ in range(60)]
    siblings = [model.judge(example(random.choice(CORPUS.siblings(7)), random)) for _ in range(60)]
    assert sum(p >= 0.5 for p in own) >= 54
    assert sum(p >= 0.5 for p in siblings) <= 12


def test_without_examples_the_words_of_the_topic_decide() -> None:
    model = Relevance(Topic("Travel", "paris museum"))
    assert model.judge(Example("Paris museum guide", "the museum in paris opens")) > 0.5
    assert model.judge(Example("Cooking soup", "onions and carrots")) < 0.1


def test_wanted_types_decide_together_with_the_words() -> None:
    model = Relevance(Topic("Events", "concert", types=("schema:Event",)))
    page = Example("Concert tonight", "a concert in the hall, concert at eight")
    typed = Example(page.title, page.text, types=("https://schema.org/Event",))
    assert model.judge(typed) > 0.5 > model.judge(page)


def test_examples_without_counterexamples_learn_from_the_crawl_itself() -> None:
    random = Random(3)
    positives = topic_of(7)
    model = Relevance(Topic("", CORPUS.narrow_query(7), positives.examples))
    own, other = example(7, random), example(25, random)
    before = model.judge(own) - model.judge(other)
    for _ in range(40):
        model.observe(example(random.choice([n for n in range(30) if n != 7]), random))
    assert model.judge(own) - model.judge(other) > max(before, 0.0)


def test_words_of_scripts_without_spaces_are_pairs() -> None:
    assert words_of("東京旅行 Paris 2020") == ["東京", "京旅", "旅行", "paris"]


def test_candidates_are_corrected_by_verdicts() -> None:
    model = CandidateModel(Relevance(Topic("", "paris")))
    good = model.candidate("http://good.test/1", "http://good.test/1", "A page", "", "result", query="paris")
    bad = model.candidate("http://bad.test/1", "http://bad.test/1", "A page", "", "result", query="paris")
    assert good.p == bad.p
    for _ in range(30):
        model.learn(good, 1.0)
        model.learn(bad, 0.0)
    assert model.estimate(good) > 0.6 > 0.4 > model.estimate(bad)


def test_the_queue_gives_the_best_free_host_and_each_address_once() -> None:
    model = CandidateModel(Relevance(Topic("", "paris")))
    queue = CandidateQueue(model)
    first = model.candidate("http://a.test/", "http://a.test/", "paris paris", "paris", "result")
    second = model.candidate("http://b.test/", "http://b.test/", "soup", "", "result")
    assert queue.offer(second) and queue.offer(first) and not queue.offer(first)
    assert queue.best(set()) is first
    assert queue.best({"a.test"}) is second
    queue.take(first)
    assert queue.best(set()) is second


def test_terms_are_telling_and_common_words_are_not() -> None:
    statistics = TermStatistics()
    random = Random(4)
    for _ in range(30):
        statistics.add(*_pair(7, random), True)
        statistics.add(*_pair(random.choice(CORPUS.siblings(7)), random), False)
        statistics.add(*_pair(random.choice([n for n in range(30) if n != 7]), random), False)
    chosen = CORPUS.topics[7]
    own = {*chosen.core, *(word for facet in chosen.facets for word in facet)}
    best = [term.text for term in statistics.ranked()[:8]]
    assert sum(word in own for word in best) >= 6
    assert not set(best) & set(CORPUS.common[:50])


def _pair(topic: int, random: Random) -> tuple[str, str]:
    text = CORPUS.text(topic, random)
    return text.title, text.body


@pytest.mark.parametrize(
    ("alone", "together", "mode"),
    [
        ((10, 20), 5, "all"),
        ((10, 20), 26, "any"),
        ((10, 20), 0, "all"),
        ((-1, 3), 2, "unknown"),
        ((0, 0), 0, "unknown"),
    ],
)
def test_how_an_engine_joins_words(alone: tuple[int, int], together: int, mode: str) -> None:
    assert combining(alone, together) == mode


def test_top_terms_are_the_papers() -> None:
    assert top_terms([("a cat", "cat dog dog dog the"), ("", "cat the")], {"the"}, 2) == ["cat", "dog"]


def test_terms_that_all_relevant_documents_share_are_the_best_and_function_words_are_none() -> None:
    louvre = "the louvre and the seine are in the city and it is near the museum which was built by kings"
    metro = "the metro to the louvre is near the seine and it was built for this city as a line of the city"
    terms = top_terms([("Louvre", louvre), ("Metro", metro)], set(), 4)
    assert set(terms[:3]) >= {"louvre", "city"}
    assert not {"the", "and", "was", "which", "this"} & set(terms)
    others = ["cookie settings of our shop", "our shop has soup", "shop for our bikes"]
    assert site_stop_words(others) == {"our", "shop"}
    assert site_stop_words(others[:2]) == set()


def test_rank_fusion_and_the_papers_home_page_rule() -> None:
    one = [WebHit("http://a.test/x"), WebHit("http://b.test/"), WebHit("http://a.test/y")]
    two = [WebHit("http://b.test/"), WebHit("http://c.test/z")]
    assert [seed.host for seed in sites_of([one, two])] == ["b.test", "a.test", "c.test"]
    assert [seed.host for seed in sites_of([one, two], home_pages_only=True)] == ["b.test"]


def test_searchers_read_json_and_files_and_tell_what_is_wrong(tmp_path: Path) -> None:
    body = b'{"results":[{"url":"http://a.test/","title":"A"},{"url":"javascript:x"}],"web":{"results":[{"url":"http://w.test/"}]}}'
    answer = SiteResponse("http://s.test/", 200, "application/json", body)
    assert [hit.url for hit in SearxngSearcher("http://s.test", lambda _u, _h: answer).search("q", 1)] == [
        "http://a.test/"
    ]
    asked = []
    brave = BraveSearcher("secret", lambda url, headers: asked.append((url, headers)) or answer)
    assert [hit.url for hit in brave.search("new york", 5)] == ["http://w.test/"]
    assert ("X-Subscription-Token", "secret") in asked[0][1]
    with pytest.raises(SettingsError):
        BraveSearcher("", lambda _u, _h: None)
    with pytest.raises(UsageError, match="JSON"):
        SearxngSearcher("http://s.test", lambda url, _h: SiteResponse(url, 403, "", b"")).search("q", 5)
    file = tmp_path / "hits.txt"
    file.write_text("# sites\nhttp://a.test/x\tTitle\nnot a url\n", encoding="utf-8")
    assert [hit.title for hit in FileSearcher(file).search("q", 5)] == ["Title"]


@cache
def world_of(seed: int) -> World:
    return World(seed, "known", 8)


@pytest.mark.parametrize("name", ["adaptive", "liu-agah", "best-first", "breadth-first", "random"])
def test_every_strategy_keeps_its_budget_and_ends(name: str) -> None:
    world = world_of(3)
    run = TopicalRun(world.topic(), 120, per_site=15)
    strategy = make_strategy(name, run, world._seeds, Random(1), 0.0)  # type: ignore[arg-type]
    report = run_strategy(strategy, run, SimulatedAccess(world.web), width=4)
    assert 0 < report.requests <= 120
    assert sum(report.purposes.values()) == report.requests
    assert max(run.fetched.values()) <= 15
    assert len({found.url for found in report.found}) == len(report.found)


def test_terms_to_ask_for_are_written_as_in_the_documents() -> None:
    statistics = TermStatistics()
    for number in range(6):
        statistics.add("", f"ο κόσμος {number}α και ο ΚΟΣΜΟΣ του κόσμου: μουσικός κόσμος", True)
        statistics.add("", f"κάτι άλλο {number}β για τη θάλασσα", False)
    terms = [term.text for term in statistics.ranked()]
    assert "κόσμος" in terms and "κοσμοσ" not in terms
    assert top_terms([("Οι ΛΌΓΟΙ", "οι λόγοι και οι λόγοι"), ("λόγοι", "")], set(), 1) == ["λόγοι"]


def test_a_topic_is_found_however_it_is_spelled() -> None:
    model = Relevance(Topic("μουσική", "κόσμος"))
    shouted = Example("ΚΟΣΜΟΣ", "Ο ΚΟΣΜΟΣ")
    assert model.judge(shouted) == model.judge(Example("κόσμος", "ο κόσμος")) > 0.5
