"""Which pages there are, how they link to each other, and what each of them says. A pure function of the seed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from html import escape
from pathlib import Path
from random import Random
from typing import NamedTuple

from quadloom_lab.markup import Described, markup
from quadloom_lab.realweb.markup import Skeletons, blocks, script, words

TYPES = {
    "html": "text/html; charset=utf-8",
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "rdfxml": "application/rdf+xml",
    "turtle": "text/turtle",
    "xml": "application/xml",
    "jsonld": "application/ld+json",
    "image": "image/png",
}
_SHARES = {"html": 82, "rss": 3, "atom": 2, "rdfxml": 3, "turtle": 2, "xml": 4, "jsonld": 1, "image": 3}
_SPREAD = 0.85  # of the size of HTML pages, which is lognormal
_SMALLEST, _LARGEST = 3_000, 2_000_000


class Proportions(NamedTuple):
    """What HTML pages are like. `median`: bytes. `scripted`: the part of them in scripts and styles, in `scripts`
    pieces. `links`: the median number. `is_graph`: JSON-LD is a graph whose nodes name their context again, and Open
    Graph has a dozen properties."""

    median: int
    scripted: float
    scripts: int
    links: int
    is_graph: bool


SMALL = Proportions(27_000, 0.25, 1, 30, is_graph=False)
"""Documents and blogs: 42 KB, 50 links and 27 statements in the mean."""
OPEN_WEB = Proportions(118_000, 0.65, 30, 88, is_graph=True)
"""News and shops, after a thousand public pages: 150 KB, 120 links and 90 statements in the mean."""


class RealPage(NamedTuple):
    """One page. `kind` is a key of `TYPES`."""

    url: str
    kind: str
    body: bytes

    @property
    def content_type(self) -> str:
        return TYPES[self.kind]


class RealWeb:
    """Pages on hosts 127.0.1.1 and following, all reachable by links from the first page of each."""

    def __init__(
        self,
        pages: int,
        hosts: int = 20,
        seed: int = 1,
        port: int = 80,
        skeletons: Path | None = None,
        proportions: Proportions = SMALL,
    ) -> None:
        rng = Random(f"{seed} plan")
        self._seed = seed
        self._like = proportions
        self._blocks = Skeletons(skeletons).blocks if skeletons is not None else blocks
        self.hosts = [f"127.0.1.{number + 1}:{port}" for number in range(hosts)]
        kinds = rng.choices(list(_SHARES), weights=list(_SHARES.values()), k=pages)
        self._kinds = ["html" if number < hosts else kind for number, kind in enumerate(kinds)]
        self._hosts = [number if number < hosts else int(hosts * rng.random() ** 2) for number in range(pages)]
        self._children: dict[int, list[int]] = {}
        readable: dict[int, list[int]] = {}
        for number, host in enumerate(self._hosts):
            if number >= hosts:
                self._children.setdefault(rng.choice(readable[host]), []).append(number)
            if self._kinds[number] == "html":
                readable.setdefault(host, []).append(number)

    def __len__(self) -> int:
        return len(self._kinds)

    @property
    def seeds(self) -> list[str]:
        return [f"http://{host}/" for host in self.hosts]

    def url(self, number: int) -> str:
        kind = self._kinds[number]
        path = "" if number < len(self.hosts) else f"{kind}/{number}" + ("" if kind == "html" else f".{kind}")
        return f"http://{self.hosts[self._hosts[number]]}/{path}"

    def page(self, number: int) -> RealPage:
        rng = Random(f"{self._seed} page {number}")
        url, kind = self.url(number), self._kinds[number]
        if kind == "html":
            text = self._html(rng, number, url)
        elif kind == "image":
            return RealPage(url, kind, b"\x89PNG\r\n\x1a\n" + rng.randbytes(rng.randrange(5_000, 60_000)))
        else:
            text = _DOCUMENTS[kind](rng, url, [self._anywhere(rng) for _ in range(_long_tail(rng, 25, 0.8, 3, 400))])
        return RealPage(url, kind, text.encode())

    def pages(self) -> Iterator[RealPage]:
        return map(self.page, range(len(self)))

    def _anywhere(self, rng: Random) -> str:
        return self.url(int(len(self) * rng.random() ** 1.5))

    def _hrefs(self, rng: Random, number: int) -> list[str]:
        hrefs = ["/" + self.url(child).split("/", 3)[3] for child in self._children.get(number, ())]
        for _ in range(_long_tail(rng, self._like.links, 0.6, 3, 10 * self._like.links)):
            chance = rng.random()
            if chance < 0.9:
                hrefs.append(self._anywhere(rng))
            elif chance < 0.97:
                hrefs.append(f"#part-{rng.randrange(30)}")
            else:
                hrefs.append(rng.choice(("mailto:desk@example.org", "javascript:void(0)", "/missing/page")))
        rng.shuffle(hrefs)
        return hrefs

    def _html(self, rng: Random, number: int, url: str) -> str:
        size = _long_tail(rng, self._like.median, _SPREAD, _SMALLEST, _LARGEST)
        hrefs = self._hrefs(rng, number)
        menu = hrefs[: len(hrefs) // 3]
        title = words(rng, 6)
        head = [f'<meta charset="utf-8"><title>{escape(title)}</title><link rel="canonical" href="{url}">']
        head.append('<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css">')
        if rng.random() < 0.6:
            said = {"title": title, "type": "article", "url": url, "image": f"{url}.png", "description": words(rng, 20)}
            if self._like.is_graph:
                said |= {name: words(rng, 2) for name in _MORE_SAID}
            head += [f'<meta property="og:{name}" content="{escape(text)}">' for name, text in said.items()]
        inside: list[str] = []
        for syntax, share in (("jsonld", 0.8 if self._like.is_graph else 0.45), ("microdata", 0.3), ("rdfa", 0.15)):
            if rng.random() < share:
                described = _described(rng, url, title)
                if self._like.is_graph and syntax == "jsonld":
                    described = _graph(rng, url, title, described)
                (head if syntax == "jsonld" else inside).append(markup(described, syntax))
        scripted = int(size * self._like.scripted)
        head.append(script(rng, scripted // self._like.scripts))
        rest = iter(hrefs[len(menu) :])
        main = self._blocks(rng, (size - scripted) * 8 // 9, rest)
        main.insert(rng.randrange(len(main) + 1), "\n".join(inside))
        for number in range(1, self._like.scripts):
            piece = script(rng, scripted // self._like.scripts)
            if number % 4 == 0:
                piece = _style(rng, scripted // self._like.scripts)
            main.insert(rng.randrange(len(main) + 1), piece)
        tail = "".join(f'<li><a href="{escape(href)}">{words(rng, 2)}</a></li>' for href in rest)
        items = "".join(f'<li class="menu"><a href="{escape(href)}">{words(rng, 2)}</a></li>\n' for href in menu)
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head>{"".join(head)}</head>\n<body class="page"><header><nav><ul>'
            f"{items}</ul></nav></header>\n<main><h1>{title}</h1>{''.join(main)}"
            f"</main>\n<footer><ul>{tail}</ul><p>&copy; {words(rng, 4)}</p></footer></body></html>\n"
        )


_MORE_SAID = ("site_name", "locale", "image:width", "image:height", "image:alt", "updated_time", "see_also")


def _long_tail(rng: Random, median: float, spread: float, least: int, most: int) -> int:
    return min(most, max(least, int(rng.lognormvariate(math.log(median), spread))))


def _described(rng: Random, url: str, title: str) -> Described:
    person: Described = {"@type": "Person", "name": words(rng, 2), "url": f"{url}/people/{rng.randrange(99)}"}
    kind = rng.choice(("Article", "Product", "Event", "Recipe"))
    common: Described = {"@type": kind, "name": title, "description": words(rng, 25), "image": f"{url}/i.jpg"}
    day = f"2026-0{rng.randrange(1, 10)}-1{rng.randrange(10)}"
    if kind == "Article":
        return {**common, "headline": title, "datePublished": day, "author": [person], "articleBody": words(rng, 120)}
    if kind == "Product":
        offers = [
            {
                "@type": "Offer",
                "price": f"{rng.randrange(1, 900)}.50",
                "priceCurrency": "EUR",
                "url": f"{url}?o={number}",
            }
            for number in range(rng.randrange(1, 5))
        ]
        return {
            **common,
            "sku": str(rng.randrange(10**8)),
            "offers": offers,
            "brand": {"@type": "Brand", "name": words(rng, 1)},
        }
    if kind == "Event":
        place = {"@type": "Place", "name": words(rng, 2), "address": words(rng, 4)}
        return {**common, "startDate": day, "location": place, "performer": person}
    return {**common, "recipeIngredient": [words(rng, 2) for _ in range(8)], "author": person, "cookTime": "PT40M"}


def _graph(rng: Random, url: str, title: str, described: Described) -> Described:
    """The description among those of its page, site and publisher, as plug-ins of blogs and shops write them."""
    site = url.split("/", 3)[2]
    picture: Described = {"@type": "ImageObject", "url": f"{url}/logo.png", "width": 600, "height": 60}
    publisher: Described = {"@type": "Organization", "name": words(rng, 2), "logo": picture, "url": f"http://{site}/"}
    trail = [
        {"@type": "ListItem", "position": place + 1, "item": {"@id": f"{url}/up/{place}", "name": words(rng, 2)}}
        for place in range(4)
    ]
    own = {"@context": "https://schema.org"}
    return {
        "@graph": [
            {"@type": "WebSite", "@id": f"http://{site}/#website", "name": words(rng, 3), "url": f"http://{site}/"},
            {"@type": "WebPage", "@id": f"{url}#page", "name": title, "inLanguage": "en", "dateModified": "2026-01-05"},
            {"@type": "BreadcrumbList", "itemListElement": trail},
            {
                **described,
                "publisher": {**own, **publisher},
                "mainEntityOfPage": {**own, "@type": "WebPage", "@id": url},
            },
            *({**own, "@type": "WebPage", "name": words(rng, 4), "image": {**own, **picture}} for _ in range(4)),
        ]
    }


def _style(rng: Random, size: int) -> str:
    rule = ".{}-{} > .{} {{ margin: {}px auto; background: url(data:image/png;base64,{}) }}\n"
    rules: list[str] = []
    while sum(map(len, rules)) < size:
        code = f"{rng.getrandbits(600):x}"
        names = (rng.choice("abcdefgh"), rng.randrange(99), rng.choice("xyz"), rng.randrange(99))
        rules.append(rule.format(*names, code))
    return f"<style>{''.join(rules)}</style>"


def _rss(rng: Random, url: str, links: list[str]) -> str:
    items = "".join(
        f"<item><title>{words(rng, 6)}</title><link>{link}</link><guid>{link}</guid>"
        f"<dc:creator>{words(rng, 2)}</dc:creator><pubDate>Mon, 05 Jan 2026 10:00:00 GMT</pubDate>"
        f"<description><![CDATA[<p>{words(rng, 60)}</p>]]></description></item>"
        for link in links
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
        f"<title>{words(rng, 3)}</title><link>{url}</link>{items}</channel></rss>"
    )


def _atom(rng: Random, url: str, links: list[str]) -> str:
    entries = "".join(
        f'<entry><title>{words(rng, 6)}</title><id>{link}</id><link href="{link}"/>'
        f'<updated>2026-01-05T00:00:00Z</updated><content type="html">&lt;p&gt;{words(rng, 60)}&lt;/p&gt;</content>'
        "</entry>"
        for link in links
    )
    return (
        f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>x</title><id>{url}</id>{entries}</feed>'
    )


def _rdfxml(rng: Random, url: str, links: list[str]) -> str:
    people = "".join(
        f'<foaf:Person rdf:about="{url}#p{number}"><foaf:name xml:lang="en">{words(rng, 2)}</foaf:name>'
        f'<foaf:knows rdf:resource="{link}#me"/><foaf:page rdf:resource="{link}"/>'
        f"<foaf:nick>{words(rng, 1)}</foaf:nick></foaf:Person>"
        for number, link in enumerate(links * 2)
    )
    return (
        '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:foaf="http://xmlns.com/foaf/0.1/">{people}</rdf:RDF>'
    )


def _turtle(rng: Random, url: str, links: list[str]) -> str:
    return "@prefix foaf: <http://xmlns.com/foaf/0.1/> .\n" + "".join(
        f'<{url}#p{number}> a foaf:Person ; foaf:name "{words(rng, 2)}"@en ; foaf:knows <{link}#me>, '
        f'[ a foaf:Agent ; foaf:nick "{words(rng, 1)}" ] .\n'
        for number, link in enumerate(links * 2)
    )


def _xml(rng: Random, url: str, links: list[str]) -> str:
    records = "".join(
        f'<record id="{number}"><title>{words(rng, 5)}</title><creator>{words(rng, 2)}</creator><link>{link}</link>'
        f"<abstract>{words(rng, 40)}</abstract></record>"
        for number, link in enumerate(links * 2)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><records xmlns="urn:example:records">{records}</records>'


def _jsonld(rng: Random, url: str, links: list[str]) -> str:
    context = {"@vocab": "http://schema.org/"}
    return json.dumps(
        [
            {"@context": context, "@id": f"{url}#d{n}", "@type": "Dataset", "name": words(rng, 4), "url": {"@id": link}}
            for n, link in enumerate(links)
        ]
    )


_DOCUMENTS = {"rss": _rss, "atom": _atom, "rdfxml": _rdfxml, "turtle": _turtle, "xml": _xml, "jsonld": _jsonld}
