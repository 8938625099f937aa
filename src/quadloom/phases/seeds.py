"""URLs that nobody linked to: seeds, sitemaps named in robots.txt, requests and publications."""

from __future__ import annotations

from collections.abc import Sequence

from quadloom.model.link import Discovery, LinkKind
from quadloom.model.url import Url, canonical, fingerprint, host_of, resolve


def seed_discoveries(urls: Sequence[str], *, kind: LinkKind = "seed", priority: int = 1) -> list[Discovery]:
    """Seeds as the frontier wants them. Raises `UrlError` for the first that is no web address."""
    return [_discovery(Url.parse(text.strip()).href, kind, priority) for text in urls]


def sitemap_discoveries(urls: Sequence[str]) -> list[Discovery]:
    """Sitemaps from robots.txt; what is no web address is left out, since it is somebody else's mistake."""
    return [_discovery(href, "sitemap", 2) for text in urls if (href := resolve(text)) is not None]


def _discovery(href: str, kind: LinkKind, priority: int) -> Discovery:
    key = canonical(href)
    return Discovery(href, key, host_of(href), fingerprint(key), 0, kind, priority)
