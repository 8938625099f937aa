"""All pages cut into ranges of fingerprints. These are hashes, so ranges of equal width have about as many pages.

The order of ranges is the order of pages in the catalog: results put together in this order are those of one pass.
"""

from __future__ import annotations

from typing import NamedTuple

from quadloom.stores.protocols.catalog import Catalog

_PAGES = 2000  # of a range: some seconds of work, and some megabytes of statements
_LOWEST, _ALL = -(1 << 63), 1 << 64


class PageRange(NamedTuple):
    """Pages from fingerprint `first` up to, but not including, `end`."""

    first: int
    end: int


def range_tasks(catalog: Catalog) -> list[str]:
    """Names of tasks that cover all pages, in the order of the catalog."""
    pages = sum(number for name, number in catalog.counts().items() if name.startswith("outcome:"))
    count = max(1, -(-pages // _PAGES))
    return [f"pages-{number:07d}-of-{count}" for number in range(count)]


def range_of(task: str) -> PageRange:
    _, number, _, count = task.split("-")
    first, end = (_LOWEST + place * _ALL // int(count) for place in (int(number), int(number) + 1))
    return PageRange(first, end)
