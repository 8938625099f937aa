"""The traits of one page: its syntaxes, its defects, how often it changes. All from the seed."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from quadloom_lab.fakeweb.sites.chance import number, share, stream
from quadloom_lab.fakeweb.sites.layout import Layout, PageRef

LabelWhere = Literal["header", "meta", "bom", "lie"]

_CHARSETS: dict[str, tuple[tuple[str, LabelWhere], ...]] = {
    "ru": (("windows-1251", "header"), ("koi8-r", "meta")),
    "ja": (("shift_jis", "meta"), ("euc-jp", "header")),
}
_WESTERN: tuple[tuple[str, LabelWhere], ...] = (
    ("windows-1252", "header"), ("windows-1252", "meta"), ("utf-16", "bom"), ("utf-8", "lie"),
)  # fmt: skip
# A revision is a day of the fake web. Half of all pages never change, some change every day.
_PERIODS = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 3, 5, 5, 10, 10, 20, 40)


class PageTraits(NamedTuple):
    """Particulars of an item page that is HTML. An empty text or False is the ordinary case."""

    jsonld: bool
    graph: bool  # several JSON-LD things in one @graph
    microdata: bool
    rdfa: bool
    opengraph: bool
    microformats: bool
    banner: bool  # an advertisement that changes with every revision and means nothing
    robots: str  # content of the robots meta element
    robots_header: bool  # … sent as X-Robots-Tag instead
    charset: str
    label: LabelWhere | Literal[""]
    wrong_type: bool
    broken_markup: bool
    broken_jsonld: bool


@lru_cache(maxsize=4096)
def traits_of(layout: Layout, ref: PageRef) -> PageTraits:
    spec = layout.spec
    rng = stream(spec.seed, "traits", ref.host, ref.number)
    jsonld, microdata, rdfa, opengraph, microformats, banner = (
        rng.random() < limit for limit in (0.45, 0.30, 0.15, 0.60, 0.10, 0.20)
    )
    if spec.curated:
        jsonld, microdata, rdfa = _one_syntax_at_least(jsonld, microdata, rdfa, ref)
    graph = rng.random() < 0.4
    odd_meta, odd_charset, odd_type, odd_markup, odd_json = (
        rng.random() < limit and spec.faults for limit in (0.03, 0.04, 0.02, 0.03, 0.04)
    )
    charset, label = rng.choice(_CHARSETS.get(layout.hosts[ref.host].language, _WESTERN))
    return PageTraits(
        jsonld=jsonld,
        graph=graph,
        microdata=microdata,
        rdfa=rdfa,
        opengraph=opengraph,
        microformats=microformats,
        banner=banner and not spec.curated,
        robots=rng.choice(("noindex", "nofollow", "noarchive", "noindex, nofollow")) if odd_meta else "",
        robots_header=rng.random() < 0.3,
        charset=charset if odd_charset else "utf-8",
        label=label if odd_charset else "",
        wrong_type=odd_type,
        broken_markup=odd_markup,
        broken_jsonld=odd_json and jsonld,
    )


def _one_syntax_at_least(jsonld: bool, microdata: bool, rdfa: bool, ref: PageRef) -> tuple[bool, bool, bool]:
    """In the demo every page carries data, and the syntaxes take turns."""
    if jsonld or microdata or rdfa:
        return jsonld, microdata, rdfa
    return ref.number % 3 == 0, ref.number % 3 == 1, ref.number % 3 == 2


def period(layout: Layout, ref: PageRef) -> int:
    """Revisions between two changes of the page; 0 = it never changes."""
    if ref.area != "item" or layout.form(ref.host, ref.number) in ("svg", "xsd", "png", "pdf"):
        return 0
    return _PERIODS[number(layout.spec.seed, "period", ref.host, ref.number) % len(_PERIODS)]


def version(layout: Layout, ref: PageRef, revision: int) -> int:
    """How often the page has changed by this revision."""
    every = period(layout, ref)
    return revision // every if every else 0


def changed_at(layout: Layout, ref: PageRef, revision: int) -> int:
    """The revision of the page's latest change."""
    every = period(layout, ref)
    return revision // every * every if every else 0


def vanished(layout: Layout, ref: PageRef, revision: int) -> bool:
    """One item in fifty is taken off the web, some time within the first forty revisions."""
    if ref.area != "item" or not layout.spec.faults or revision == 0:
        return False
    if share(layout.spec.seed, "vanishes", ref.host, ref.number) >= 0.02:
        return False
    return revision > number(layout.spec.seed, "vanishes at", ref.host, ref.number) % 40
