"""The sites of the simulated web: their content, their look, and how they can be searched.

Three families of templates share no class name, paging style, count text or wording of the boilerplate, so that a
strategy tuned on `known` can be measured on `held_out`. `foreign` differs in more: its texts are in other letters, its
engines are others, totals have markup and units, and pages are turned by forms.
"""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

from quadloom_lab.topical.corpus import Corpus, CorpusText
from quadloom_lab.topical.engines import EngineKind

SearchKind = Literal[
    "form", "post-form", "opensearch", "searchaction", "wordpress", "mediawiki", "discourse", "sphinx", "mkdocs", "none"
]
Family = Literal["known", "held_out", "foreign"]

# Ways into sixty sites; about two in five have a plain form, as surveys of the open web find, one in six none at all.
_WAYS: tuple[tuple[SearchKind, int], ...] = (
    ("form", 22), ("post-form", 6), ("opensearch", 5), ("searchaction", 5), ("wordpress", 4), ("mediawiki", 4),
    ("discourse", 2), ("sphinx", 2), ("mkdocs", 2), ("none", 8),
)  # fmt: skip
_ENGINES: dict[Family, tuple[EngineKind, ...]] = {
    "known": ("all", "any", "tantivy", "newest"),
    "held_out": ("all", "any", "tantivy", "newest"),
    "foreign": ("prefix", "oldest", "any", "prefix"),
}


class SiteTemplate(NamedTuple):
    """A template: class names, words of the boilerplate, paging and count style."""

    item: str
    list_tag: str
    item_tag: str
    link_in: str
    snippet_tag: str
    search_word: str
    next_text: str
    total: str  # {a} {b} {n}
    page_parameter: str  # name and kind: page number or start offset
    wrapper: str


_LOOKS: dict[Family, tuple[SiteTemplate, ...]] = {
    "known": (
        SiteTemplate("result", "ol", "li", "h3", "p", "Search", "Next", "Results {a} - {b} of {n}", "page", "main"),
        SiteTemplate("hit", "div", "div", "h2", "div", "Suche", "weiter »", "{n} Treffer", "start", "content"),
        SiteTemplate("entry", "div", "article", "h4", "p", "Rechercher", "Suivant", "{n} résultats", "p", "corps"),
        SiteTemplate("item", "dl", "dd", "b", "span", "Search", "rel", "Showing {a} to {b} of {n}", "offset", "wrap"),
        SiteTemplate("row", "table", "tr", "td", "td", "Go", "numbers", "", "pg", "inner"),
    ),
    "held_out": (
        SiteTemplate("search-hit", "ul", "li", "h5", "p", "Поиск", "»", "Найдено: {n}", "seite", "seite"),
        SiteTemplate("teaser", "section", "article", "h2", "p", "搜索", "下一页", "共 {n} 条", "pn", "box"),
        SiteTemplate(
            "treffer", "div", "div", "strong", "em", "Buscar", "Siguiente", "{a}–{b} / {n}", "desde", "cuerpo"
        ),
        SiteTemplate("gs", "div", "div", "h3", "blockquote", "Zoeken", "numbers", "{n} gevonden", "from", "main2"),
        SiteTemplate("doc", "ol", "li", "h3", "p", "Search", "rel", "", "paged", "hfeed"),
    ),
    "foreign": (
        SiteTemplate(
            "zasah",
            "ul",
            "li",
            "h4",
            "p",
            "Hledat",
            "form:Další",
            "<b>{a}</b> - <b>{b}</b> z asi <b>{n}</b>",
            "strana",
            "obsah",
        ),
        SiteTemplate(
            "najd",
            "div",
            "section",
            "h3",
            "div",
            "Найти",
            "Следующая",
            "<i>{n}</i> результатов (0,31 сек)",
            "nach",
            "tele",
        ),
        SiteTemplate("ken", "ol", "li", "h2", "p", "検索", "次へ", "約 <em>{n}</em> 件", "kara", "honbun"),
        SiteTemplate("tal", "div", "article", "h5", "span", "Keresés", "form:Következő", "", "lap", "tartalom"),
    ),
}


class PlacedDocument(NamedTuple):
    """A document with a URL. `links`: numbers of pages that it links to; `orphan`: nothing links to it."""

    text: CorpusText
    path: str
    links: tuple[int, ...]
    orphan: bool


class SitePlan(NamedTuple):
    host: str
    search: SearchKind
    engine: EngineKind
    look: SiteTemplate
    documents: tuple[PlacedDocument, ...]
    per_page: int
    ads: int  # links on a result page that echo the query and lead nowhere useful
    tracked: bool  # result links go through /out?u=
    sitemap: bool
    soft_404: bool
    teaser: str  # how listings show an article: its title as a link, its title next to a link, or only a date
    extra: str  # another form on the page: login, newsletter or none


def plan_sites(
    corpus: Corpus, topic: int, seed: int, family: Family, sites: int = 60, *, port: int = 0
) -> list[SitePlan]:
    """Sites for one topic: two in five are topical and hold 85 % of it; the others are background.

    `port`: part of every address, for a web that is served on loopback.
    """
    random = Random(f"sites {seed} {topic} {family}")
    ways = [kind for kind, count in _WAYS for _ in range(count)]
    ways = [ways[number * len(ways) // sites] for number in range(sites)]
    random.shuffle(ways)
    topical = round(sites * 0.4)
    plans: list[SitePlan] = []
    for number in range(sites):
        mixture = _mixture(corpus, topic, number < topical, random)
        size = random.randint(50, 110)
        texts = [corpus.text(random.choices(*mixture)[0], random) for _ in range(size)]
        mirrors = _mirrors(plans, size, random)
        host = f"s{number:02d}.{family.replace('_', '-')}.test" + (f":{port}" if port else "")
        plans.append(_site(host, ways[number], texts, mirrors, family, random))
    return plans


def _mixture(corpus: Corpus, topic: int, topical: bool, random: Random) -> tuple[list[int], list[float]]:
    """Topics of a site with their shares."""
    others = random.sample([t for t in range(len(corpus.topics)) if t != topic], 6)
    siblings = corpus.siblings(topic)
    if topical:
        chosen = [topic, *siblings, *others]
        shares = [random.uniform(0.12, 0.36), *[random.uniform(0.04, 0.12) for _ in siblings], *[0.06] * 6]
    else:
        nearby = siblings if random.random() < 0.4 else []
        chosen = [topic, *nearby, *others]
        shares = [0.025, *[0.06 for _ in nearby], *[0.15] * 6]
    return chosen, shares


def _mirrors(plans: list[SitePlan], size: int, random: Random) -> list[CorpusText]:
    """One document in twenty is a copy from another site."""
    if not plans:
        return []
    return [random.choice(random.choice(plans).documents).text for _ in range(size // 20)]


def _site(
    host: str, search: SearchKind, texts: list[CorpusText], mirrors: list[CorpusText], family: Family, random: Random
) -> SitePlan:
    style = random.randrange(4)
    all_texts = [*texts, *mirrors]
    orphans = {place for place in range(len(all_texts)) if random.random() < 0.12}
    placed = [
        PlacedDocument(
            text,
            _path(search, place, text.title, style),
            _links(place, text, all_texts, orphans, random),
            place in orphans,
        )
        for place, text in enumerate(all_texts)
    ]
    engine: EngineKind = "all" if search == "mediawiki" else random.choice(_ENGINES[family])
    return SitePlan(
        host=host,
        search=search,
        engine=engine,
        look=random.choice(_LOOKS[family]),
        documents=tuple(placed),
        per_page=random.choice((5, 10, 10, 20)),
        ads=random.choice((0, 2, 4, 8)),
        tracked=random.random() < 0.15,
        sitemap=random.random() < 0.6,
        soft_404=random.random() < 0.3,
        teaser=random.choice(("title", "title", "beside", "date")),
        extra=random.choice(("", "login", "newsletter")),
    )


def _path(search: SearchKind, place: int, title: str, style: int) -> str:
    """Engines with their own URL scheme keep it; the others use one of four styles."""
    own = {
        "mediawiki": f"/wiki/{title.replace(' ', '_')}",
        "discourse": f"/t/t/{place}",
        "sphinx": f"/doc{place}.html",
        "mkdocs": f"/doc{place}/",
    }
    if search in own:
        return own[search]
    slug = "-".join(title.lower().split())
    return (f"/{2010 + place % 12}/{slug}", f"/?p={1000 + place}", f"/node/{place}", f"/articles/{place}-{slug}.html")[
        style
    ]


def _links(place: int, text: CorpusText, texts: list[CorpusText], orphans: set[int], random: Random) -> tuple[int, ...]:
    """`Related` links of an article: two in five on its own topic if the site has more, the others anywhere."""
    reachable = [other for other in range(len(texts)) if other != place and other not in orphans]
    same = [other for other in reachable if texts[other].topic == text.topic]
    chosen: list[int] = []
    for _ in range(random.randint(3, 8)):
        pool = same if same and random.random() < 0.4 else reachable
        if pool:
            chosen.append(random.choice(pool))
    return tuple(dict.fromkeys(chosen))
