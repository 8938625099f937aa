"""`quadloom topic`: collect pages on a topic with the sites' own search; `topic survey`: which sites have one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from rich.table import Table
from rich.text import Text

from quadloom.cli.crawling.crawl import check_contact, require_contact
from quadloom.cli.files import urls_from_file
from quadloom.cli.options import Contact, Delay
from quadloom.cli.progress import LiveDisplay, bar, duration, rate
from quadloom.cli.session import Session, session
from quadloom.cli.words import counted, length, minute
from quadloom.crawling.cluster.steering import Steering
from quadloom.crawling.cluster.view import cluster_view
from quadloom.crawling.run.control import ask
from quadloom.crawling.topical.access import SiteResponse
from quadloom.crawling.topical.anchors import read_outline
from quadloom.crawling.topical.crawl import StrategyName, TopicalStrategy, TopicReport
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
from quadloom.stores.backends import open_cluster
from quadloom.warehouse import Warehouse

topic = App(name="topic")
_MAX_HITS = 200  # taken from one web searcher
_MAX_ROWS = 12  # rows of the live table


@topic.default
def collect(
    broad: str = "",
    narrow: str = "",
    *,
    example: tuple[str, ...] = (),
    against: tuple[str, ...] = (),
    type: tuple[str, ...] = (),
    seeds: Path | None = None,
    searcher: tuple[str, ...] = (),
    budget: int | None = None,
    per_site: int | None = None,
    strategy: StrategyName | None = None,
    home_pages_only: Annotated[bool | None, Parameter(negative="--no-home-pages-only")] = None,
    contact: Contact = None,
    delay: Delay = None,
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
        send at most this many requests in total
    per_site
        take at most this many documents from a site
    strategy
        adaptive, liu-agah, best-first, breadth-first or random
    home_pages_only
        take only home pages from web search results, as Liu and Agah did
    every
        look for new pages again after this time, such as 7d; `crawl --forever` or `worker --forever` does it
    """
    s = session()
    pause = length_of("--every", every) if every else 0.0
    s.override(
        {
            "topic.budget": budget,
            "topic.per_site": per_site,
            "topic.home_pages_only": home_pages_only,
            "topic.searchers": [*searcher],
            "crawl.contact": contact,
            "politeness.delay": delay,
        }
    )
    check_contact(s.settings.crawl.contact)
    first, *others = s.settings.topic.words or [""]
    broad, narrow = broad or first, narrow or " ".join(others) or broad or first  # one word alone finds sites and pages
    if not broad:
        hint = 'write `quadloom topic "Travel" "paris"`, or words = […] below [topic] in quadloom.toml'
        raise UsageError("no words are given", hint=hint)
    if not s.settings.topic.use_site_search and (strategy or s.settings.topic.strategy) in ("adaptive", "liu-agah"):
        strategy = "best-first"  # the best strategy that only follows links
    running = pause and _is_crawled(s)
    with s.read() if running else s.open() as warehouse:
        sites = _sites(s, warehouse, broad, seeds)
        if not running:
            require_contact(s, warehouse, [site.home for site in sites])
        types = tuple(type or s.settings.topic.types)
        wanted = Topic(broad, narrow, _examples(s, example), _examples(s, against), types)
        if running:
            return _hand_over(s, wanted, sites, pause)
        s.say(f"{counted(len(sites), 'site')}, at most {counted(s.settings.topic.budget, 'request')}")
        with _TopicDisplay(s) as display:
            report = warehouse.topic(
                broad,
                narrow,
                sites,
                examples=wanted.examples,
                against=wanted.counterexamples,
                types=types,
                strategy=strategy,
                site_search=_site_search(s),
                progress=display.show,
                every=every,
            )
    return _print_report(s, report)


def _hand_over(s: Session, wanted: Topic, sites: list[SeedSite], pause: float) -> int:
    """Have the running crawl, or the workers, watch the topic. They begin at once."""
    watched = WatchedTopic(topic=wanted, sites=tuple(sites), every=pause, budget=s.settings.topic.budget)
    name = _ask(s, "watch-topic", msgspec.to_builtins(watched))
    if name is None:
        raise UsageError("the crawl has just ended", hint="run the same command again to collect the pages")
    s.say(f"the running crawl watches the topic {name}; the page /topics shows what it finds")
    return 0


def _is_crawled(s: Session) -> bool:
    """Whether another process fetches pages for this warehouse, here or as a worker elsewhere."""
    if not s.settings.stores.is_shared:
        return ask(s.warehouse, "status") is not None
    try:
        with closing(open_cluster(s.settings)) as reader:
            return any("fetch" in worker.phases for worker in cluster_view(reader.workers()).alive)
    except StoreUnavailable:
        raise
    except StoreError:
        return False  # there is no warehouse yet


def _ask(s: Session, verb: str, arguments: dict[str, Value]) -> Value | None:
    """Ask the crawl of this warehouse, or one worker for all. Returns None if there is none."""
    if not s.settings.stores.is_shared:
        return ask(s.warehouse, verb, **arguments)
    with Steering(s.settings) as steering:
        return steering.ask_one(verb, arguments)


@topic.command(name="list")
def list_() -> None:
    """List the topics that a crawl without an end watches (`topic --every`)."""
    s = session()
    with s.read() as warehouse:
        watched = [one for _, one in WATCHED.items(warehouse.stores.catalog)]

    def record(one: WatchedTopic) -> dict[str, object]:
        line = {"name": one.name, "broad": one.topic.broad, "narrow": one.topic.narrow, "sites": len(one.sites)}
        return {**line, "every": one.every, "rounds": one.rounds, "next_at": one.next_at}

    def cells(one: WatchedTopic) -> list[object]:
        at = minute(one.next_at) if one.next_at else "at once"
        return [one.name, len(one.sites), length(one.every), one.rounds, at]

    s.records(watched, ["topic", "sites", "every", "rounds", "next round"], cells, as_json=record)


@topic.command
def remove(name: str) -> None:
    """Stop watching a topic; its pages stay.

    Parameters
    ----------
    name
        as `topic list` prints it
    """
    s = session()
    done = _ask(s, "forget-topic", {"name": name})
    if done is None:
        with s.open() as warehouse:
            done = forget(warehouse.stores.catalog, name)
    if not done:
        raise NothingFound(f"there is no watched topic {name!r}", hint="to list them: `quadloom topic list`")


@topic.command
def survey(*files: Path, contact: Contact = None, delay: Delay = None) -> None:
    """Print what share of sites has a search of its own, and of what kind.

    Parameters
    ----------
    files
        files with one site per line, `-` for standard input; each file is a category, named after it
    """
    s = session()
    s.override({"crawl.contact": contact, "politeness.delay": delay})
    check_contact(s.settings.crawl.contact)
    if not files:
        hint = "write `quadloom topic survey news.txt shops.txt`; each file has one site per line"
        raise UsageError("no file is given", hint=hint)
    categories: dict[str, str] = {}
    for file in files:
        for url in urls_from_file(file):
            categories.setdefault(_home(url), file.stem if len(files) > 1 else "")
    sites = [SeedSite(home) for home in categories]
    with s.open() as warehouse:
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
        rankings = [searcher.search(broad, _MAX_HITS) for searcher in searchers]
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
                f"{report.waiting.pages} more pages are known but not fetched; about {report.waiting.relevant:.0f} of "
                "them are relevant, by their titles and snippets"
            )
        if report.refused:
            reasons = ", ".join(f"{count} for {reason}" for reason, count in sorted(report.refused.items()))
            s.say(f"not requested: {reasons}")
    return 0 if relevant else NothingFound.exit_code


class _TopicDisplay(LiveDisplay):
    """Sites, queries and harvest of the running topical crawl."""

    def show(self, run: TopicalRun, strategy: TopicalStrategy) -> None:
        if not self.due():
            return
        line = (
            f"{run.spent} of {run.budget} requests · {len(run.found)} documents · {run.relevant} relevant · "
            f"harvest {run.relevant / max(1, len(run.found)):.0%} · {strategy.waiting().pages} known"
        )
        pace = run.spent / max(self.seconds, 1e-3)
        head = Text("topic  ", style="bold").append_text(bar(run.spent, run.budget))
        head.append(f"  {rate(pace)}", style="default not bold")
        if pace > 0:
            head.append(f" · at most {duration((run.budget - run.spent) / pace)} left", style="default not bold")
        table = Table(title=head.append(f"\n{line}", style="default not bold"), title_justify="left", box=None)
        table.pad_edge = False
        for column in ("site", "way in", "queries", "requests", "relevant", "last query"):
            table.add_column(column)
        if isinstance(strategy, Adaptive):
            opened = sorted((x for x in strategy.sites.values() if x.channel), key=lambda x: -x.relevant)
            for site in opened[:_MAX_ROWS]:
                kind = site.channel.kind if site.channel else ""
                last = next(reversed(site.arms), "")
                table.add_row(site.host, kind, str(len(site.arms)), str(site.requests), str(site.relevant), last)
        self.draw(table, line)
