"""Extract phase: which links of a page are worth a visit.

A strategy is a query over the page's graph. The standard ones also have a native evaluator over `Link` records,
because asking the store costs .25–40 ms a page and reading the list a few microseconds; a test proves that both
give the same answer (tests/unit/phases/test_extract.py). Users add their own `.rq` files.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import msgspec

from quadloom.errors import SettingsError
from quadloom.model.document import Transformed
from quadloom.model.link import Discovery, Link, LinkKind
from quadloom.model.url import canonical, fingerprint, host_of, site_of
from quadloom.model.visit import Visit

# Kinds that a reader could click or a machine could read; images, stylesheets and bare IRIs in data are not pages.
_NAVIGABLE: frozenset[LinkKind] = frozenset((
    "plain", "typed", "next", "alternate", "feed", "canonical", "describedby", "seealso", "sitemap", "item", "embed",
    "redirect",
))  # fmt: skip
_LINKED_DATA: frozenset[LinkKind] = frozenset(("seealso", "describedby", "alternate", "other"))
_FEEDS: frozenset[LinkKind] = frozenset(("feed", "alternate", "item"))
# Suspects of structured data go first: Xyleme's σ_X is for them.
_SUSPECT_KINDS: frozenset[LinkKind] = frozenset(
    ("feed", "alternate", "describedby", "seealso", "sitemap", "stylesheet")
)
_SUSPECT_SUFFIXES = (".rdf", ".ttl", ".nt", ".nq", ".trig", ".jsonld", ".owl", ".xml", ".rss", ".atom", ".n3")

Wanted = Callable[[Link, str], bool]


class Strategy(msgspec.Struct, frozen=True):
    """`name` as in `crawl.strategies`; `wanted(link, page_site)` says whether the link is followed."""

    name: str
    wanted: Wanted


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("all", lambda link, _site: link.kind in _NAVIGABLE),
        Strategy("same-site", lambda link, site: link.kind in _NAVIGABLE and site_of(host_of(link.target)) == site),
        Strategy("external", lambda link, site: link.kind in _NAVIGABLE and site_of(host_of(link.target)) != site),
        Strategy("feeds", lambda link, _site: link.kind in _FEEDS),
        Strategy("seealso", lambda link, _site: link.kind in _LINKED_DATA),
        Strategy("vocabulary", lambda link, _site: link.kind == "vocabulary"),
        Strategy("sitemaps", lambda link, _site: link.kind == "sitemap"),
    )
}


def chosen(names: Sequence[str]) -> tuple[Strategy, ...]:
    """Native strategies by name; paths of `.rq` files are evaluated after indexing and are skipped here."""
    unknown = [name for name in names if name not in STRATEGIES and not name.endswith(".rq")]
    if unknown:
        raise SettingsError(
            f"unknown link strategy {unknown[0]!r}",
            hint=f"known are {', '.join(STRATEGIES)}, or a path to a .rq file",
        )
    return tuple(STRATEGIES[name] for name in names if name in STRATEGIES)


def discoveries(transformed: Transformed, visit: Visit, strategies: tuple[Strategy, ...]) -> tuple[Discovery, ...]:
    """URLs to offer to the frontier, each once, in the order of the page."""
    site = site_of(host_of(transformed.url))
    lastmods = dict(transformed.lastmods)
    found: dict[str, Discovery] = {}
    for link in transformed.links:
        if link.nofollow or not any(strategy.wanted(link, site) for strategy in strategies):
            continue
        key = canonical(link.target)
        if key in found or key == visit.key:
            continue
        found[key] = discovery(link, key, visit, lastmods.get(link.target, 0.0))
    return tuple(found.values())


def discovery(link: Link, key: str, visit: Visit, lastmod: float = 0.0) -> Discovery:
    """A link as the frontier wants it: one step deeper than its page, redirects excepted."""
    return Discovery(
        href=link.target,
        key=key,
        host=host_of(link.target),
        fingerprint=fingerprint(key),
        depth=visit.depth if link.kind == "redirect" else visit.depth + 1,
        kind=link.kind,
        priority=2 if is_suspect(link) else 3,
        via=visit.fingerprint,
        anchor=link.anchor[:200],
        lastmod=lastmod,
    )


def is_suspect(link: Link) -> bool:
    """Likely to carry structured data, by link kind or suffix."""
    if link.kind in _SUSPECT_KINDS:
        return True
    return link.target.partition("?")[0].lower().endswith(_SUSPECT_SUFFIXES)


def edges(links: Sequence[Link]) -> bytes:
    """Fingerprints of all link targets as packed int64: the page's row of the link matrix."""
    return array("q", {fingerprint(canonical(link.target)) for link in links if link.kind != "image"}).tobytes()
