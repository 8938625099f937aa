"""The tables of an extraction: those of a lake, with what a link says; texts, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from quadloom.documents.extract import targets
from quadloom.maintenance.lake.tables import Row, signed_hash
from quadloom.model.document import Transformed
from quadloom.model.page import Page
from quadloom.model.url import canonical, fingerprint, host_of, site_of
from quadloom.stores.shards import shard_of

GROUPS = {"quads": 200_000, "pages": 50_000, "links": 200_000, "findings": 200_000, "texts": 4_000, "failures": 50_000}
"""Rows of a row group, and about as many are in memory."""


def page_of(page: Page, transformed: Transformed, quads: int, source: str, offset: int) -> Row:
    facts = transformed.facts
    host = host_of(page.final_url)
    content = signed_hash(page.body)
    at = int(page.fetched_at * 1e6) or None
    return (
        fingerprint(canonical(page.url)),
        page.url,
        page.final_url,
        host,
        site_of(host),
        shard_of(host),
        page.status,
        "new",
        facts.kind,
        facts.media_type,
        facts.language,
        facts.title,
        at,
        at,
        None,
        1,
        0,
        0,
        0,
        0,
        len(page.body),
        quads,
        len(transformed.links),
        "",
        source,
        offset,
        None,
        content,
        content,
        [name for name, _ in facts.syntaxes],
    )


def links_of(number: int, transformed: Transformed) -> Iterator[Row]:
    for link, target in zip(transformed.links, targets(transformed.links), strict=True):
        yield number, target.fingerprint, link.target, link.kind, link.rel, link.anchor
