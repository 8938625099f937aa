"""`quadloom topic`: collect pages on a topic with the sites' own search; `topic survey`: which sites have one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from rich.live import Live
from rich.table import Table
from rich.text import Text

from quadloom.cli.crawling.crawl import check_contact, require_contact
from quadloom.cli.crawling.url_files import urls_from_file
from quadloom.cli.progress import bar, duration, rate
from quadloom.cli.session import Session, session
from quadloom.crawling.cluster.steering import ClusterReader, Steering
from quadloom.crawling.cluster.view import cluster_view
from quadloom.crawling.run.control import ask
from quadloom.crawling.topical.access import SiteResponse
from quadloom.crawling.topical.anchors import read_outline
from quadloom.crawling.topical.crawl import StrategyName, TopicalStrategy, TopicReport
from quadloom.crawling.topical.embeddings import EmbeddingJudge, load_encoder
from quadloom.crawling.topical.relevance import Example, Topic
from quadloom.crawling.topical.run import RELEVANT, TopicalRun
from quadloom.crawling.topical.search.engines import SearchLead
from quadloom.crawling.topical.search.hosted import site_leads
from quadloom.crawling.topical.search.web_search import (
    BraveSearcher,
    FileSearcher,
    SearxngSearcher,
    WarehouseSearcher,
    WebSearcher,
    sites_of,
)
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.strategies.adaptive import Adaptive
from quadloom.crawling.topical.survey import SurveyedSite, by_category, shares
from quadloom.crawling.topical.watched_topics import WATCHED, WatchedTopic, forget
from quadloom.errors import FetchError, NothingFound, StoreError, StoreUnavailable, UsageError
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.model.url import Url, resolve
from quadloom.model.wire import Value
from quadloom.settings import length_of
from quadloom.settings.loading import secret
from quadloom.warehouse import Warehouse
from quadloom.web.view.filters import counted

topic = App(name="topic", help="Collect pages on a topic, using the sites' own search.")
_HITS = 200  # taken from one web searcher
_ROWS = 12  # rows of the live table


@topic.default
def collect(
    broad: str = "",
    narrow: str = "",
    *,
    example: list[str] | None = None,
    against: list[str] | None = None,
    type: list[str] | None = None,
    seeds: Path | None = None,
    searcher: list[str] | None = None,
    budget: int | None = None,
    per_site: int | None = None,
    strategy: StrategyName | None = None,
    home_pages_only: Annotated[bool | None, Parameter(negative="--no-home-pages-only")] = None,
    embeddings: str | None = None,
    contact: str | None = None,
    delay: float | None = None,
    every: str = "",
) -> int:
    """Find sites with a broad query, ask each site's own search a narrow one, and store the relevant pages.

    Parameters
    ----------
    broad
        words to find sites, such as Travel [default: the first of topic.words]
    narrow
        words to find pages, such as paris [default: the others of topic.words]
    example
        URL or file of a page on the topic; may be repeated
    against
        URL or file of a page that is not on the topic; may be repeated
    type
        type of data that pages must have, such as schema:Event
    seeds
        file with one site per line, `-` for standard input; without it, web searchers find the sites
    searcher
        searxng:URL, brave:, file:PATH or warehouse:
    budget
        most requests in all
    per_site
        most documents taken from one site
    strategy
        adaptive, liu-agah, best-first, breadth-first or random
    home_pages_only
        take only home pages from web search results, as Liu and Agah did
    embeddings
        judge documents with this sentence-transformers model (extra `embeddings`) instead of the built-in one
    contact
        URL or mail address shown to the sites you visit
    delay
        least seconds between two requests to one host
    every
        look for new pages on the topic again so often, such as 7d; `crawl --forever` or `worker --forever` does it
    """
    s = session()
    pause = length_of("--every", every) if every else 0.0
    s.override(
        {
            "topic.budget": budget,
            "topic.per_site": per_site,
            "topic.home_pages_only": home_pages_only,
            "topic.searchers": list(searcher) if searcher else None,
            "crawl.contact": contact,
            "politeness.delay": delay,
        }
    )
    check_contact(s.settings.crawl.contact)
    first, *others = s.settings.topic.words or [""]
    broad, narrow = broad or first, narrow or " ".join(others) or broad or first  # one word alone finds sites and pages
    if not broad:
        raise UsageError("no words given", hint='quadloom topic "Travel" "paris", or words = […] below [topic]')
    if not s.settings.topic.use_site_search and (strategy or s.settings.topic.strategy) in ("adaptive", "liu-agah"):
        strategy = "best-first"  # the best strategy that only follows links
    running = pause and _is_crawled(s)
    with (Warehouse.read if running else Warehouse.open)(s.warehouse, settings=s.settings) as warehouse:
        sites = _sites(s, warehouse, broad, seeds)
        if not running:
            require_contact(s, warehouse, [site.home for site in sites])
        types = tuple(type or s.settings.topic.types)
        wanted = Topic(broad, narrow, _examples(s, example or ()), _examples(s, against or ()), types)
        if running:
            return _hand_over(s, wanted, sites, pause)
        s.say(f"{counted(len(sites), 'site')}, at most {counted(s.settings.topic.budget, 'request')}")
        with _Display(s) as display:
            report = warehouse.topic(
                broad,
                narrow,
                sites,
                examples=wanted.examples,
                against=wanted.counterexamples,
                types=types,
                strategy=strategy,
                judge=EmbeddingJudge(wanted, load_encoder(embeddings)) if embeddings else None,
                site_search=_site_search(s),
                progress=display.show,
                every=every,
            )
    return _print_report(s, report)


def _hand_over(s: Session, wanted: Topic, sites: list[SeedSite], pause: float) -> int:
    """A crawl is running, or workers are: they watch the topic from now on, and begin at once."""
    watched = WatchedTopic(topic=wanted, sites=tuple(sites), every=pause, budget=s.settings.topic.budget)
    name = _ask(s, "watch-topic", msgspec.to_builtins(watched))
    if name is None:
        raise UsageError("the crawl has just ended", hint="run the same command again: it collects the pages itself")
    s.say(f"the running crawl watches the topic {name}; the page /topics shows what it finds")
    return 0


def _is_crawled(s: Session) -> bool:
    """Whether somebody else reads pages for this warehouse, here or as a worker elsewhere."""
    if not s.is_cluster:
        return ask(s.warehouse, "status") is not None
    try:
        with closing(ClusterReader(s.settings)) as reader:
            return any("fetch" in worker.phases for worker in cluster_view(reader.workers()).alive)
    except StoreUnavailable:
        raise
    except StoreError:
        return False  # there is no warehouse yet


def _ask(s: Session, verb: str, arguments: dict[str, Value]) -> Value | None:
    """What the crawl here answers, or one worker for all; None = there is none."""
    if not s.is_cluster:
        return ask(s.warehouse, verb, **arguments)
    with Steering(s.settings) as steering:
        return steering.ask_one(verb, arguments)


@topic.command(name="list")
def list_() -> None:
    """List the topics that a crawl without an end watches (`topic --every`)."""
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        watched = [one for _, one in WATCHED.items(warehouse.stores.catalog)]
    if s.json:
        for one in watched:
            line = {"name": one.name, "broad": one.topic.broad, "narrow": one.topic.narrow, "sites": len(one.sites)}
            s.emit({**line, "every": one.every, "rounds": one.rounds, "next_at": one.next_at})
        return
    s.table(
        ("topic", "sites", "every", "rounds", "next round"),
        [(one.name, len(one.sites), _length(one.every), one.rounds, _moment(one.next_at)) for one in watched],
    )


@topic.command
def remove(name: str) -> None:
    """Watch a topic no longer; its pages stay.

    Parameters
    ----------
    name
        as `topic list` prints it
    """
    s = session()
    done = _ask(s, "forget-topic", {"name": name})
    if done is None:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            done = forget(warehouse.stores.catalog, name)
    if not done:
        raise NothingFound(f"no topic {name!r} is watched", hint="to list all: `quadloom topic list`")


def _length(seconds: float) -> str:
    return (
        f"{seconds / 86400:g} d"
        if seconds >= 86400
        else f"{seconds / 3600:g} h"
        if seconds >= 3600
        else f"{seconds:g} s"
    )


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else "at once"


@topic.command
def survey(*files: Path, contact: str | None = None, delay: float | None = None) -> None:
    """Print what share of sites has a search of its own, and of what kind.

    Parameters
    ----------
    files
        files with one site per line, `-` for standard input; each file is a category, named after it
    contact
        URL or mail address shown to the sites you visit
    delay
        least seconds between two requests to one host
    """
    s = session()
    s.override({"crawl.contact": contact, "politeness.delay": delay})
    check_contact(s.settings.crawl.contact)
    if not files:
        raise UsageError("no file given", hint="quadloom topic survey news.txt shops.txt, with one site per line")
    categories: dict[str, str] = {}
    for file in files:
        for url in urls_from_file(file):
            categories.setdefault(_home(url), file.stem if len(files) > 1 else "")
    sites = [SeedSite(home) for home in categories]
    with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
        require_contact(s, warehouse, [site.home for site in sites])
        lines = warehouse.survey(sites, categories)
    _print_survey(s, lines)


def _print_survey(s: Session, lines: Sequence[SurveyedSite]) -> None:
    if s.json:
        sites = [
            {
                "home": line.home,
                "category": line.category,
                "kind": line.channel.kind,
                "reached": line.reached,
                "tried": list(line.tried),
            }
            for line in lines
        ]
        kinds = [{"kind": k, "sites": n, "share": round(v, 4)} for k, n, v in shares(lines)]
        categories = [
            {"category": c.category, "sites": c.sites, "searchable": c.searchable, "share": round(c.share, 4)}
            for c in by_category(lines)
        ]
        s.emit({"sites": sites, "shares": kinds, "categories": categories})
        return
    s.table(("site", "way in"), [(line.home, line.channel.kind if line.reached else "not reached") for line in lines])
    s.write("")
    s.table(("way in", "sites", "share"), [(kind, count, f"{value:.0%}") for kind, count, value in shares(lines)])
    rows = by_category(lines)
    if len(rows) > 1:
        s.write("")
        s.table(
            ("category", "sites", "with a search", "share"),
            [(row.category, row.sites, row.searchable, f"{row.share:.0%}") for row in rows],
        )


def _sites(s: Session, warehouse: Warehouse, broad: str, seeds: Path | None) -> list[SeedSite]:
    if seeds is not None:
        homes = list(dict.fromkeys(_home(url) for url in urls_from_file(seeds)))
        return [SeedSite(home, 1.0 / (60 + rank)) for rank, home in enumerate(homes, 1)]
    with DocumentFetcher(s.settings) as transport:
        searchers = [_searcher(name, warehouse, transport) for name in s.settings.topic.searchers or ["warehouse:"]]
        rankings = [searcher.search(broad, _HITS) for searcher in searchers]
    sites = sites_of(rankings, home_pages_only=s.settings.topic.home_pages_only)
    if not sites:
        raise NothingFound(
            f"no web searcher found a site for {broad!r}",
            hint="give the sites with --seeds FILE, or name a searcher: --searcher searxng:https://your.instance",
        )
    return sites


def _site_search(s: Session) -> Callable[[str], list[SearchLead]]:
    topic = s.settings.topic
    return site_leads(topic.searchers if topic.site_queries else [], secret("BRAVE_KEY"))


def _searcher(name: str, warehouse: Warehouse, transport: DocumentFetcher) -> WebSearcher:
    def fetch(url: str, headers: tuple[tuple[str, str], ...]) -> SiteResponse | None:
        try:
            page = transport.fetch_one(url, accept="application/json", headers=headers)
        except FetchError as error:
            session().say(f"{name}: {error.message}")  # otherwise a wrong address would look like a rare word
            return SiteResponse(url, error.status, "", b"") if error.status else None
        return SiteResponse(page.final_url, page.status, page.content_type, page.body)

    kind, _, rest = name.partition(":")
    if kind == "searxng" and rest:
        return SearxngSearcher(rest, fetch)
    if kind == "brave":
        return BraveSearcher(secret("BRAVE_KEY"), fetch)
    if kind == "file" and rest:
        return FileSearcher(Path(rest))
    if kind == "warehouse":
        return WarehouseSearcher(warehouse.stores.text)
    raise UsageError(f"unknown web searcher {name!r}", hint="use searxng:URL, brave:, file:PATH or warehouse:")


def _examples(s: Session, places: Sequence[str]) -> tuple[Example, ...]:
    found = []
    with DocumentFetcher(s.settings) as transport:
        for place in places:
            if resolve(place) is not None:
                page = transport.fetch_one(place, accept="text/html, */*;q=0.1")
                found.append(_read_example(page.body, page.final_url))
            elif Path(place).is_file():
                found.append(_read_example(Path(place).read_bytes(), ""))
            else:
                raise UsageError(f"there is no example at {place}", hint="give a URL or a file of text or HTML")
    return tuple(found)


def _read_example(body: bytes, url: str) -> Example:
    if b"<html" in body[:2000].lower() or b"<!doctype html" in body[:200].lower():
        outline = read_outline(body, url or "http://example.invalid/")
        return Example(outline.title, " ".join(outline.texts), url)
    title, _, text = body.decode("utf-8", "replace").partition("\n")
    return Example(title.strip(), text, url)


def _home(text: str) -> str:
    url = Url.parse(text if "://" in text else f"https://{text}")
    return f"{url.href.partition('://')[0]}://{url.host}/"


def _print_report(s: Session, report: TopicReport) -> int:
    relevant = sorted((f for f in report.found if f.verdict >= RELEVANT and not f.copy), key=lambda f: -f.verdict)
    if s.json:
        s.emit(msgspec.structs.replace(report, found=tuple(relevant)))
    else:
        s.table(
            ("score", "page", "title", "found by"),
            [
                (f"{f.verdict:.2f}", f.url, f.title, f"{f.query or f.source}{', no in-link' if f.isolated else ''}")
                for f in relevant
            ],
        )
        s.say(
            f"{report.relevant} relevant of {report.documents} documents (harvest {report.harvest:.0%}) in "
            f"{report.requests} requests ({report.per_request:.2f} each)"
        )
        if report.waiting.pages:
            s.say(
                f"{report.waiting.pages} more pages are known and not fetched; by their titles and snippets, about "
                f"{report.waiting.relevant:.0f} of them are relevant"
            )
        if report.refused:
            s.say(
                "not requested: "
                + ", ".join(f"{count} for {reason}" for reason, count in sorted(report.refused.items()))
            )
    return 0 if relevant else NothingFound.exit_code


class _Display:
    """Sites, queries and harvest of the running crawl: a live table on a terminal, elsewhere a line every ten
    seconds."""

    def __init__(self, s: Session) -> None:
        self._session = s
        self._shown = self._began = time.monotonic()
        self._live = Live(console=s.err, refresh_per_second=4, transient=True)
        self._is_live = sys.stderr.isatty() and not s.quiet and not s.json

    def __enter__(self) -> _Display:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._live.stop()

    def show(self, run: TopicalRun, strategy: TopicalStrategy) -> None:
        now = time.monotonic()
        if self._session.quiet or now - self._shown < (0.3 if self._is_live else 10.0):
            return
        self._shown = now
        line = (
            f"{run.spent} of {run.budget} requests · {len(run.found)} documents · {run.relevant} relevant · "
            f"harvest {run.relevant / max(1, len(run.found)):.0%} · {strategy.waiting().pages} known"
        )
        if not self._is_live:
            self._session.say(line)
            return
        spent = run.spent / max(now - self._began, 1e-3)
        head = Text("topic  ", style="bold").append_text(bar(run.spent, run.budget))
        head.append(f"  {rate(spent)}", style="default not bold")
        if spent > 0:
            head.append(f" · at most {duration((run.budget - run.spent) / spent)} left", style="default not bold")
        table = Table(title=head.append(f"\n{line}", style="default not bold"), title_justify="left", box=None)
        table.pad_edge = False
        for column in ("site", "way in", "queries", "requests", "relevant", "last query"):
            table.add_column(column)
        if isinstance(strategy, Adaptive):
            opened = sorted((x for x in strategy.sites.values() if x.channel), key=lambda x: -x.relevant)
            for site in opened[:_ROWS]:
                kind = site.channel.kind if site.channel else ""
                last = next(reversed(site.arms), "")
                table.add_row(site.host, kind, str(len(site.arms)), str(site.requests), str(site.relevant), last)
        self._live.update(table)
