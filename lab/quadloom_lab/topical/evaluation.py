"""Compare strategies on simulated webs whose relevant documents are known: `quadloom bench topical`.

Every request counts: home pages, probes, result pages, documents, failures. `harvest` is the paper's measure,
the share of relevant documents; `per request` is the main figure. At equal recall, relevant documents per request are
inversely proportional to the requests needed. Copies of a document count once. The crawler never sees the labels, only
twenty examples and two hundred counterexamples from texts that no site serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal

import msgspec
import numpy as np

from quadloom.crawling.topical.access import SiteRequest, SiteResponse
from quadloom.crawling.topical.crawl import STRATEGIES, StrategyName, TopicalStrategy, make_strategy, run_strategy
from quadloom.crawling.topical.relevance import Example, Topic
from quadloom.crawling.topical.run import TopicalRun
from quadloom.crawling.topical.search.web_search import WebHit, sites_of
from quadloom.crawling.topical.sites import SeedSite
from quadloom.model.url import canonical, resolve
from quadloom_lab.charts import Series, svg
from quadloom_lab.topical.corpus import SCRIPTS, Corpus, CorpusText
from quadloom_lab.topical.engines import make_engine
from quadloom_lab.topical.layouts import Layout, LayoutWeb
from quadloom_lab.topical.rivals import Intelligent, SleepingBandits
from quadloom_lab.topical.sites import Family, plan_sites
from quadloom_lab.topical.web import TopicalWeb

BUDGET = 1500
RECALL = 0.5
POSITIVES, NEGATIVES = 20, 200
RivalName = StrategyName | Literal["sleeping-bandits", "intelligent"]
_CHART_STEPS = 100


class EvaluationRun(msgspec.Struct, frozen=True):
    """One strategy on one web. `curve`: (requests, distinct relevant documents, documents) after each document."""

    strategy: str
    seed: int
    requests: int
    documents: int
    relevant: int
    total: int
    curve: tuple[tuple[int, int, int], ...]
    purposes: dict[str, int]

    @property
    def recall(self) -> float:
        return self.relevant / self.total

    def at_recall(self, level: float) -> tuple[int, float] | None:
        """(requests needed, harvest so far) at a level of recall; None = never reached."""
        for requests, relevant, documents in self.curve:
            if relevant >= level * self.total:
                return requests, relevant / documents
        return None


class Interval(msgspec.Struct, frozen=True):
    mean: float
    low: float
    high: float


class EvaluationRow(msgspec.Struct, frozen=True):
    """A strategy over all seeds; intervals are 95 % bootstrap over webs."""

    strategy: str
    harvest: Interval
    per_request: Interval
    recall: Interval
    requests: float
    reached: int  # webs on which the recall level was reached
    harvest_at_recall: Interval | None = None
    requests_at_recall: Interval | None = None


class Evaluation(msgspec.Struct, frozen=True):
    rows: tuple[EvaluationRow, ...]
    best_baseline: str
    advantage: Interval  # documents per request against the best baseline at equal recall
    advantages: dict[str, Interval]
    runs: tuple[EvaluationRun, ...]
    family: str
    seeds: int
    budget: int
    sites: int


class SimulatedAccess:
    """A simulated web as `Access`; redirects are followed as in a browser, and each costs a request."""

    def __init__(self, web: TopicalWeb | LayoutWeb) -> None:
        self._web = web
        self.hops = 0

    def ask(self, asks: Sequence[SiteRequest]) -> list[SiteResponse | None]:
        return [self._one(ask) for ask in asks]

    def _one(self, ask: SiteRequest) -> SiteResponse | None:
        url = ask.url
        response = self._web.respond(url, ask.method, ask.fields)
        for _ in range(3):
            if not response.location:
                break
            url = response.location
            self.hops += 1
            response = self._web.respond(url)
        return SiteResponse(url, response.status, response.content_type, response.body) if response.status else None


def run(
    *,
    seeds: int = 5,
    budget: int = BUDGET,
    sites: int = 60,
    family: Family = "held_out",
    strategies: Sequence[StrategyName] = STRATEGIES,
    progress: Callable[[str], None] = lambda _line: None,
) -> Evaluation:
    """Run all strategies on `seeds` webs, each with its own topic."""
    runs = []
    for seed in range(seeds):
        world = World(seed, family, sites)
        for name in strategies:
            result = world.run(name, budget)
            runs.append(result)
            progress(
                f"web {seed} {name}: {result.relevant} of {result.total} in {result.requests} requests, "
                f"harvest {result.relevant / max(1, result.documents):.2f}"
            )
    return summarise(runs, family, budget, sites)


class World:
    """A corpus, a topic and the web that serves it."""

    def __init__(self, seed: int, family: Family, sites: int = 60) -> None:
        self.seed = seed
        own = {"known": 0, "held_out": 1000, "foreign": 2000}[family]
        self._corpus = Corpus(seed + own, script=SCRIPTS[seed % len(SCRIPTS)] if family == "foreign" else "")
        random = Random(f"world {seed} {family}")
        self._topic = random.randrange(len(self._corpus.topics))
        self._plans = plan_sites(self._corpus, self._topic, seed, family, sites)
        self.web = TopicalWeb(self._plans)
        truth = self.web.truth(self._topic).items()
        self._truth = {canonical(resolve(url) or url): number for url, number in truth}
        self._seeds = self._search_web()

    def topic(self) -> Topic:
        return example_topic(self._corpus, self._topic, self.seed)

    def _search_web(self) -> list[SeedSite]:
        """A web searcher over all pages of the web: two broad queries, 200 hits each."""
        placed = [(f"http://{plan.host}{d.path}", d.text) for plan in self._plans for d in plan.documents]
        engine = make_engine("tantivy", [(text.title, text.body, text.day) for _, text in placed])
        queries = (self._corpus.broad_query(self._topic), self._corpus.narrow_query(self._topic))
        rankings = [[WebHit(placed[number][0]) for number in engine.search(query)[:200]] for query in queries]
        return sites_of(rankings)

    def run(self, name: RivalName, budget: int) -> EvaluationRun:
        return labelled_run(name, self.topic(), self._seeds, self.web, self._truth, budget, self.seed)


class LayoutWorld:
    """A topic and sites of one layout, which have no search."""

    def __init__(self, layout: Layout, seed: int) -> None:
        self.seed = seed
        corpus = Corpus(seed + 3000)
        topic = Random(f"layout {layout} {seed}").randrange(len(corpus.topics))
        self.topic = example_topic(corpus, topic, seed)
        self.web = LayoutWeb(layout, corpus, topic, seed)
        self._truth = {canonical(url): number for url, number in self.web.truth.items()}

    def run(self, name: RivalName, budget: int) -> EvaluationRun:
        seeds = [SeedSite(home) for home in self.web.homes]
        return labelled_run(name, self.topic, seeds, self.web, self._truth, budget, self.seed)


def labelled_run(
    name: RivalName,
    topic: Topic,
    seeds: Sequence[SeedSite],
    web: TopicalWeb | LayoutWeb,
    truth: dict[str, int],
    budget: int,
    seed: int,
) -> EvaluationRun:
    """One strategy on one web, measured by `truth`: URL → number of the distinct relevant document."""
    run = TopicalRun(topic, budget, per_site=100)
    access = SimulatedAccess(web)
    random = Random(f"{name} {seed}")
    labelled = _LabelledCrawl(truth)
    strategy: TopicalStrategy
    if name == "sleeping-bandits" or name == "intelligent":
        strategy = (SleepingBandits if name == "sleeping-bandits" else Intelligent)(run, seeds, random)
    else:
        strategy = make_strategy(name, run, seeds, random, 0.0)
    run_strategy(strategy, run, access, progress=labelled.note)
    return EvaluationRun(
        strategy=name,
        seed=seed,
        requests=run.spent + access.hops,
        documents=len(run.found),
        relevant=len(labelled.distinct),
        total=len(set(truth.values())),
        curve=tuple(labelled.curve),
        purposes=run.purposes,
    )


class _LabelledCrawl:
    """Measures a crawl by the true labels of its documents."""

    def __init__(self, truth: dict[str, int]) -> None:
        self._truth = truth
        self._read = 0
        self.distinct: set[int] = set()
        self.curve: list[tuple[int, int, int]] = []

    def note(self, run: TopicalRun) -> None:
        for found in run.found[self._read :]:
            number = self._truth.get(canonical(found.url))
            if number is not None:
                self.distinct.add(number)
            self._read += 1
            self.curve.append((run.spent, len(self.distinct), self._read))


def example_topic(corpus: Corpus, number: int, seed: int) -> Topic:
    """A topic by its words and by examples that no site serves."""
    random = Random(f"examples {seed}")
    others = [t for t in range(len(corpus.topics)) if t != number]
    siblings = corpus.siblings(number)
    negatives = [random.choice(siblings) if n % 3 == 0 else random.choice(others) for n in range(NEGATIVES)]
    return Topic(
        broad=corpus.broad_query(number),
        narrow=corpus.narrow_query(number),
        examples=tuple(_example(corpus.text(number, random)) for _ in range(POSITIVES)),
        counterexamples=tuple(_example(corpus.text(other, random)) for other in negatives),
    )


def summarise(runs: Sequence[EvaluationRun], family: str, budget: int, sites: int) -> Evaluation:
    names = list(dict.fromkeys(run.strategy for run in runs))
    rows = tuple(_row(name, [run for run in runs if run.strategy == name]) for name in names)
    ours = {run.seed: run for run in runs if run.strategy == "adaptive"}
    advantages = {}
    for name in names:
        if name != "adaptive" and ours:
            theirs = [run for run in runs if run.strategy == name]
            advantages[name] = interval([equal_recall_ratio(ours[run.seed], run) for run in theirs])
    best = min(advantages, key=lambda name: advantages[name].mean) if advantages else ""
    none = Interval(0.0, 0.0, 0.0)
    return Evaluation(
        rows,
        best,
        advantages.get(best, none),
        advantages,
        tuple(runs),
        family,
        len({run.seed for run in runs}),
        budget,
        sites,
    )


def recall_chart(evaluation: Evaluation) -> str:
    """Recall over requests as SVG: for each strategy the mean over webs, with a band from the worst to the best."""
    steps = [evaluation.budget * step / _CHART_STEPS for step in range(_CHART_STEPS + 1)]
    series = []
    for name in dict.fromkeys(run.strategy for run in evaluation.runs):
        runs = [run for run in evaluation.runs if run.strategy == name]
        rows = [(step, [recall_at(run, step) for run in runs]) for step in steps]
        means = [(step, sum(values) / len(values)) for step, values in rows]
        series.append(Series(name, means, [(step, min(values), max(values)) for step, values in rows]))
    family = evaluation.family.replace("_", "-")
    title = f"Recall of relevant documents, {evaluation.seeds} webs of {evaluation.sites} sites, {family} templates"
    return svg(series, title=title, x_label="requests of any kind", y_label="recall")


def recall_at(run: EvaluationRun, requests: float) -> float:
    """Share of the relevant documents found with that many requests."""
    found = 0
    for spent, relevant, _ in run.curve:
        if spent > requests:
            break
        found = relevant
    return found / run.total


def equal_recall_ratio(ours: EvaluationRun, theirs: EvaluationRun) -> float:
    """Ratio of documents per request, ours to theirs, at the recall that both reached, at most `RECALL`."""
    level = min(RECALL, ours.recall, theirs.recall)
    a, b = ours.at_recall(level), theirs.at_recall(level)
    return b[0] / a[0] if a and b and a[0] else 1.0


def _row(name: str, runs: Sequence[EvaluationRun]) -> EvaluationRow:
    reached = [found for run in runs if (found := run.at_recall(RECALL)) is not None]
    return EvaluationRow(
        strategy=name,
        harvest=interval([run.relevant / max(1, run.documents) for run in runs]),
        per_request=interval([run.relevant / max(1, run.requests) for run in runs]),
        recall=interval([run.recall for run in runs]),
        requests=sum(run.requests for run in runs) / len(runs),
        reached=len(reached),
        harvest_at_recall=interval([harvest for _, harvest in reached]) if reached else None,
        requests_at_recall=interval([float(requests) for requests, _ in reached]) if reached else None,
    )


def interval(values: Sequence[float], draws: int = 2000) -> Interval:
    """Mean with a 95 % percentile bootstrap; the random draws are the same every time."""
    data = np.asarray(values, dtype=float)
    generator = np.random.default_rng(7)
    means = data[generator.integers(0, len(data), (draws, len(data)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(round(float(data.mean()), 4), round(float(low), 4), round(float(high), 4))


def _example(text: CorpusText) -> Example:
    return Example(text.title, text.body)
