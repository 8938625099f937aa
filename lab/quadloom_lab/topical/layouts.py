"""Sites without a search, in five layouts, whose links say little: a crawl can only follow them.

chain      relevant and other pages take turns on a chain; each page has four other links that lead nowhere
archive    a list of years, each of months, each of pages; one year in four has the relevant pages
tree       sections of sections; relevant pages are leaves of one branch
wiki       every page links to eight; a relevant page has two in five of its links to relevant ones
series     pages turned by an `older` link, each with teasers; relevant pages come in runs
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal, get_args

from quadloom_lab.topical.corpus import Corpus, CorpusText
from quadloom_lab.topical.web import HTML, Response

Layout = Literal["chain", "archive", "tree", "wiki", "series"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
_LINK = "<li class={kind}><a href='{path}'>{text}</a></li>"


class LayoutWeb:
    """Some sites of one layout, behind `respond`. `truth`: URL → number, of every relevant page."""

    def __init__(self, layout: Layout, corpus: Corpus, topic: int, seed: int, sites: int = 4) -> None:
        self._pages: dict[str, bytes] = {}
        self.truth: dict[str, int] = {}
        self.homes: list[str] = []
        for number in range(sites):
            site = _LayoutSite(f"http://s{number}.{layout}.test", corpus, topic, Random(f"{layout} {seed} {number}"))
            _BUILDERS[layout](site)
            self._pages |= site.pages
            self.truth |= {url: len(self.truth) + place for place, url in enumerate(site.relevant)}
            self.homes.append(f"{site.base}/")

    def respond(self, url: str, method: str = "get", fields: object = ()) -> Response:
        body = self._pages.get(url)
        return Response(404, HTML, b"<title>Not found</title>") if body is None else Response(200, HTML, body)


class _LayoutSite:
    def __init__(self, base: str, corpus: Corpus, topic: int, random: Random) -> None:
        self.base, self.random = base, random
        self._corpus, self._topic = corpus, topic
        self._others = [other for other in range(len(corpus.topics)) if other != topic]
        self.pages: dict[str, bytes] = {}
        self.relevant: list[str] = []

    def path(self, folder: str) -> str:
        return f"/{folder}/{self.random.getrandbits(32):08x}"

    def add(self, path: str, relevant: bool, links: list[tuple[str, str, str]]) -> None:
        """A page with an article; `links`: (path, text, class)."""
        text = self._corpus.text(self._topic if relevant else self.random.choice(self._others), self.random)
        self.pages[self.base + path] = _html(text, links)
        if relevant:
            self.relevant.append(self.base + path)

    def shuffled(self, links: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        return self.random.sample(links, len(links))


def _html(text: CorpusText, links: list[tuple[str, str, str]]) -> bytes:
    items = "".join(_LINK.format(kind=kind, path=path, text=words) for path, words, kind in links)
    return (
        f"<!doctype html><title>{text.title}</title><nav><a href=/>Home</a></nav><main><h1>{text.title}</h1>"
        f"<p>{text.body}</main><ul>{items}</ul>"
    ).encode()


def _chain(site: _LayoutSite) -> None:
    paths = ["/", *(site.path("p") for _ in range(32))]
    for number, path in enumerate(paths):
        dead = [site.path(folder) for folder in ("p", "q", "q", "q")]
        for other in dead:
            site.add(other, relevant=False, links=[])
        onward = paths[number + 1 : number + 2]
        site.add(path, number % 2 == 1, site.shuffled([(to, "more", "more") for to in (*onward, *dead)]))


def _archive(site: _LayoutSite) -> None:
    years = [f"/{2000 + number}/" for number in range(8)]
    site.add("/", relevant=False, links=[(year, year.strip("/"), "year") for year in years])
    topical = set(site.random.sample(years, 2))
    for year in years:
        months = [f"{year}{number:02d}/" for number in range(1, 5)]
        site.add(year, relevant=False, links=[(month, month[6:8], "month") for month in months])
        for month in months:
            pages = [f"{month}{site.random.getrandbits(20):05x}.html" for _ in range(5)]
            site.add(month, relevant=False, links=[(page, "read", "entry") for page in pages])
            for page in pages:
                site.add(page, site.random.random() < (0.6 if year in topical else 0.03), [])


def _tree(site: _LayoutSite) -> None:
    def grow(path: str, depth: int, rich: bool) -> None:
        children = [f"{path}{site.random.getrandbits(16):04x}/" for _ in range(4)]
        site.add(
            path,
            relevant=depth > 1 and rich and site.random.random() < 0.5,
            links=[(child, "open", f"level{'abc'[min(depth, 2)]}") for child in children],
        )
        chosen = site.random.randrange(4)
        for number, child in enumerate(children):
            if depth < 2:
                grow(child, depth + 1, rich=(depth == 0 and number == chosen) or (depth > 0 and rich))
            else:
                site.add(child, site.random.random() < (0.6 if rich else 0.02), [])

    grow("/", 0, rich=False)


def _wiki(site: _LayoutSite) -> None:
    paths = ["/", *(site.path("wiki") for _ in range(119))]
    topical = [path for path in paths[1:] if site.random.random() < 0.2] or paths[1:2]
    for path in paths:
        own = path in topical
        to = [site.random.choice(topical if own and site.random.random() < 0.4 else paths) for _ in range(8)]
        site.add(path, own, [(other, "see", "see") for other in dict.fromkeys(to) if other != path])


def _series(site: _LayoutSite) -> None:
    lists = ["/", *(f"/older/{number}" for number in range(1, 16))]
    rich = False
    for number, path in enumerate(lists):
        rich = site.random.random() < (0.7 if rich else 0.2)
        teasers = [site.path("post") for _ in range(6)]
        for teaser in teasers:
            site.add(teaser, site.random.random() < (0.7 if rich else 0.03), [])
        onward = [(to, "older", "pager") for to in lists[number + 1 : number + 2]]
        site.add(path, relevant=False, links=[*((teaser, "continue", "teaser") for teaser in teasers), *onward])


_BUILDERS: dict[Layout, Callable[[_LayoutSite], None]] = {
    "chain": _chain, "archive": _archive, "tree": _tree, "wiki": _wiki, "series": _series,
}  # fmt: skip
