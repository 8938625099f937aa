"""Queries with a name, kept in the warehouse: they can be run again as a page, CSV or feed."""

from __future__ import annotations

import re

import msgspec

from quadloom.errors import NothingFound, UsageError
from quadloom.settings import LimitSettings
from quadloom.stores.named_values import NamedValues
from quadloom.stores.protocols.catalog import Catalog

MOST = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_LONGEST = 500  # characters of a title or description


class SavedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is part of addresses: small letters, digits, hyphens."""

    name: str
    query: str
    title: str = ""
    description: str = ""
    saved_at: float = 0.0


class QueryRemoval(msgspec.Struct, frozen=True):
    """Control request `forget-query`."""

    name: str = ""


_QUERIES = NamedValues("query:", SavedQuery)


def checked_query(saved: SavedQuery, limits: LimitSettings) -> SavedQuery:
    """The query as it is stored. Raises `UsageError` or `QueryRefused`."""
    if not _NAME.fullmatch(saved.name):
        raise UsageError(
            f"{saved.name[:80]!r} cannot be the name of a query", hint="up to 63 small letters, digits and hyphens"
        )
    from quadloom.asking.sparql.checks import check  # a crawl without queries needs none of it

    check(saved.query, limits)
    return msgspec.structs.replace(
        saved, title=(saved.title or saved.name)[:_LONGEST], description=saved.description[:_LONGEST]
    )


def save_query(catalog: Catalog, saved: SavedQuery) -> None:
    """Store it, in place of one of the same name. Raises `UsageError` if there are too many."""
    names = _QUERIES.keys(catalog)
    if len(names) >= MOST and saved.name not in names:
        raise UsageError(f"there are {MOST} saved queries already", hint="remove one first")
    _QUERIES.put(catalog, saved.name, saved)


def forget_query(catalog: Catalog, name: str) -> None:
    """Raises `NothingFound` if there is none of this name."""
    saved_query(catalog, name)
    _QUERIES.put(catalog, name, None)


def saved_query(catalog: Catalog, name: str) -> SavedQuery:
    """Raises `NothingFound` if there is none of this name."""
    found = _QUERIES.get(catalog, name)
    if found is None:
        raise NothingFound(f"there is no saved query {name[:80]}", hint="`quadloom queries` lists them")
    return found


def saved_queries(catalog: Catalog) -> list[SavedQuery]:
    """By name."""
    return [saved for _, saved in _QUERIES.items(catalog)]
