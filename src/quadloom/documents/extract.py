"""EXTRACT: which links of a page are worth a visit.

A strategy is a query over the page's graph. The standard ones also have a native evaluator over `Link` records,
because asking the store costs 0.25–40 ms a page and reading the list a few microseconds; a test proves that both
give the same answer (tests/property/test_extract_queries.py). Users add their own `.rq` files.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from quadloom.documents.memo import Memo
from quadloom.model.document import Transformed
from quadloom.model.link import Discovery, Link, LinkKind
from quadloom.model.url import Url, canonical, fingerprint, host_of, resolve, site_of
from quadloom.model.visit import Visit
from quadloom.settings.loading import check_strategy_names

try:
    from quadloom.documents.native import records as _native
except ImportError:  # it was not built: there is no compiler
    _native = None  # type: ignore[assignment]

# Kinds that a reader could click or a machine could read; images, stylesheets and bare IRIs in data are not pages.
_NAVIGABLE: frozenset[LinkKind] = frozenset((
    "plain", "typed", "next", "alternate", "feed", "canonical", "describedby", "seealso", "sitemap", "item", "embed",
    "redirect",
))  # fmt: skip
_LINKED_DATA: frozenset[LinkKind] = frozenset(("seealso", "describedby", "alternate", "other"))
_FEEDS: frozenset[LinkKind] = frozenset(("feed", "alternate", "item"))

IsNews = Callable[[int, int], bool]
"""Called with fingerprint and depth of a link; False if it was offered before at this depth or a smaller one."""


class Strategy(msgspec.Struct, frozen=True):
    """`name` as in `crawl.strategies`; links of these `kinds` are followed, to all sites or only to some."""

    name: str
    kinds: frozenset[LinkKind]
    sites: Literal["any", "same", "other"] = "any"

    def wanted(self, link: Link, page_site: str) -> bool:
        """Whether the link is followed from a page of that site."""
        if link.kind not in self.kinds:
            return False
        return self.sites == "any" or (site_of(host_of(link.target)) == page_site) is (self.sites == "same")


STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("all", _NAVIGABLE),
        Strategy("same-site", _NAVIGABLE, "same"),
        Strategy("external", _NAVIGABLE, "other"),
        Strategy("feeds", _FEEDS),
        Strategy("seealso", _LINKED_DATA),
        Strategy("vocabulary", frozenset(("vocabulary",))),
        Strategy("sitemaps", frozenset(("sitemap",))),
    )
}


class LinkTarget(NamedTuple):
    """What a link leads to, in the terms of the frontier."""

    key: str
    host: str
    fingerprint: int


def targets(links: Sequence[Link]) -> list[LinkTarget]:
    """The target of each link, in order."""
    if _native is not None:
        return _native.targets_of(tuple(links), _targets, _targets.__getitem__)
    return [_targets[link.target] for link in links]


def _target(href: str) -> LinkTarget:
    key = canonical(href)
    return LinkTarget(key, host_of(href), fingerprint(key))


# A site's navigation repeats on every page: a known target costs 0.1 µs, a new one 2.3. About 16 MB.
_targets = Memo(_target, 1 << 16)


def chosen(names: Sequence[str]) -> tuple[Strategy, ...]:
    """Native strategies by name; paths of `.rq` files are evaluated after indexing and are skipped here."""
    check_strategy_names(names)
    return tuple(STRATEGIES[name] for name in names if name in STRATEGIES)


def discoveries(
    transformed: Transformed,
    leading_to: Sequence[LinkTarget],
    visit: Visit,
    strategies: tuple[Strategy, ...],
    is_news: IsNews = lambda _fingerprint, _depth: True,
) -> tuple[Discovery, ...]:
    """URLs to offer to the frontier, each once, in the order of the page; only those that `is_news` does not know.

    `leading_to` are the `targets` of the page's links.
    """
    site = site_of(host_of(transformed.url))
    lastmods, rhythms = dict(transformed.lastmods), dict(transformed.rhythms)
    everywhere = frozenset[LinkKind]().union(*(strategy.kinds for strategy in strategies if strategy.sites == "any"))
    somewhere = [strategy for strategy in strategies if strategy.sites != "any"]
    found: list[Discovery] = []
    seen = {visit.key}
    deeper = visit.depth + 1
    for link, target in zip(transformed.links, leading_to, strict=True):
        key = target.key
        if link.nofollow or key in seen:
            continue
        kind = link.kind
        if kind not in everywhere and not (somewhere and any(one.wanted(link, site) for one in somewhere)):
            continue
        seen.add(key)
        depth = visit.depth if kind == "redirect" else deeper
        lastmod = lastmods.get(link.target, 0.0) if lastmods else 0.0
        rhythm = rhythms.get(link.target, 0.0) if rhythms else 0.0
        # What a sitemap says of a page is worth reporting even for a known URL.
        if is_news(target.fingerprint, depth) or lastmod or rhythm:
            found.append(_discovery(link, target, visit, depth, lastmod, rhythm))
    if own := rhythms.get(transformed.url, 0.0):
        target = LinkTarget(visit.key, visit.host, visit.fingerprint)
        itself = Link(transformed.url, transformed.url, visit.kind)
        found.append(_discovery(itself, target, visit, visit.depth, rhythm=own))
    return tuple(found)


def discovery(link: Link, visit: Visit) -> Discovery:
    """One link as a discovery for the frontier."""
    (target,) = targets((link,))
    return _discovery(link, target, visit, visit.depth if link.kind == "redirect" else visit.depth + 1)


def _discovery(
    link: Link, target: LinkTarget, visit: Visit, depth: int, lastmod: float = 0.0, rhythm: float = 0.0
) -> Discovery:
    """Of ordinary priority: the owner of the frontier decides whether it is likely to hold structured data, because
    only the owner has the model (`quadloom.planning.refresh.predictor`)."""
    return Discovery(
        href=link.target,
        key=target.key,
        host=target.host,
        fingerprint=target.fingerprint,
        depth=depth,
        kind=link.kind,
        via=visit.fingerprint,
        anchor=link.anchor[:200],
        lastmod=lastmod,
        rhythm=rhythm,
    )


_NOT_COUNTED: frozenset[LinkKind] = frozenset(("image", "vocabulary"))


def edges(links: Sequence[Link], leading_to: Sequence[LinkTarget], *, vocabulary: bool = False) -> bytes:
    """Fingerprints of all link targets as packed int64: the page's row of the link matrix.

    Links to classes and properties count only by choice: nobody who wrote the page recommends them, and for XML it is
    our own mapping that names `rdf:type`.
    """
    left_out = frozenset[LinkKind](("image",)) if vocabulary else _NOT_COUNTED
    if _native is not None:
        numbers = _native.fingerprints(tuple(links), [*leading_to], left_out)
    else:
        pairs = zip(links, leading_to, strict=True)
        numbers = {target.fingerprint for link, target in pairs if link.kind not in left_out}
    return array("q", numbers).tobytes()


def seed_discoveries(urls: Sequence[str], *, kind: LinkKind = "seed", priority: int = 1) -> list[Discovery]:
    """Seeds, requests and publications as discoveries: URLs that no page linked to. Raises `UrlError` for the first
    that is no web address."""
    return [_unlinked(Url.parse(text.strip()).href, kind, priority) for text in urls]


def sitemap_discoveries(urls: Sequence[str]) -> list[Discovery]:
    """Sitemaps from robots.txt; what is no web address is left out, since the mistake is the site's."""
    return [_unlinked(href, "sitemap", 2) for text in urls if (href := resolve(text)) is not None]


def _unlinked(href: str, kind: LinkKind, priority: int) -> Discovery:
    key = canonical(href)
    return Discovery(href, key, host_of(href), fingerprint(key), 0, kind, priority)
