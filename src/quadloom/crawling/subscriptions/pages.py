"""Which pages a subscription covers: the links of its virtual page, whose rank promotion raises.

The pages that it names; of a site, all pages that were read; of a type, the pages that describe things of that type; of
a standing query, the pages that its last answer names, as `SELECT ?page { GRAPH ?page { … } }` does. They only affect
the schedule, so each subscription is cut at `MOST` pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from msgspec.structs import replace

from quadloom.crawling.subscriptions.registry import read_subscriptions
from quadloom.crawling.subscriptions.standing_queries import last_answer
from quadloom.documents.syntaxes.terms import TYPE
from quadloom.model.outcome import PageRow
from quadloom.model.subscription import Subscription
from quadloom.model.url import canonical, resolve, site_of
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import QuadStore

MOST = 10_000
_STATEMENTS = 100_000  # read per type: many things of one type may be on the same page
_BATCH = 1000
_PAGE = re.compile(r"<(https?://[^<>\"{}|^`\\\s]+)>")


def subscribed_pages(catalog: Catalog, quads: QuadStore) -> list[Subscription]:
    """All subscriptions, with the keys of their pages as `urls`."""
    found = read_subscriptions(catalog)
    hosts = catalog.hosts() if any(item.sites for item in found) else []
    return [replace(item, urls=_pages(item, catalog, hosts, quads)) for item in found]


def _pages(item: Subscription, catalog: Catalog, hosts: list[str], quads: QuadStore) -> tuple[str, ...]:
    names = chain(
        item.urls, _of_sites(item.sites, catalog, hosts), _of_types(item.types, quads), _of_answer(item, catalog)
    )
    return tuple(islice(_distinct(names), MOST))


def _of_sites(sites: tuple[str, ...], catalog: Catalog, hosts: list[str]) -> Iterator[str]:
    wanted = frozenset(sites)
    for host in (host for host in hosts if host in wanted or site_of(host) in wanted):
        after = -(1 << 63)
        while rows := catalog.scan(after=after, limit=_BATCH, host=host):
            after = rows[-1].fingerprint
            yield from (row.key for row in rows if _has_content(row))


def _has_content(row: PageRow) -> bool:
    return bool(row.quads_digest or row.text_digest)


def _of_types(types: tuple[str, ...], quads: QuadStore) -> Iterator[str]:
    for type in types:
        for line in quads.match(None, TYPE, f"<{type}>", None, limit=_STATEMENTS):
            yield from _keys(line.rpartition(" <")[2])


def _of_answer(item: Subscription, catalog: Catalog) -> Iterator[str]:
    for row in last_answer(catalog, item.id) if item.query else ():
        yield from _keys(*_PAGE.findall(row))


def _keys(*urls: str) -> Iterator[str]:
    """Canonical keys of the URLs that can be visited."""
    for url in urls:
        href = resolve(url.partition(">")[0])
        if href is not None:
            yield canonical(href)


def _distinct(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name not in seen:
            seen.add(name)
            yield name
