"""The scope of a warehouse: `[crawl]` in the configuration, the seeds, and rules that a person added later.

The configuration says how a crawl begins; seeds and added rules are in the catalog. All of them hold together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.crawling.ingest.sources import JUDGED_SCOPE
from quadloom.documents.extract import seed_discoveries
from quadloom.errors import NothingFound
from quadloom.planning.scope import Scope
from quadloom.settings import CrawlSettings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import AddReport, Frontier

SEEDS = NamedValue("seeds", list[str])


class ScopeEdits(msgspec.Struct, frozen=True):
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    host: tuple[str, ...] = ()

    def with_(self, more: ScopeEdits) -> ScopeEdits:
        return ScopeEdits(
            *(tuple(dict.fromkeys((*own, *new))) for own, new in zip(self.rules, more.rules, strict=True))
        )

    def without(self, less: ScopeEdits) -> ScopeEdits:
        """Raises `NothingFound` for a pattern that was never added."""
        missing = [text for own, gone in zip(self.rules, less.rules, strict=True) for text in gone if text not in own]
        if missing:
            raise NothingFound(
                f"no rule {missing[0]!r} was added to this warehouse",
                hint="`quadloom scope show` lists the rules; those of the configuration are changed there",
            )
        return ScopeEdits(
            *(tuple(t for t in own if t not in gone) for own, gone in zip(self.rules, less.rules, strict=True))
        )

    @property
    def rules(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        return self.include, self.exclude, self.host


_EDITS = NamedValue("scope", ScopeEdits)


class ScopeChange(msgspec.Struct, frozen=True):
    """Control request `scope`."""

    rules: ScopeEdits
    remove: bool = False


def read_seeds(catalog: Catalog) -> list[str]:
    return SEEDS.get(catalog) or []


def read_edits(catalog: Catalog) -> ScopeEdits:
    return _EDITS.get(catalog) or ScopeEdits()


def write_edits(catalog: Catalog, edits: ScopeEdits) -> None:
    _EDITS.put(catalog, edits)


def scope_of(crawl: CrawlSettings, seeds: Sequence[str], edits: ScopeEdits) -> Scope:
    """Configuration, seeds and edits as one. Raises `SettingsError` for a pattern that cannot be read."""
    both = msgspec.structs.replace(
        crawl, include=[*crawl.include, *edits.include], exclude=[*crawl.exclude, *edits.exclude]
    )
    return Scope.from_settings(both, seeds, edits.host)


def stored_scope(crawl: CrawlSettings, catalog: Catalog) -> Scope:
    """The scope as configuration and catalog have it now."""
    return scope_of(crawl, read_seeds(catalog), read_edits(catalog))


class CrawlScope:
    """Which URLs may be visited, of one warehouse: configuration, seeds and edits as one set of rules.

    `current` holds the rules that the frontier applies. Every change is durable and applies to all that is queued.
    """

    def __init__(self, settings: CrawlSettings, catalog: Catalog, frontier: Frontier, current: Scope) -> None:
        self._settings = settings
        self._catalog = catalog
        self._frontier = frontier
        self.current = current

    def configure(self, settings: CrawlSettings) -> None:
        """Other settings of `[crawl]` hold from now on; `reload` applies them."""
        self._settings = settings

    def seeds(self) -> list[str]:
        return read_seeds(self._catalog)

    def edits(self) -> ScopeEdits:
        """Rules that were added to those of the configuration."""
        return read_edits(self._catalog)

    def add_seeds(self, urls: Sequence[str], now: float) -> AddReport:
        """Widen the scope to these URLs and queue them. Raises `UrlError` for the first that is no web address."""
        found = seed_discoveries(urls)
        known = dict.fromkeys(self.seeds())
        seeds = known | dict.fromkeys(item.href for item in found)
        if len(seeds) > len(known):
            with self._catalog.transaction():
                SEEDS.put(self._catalog, list(seeds))
                self._apply(scope_of(self._settings, list(seeds), self.edits()))
        return self._frontier.add(found, now)

    def change(self, rules: ScopeEdits, *, remove: bool = False) -> int:
        """Add rules or remove them. Returns how many queued URLs moved."""
        edits = self.edits().without(rules) if remove else self.edits().with_(rules)
        scope = scope_of(self._settings, self.seeds(), edits)
        with self._catalog.transaction():
            write_edits(self._catalog, edits)
            return self._apply(scope)

    def reload(self) -> bool:
        """Apply what seeds, settings and edits say now, if the queue was last judged by something else: by an earlier
        process, or before a command on another machine changed them. False = nothing has changed."""
        scope = stored_scope(self._settings, self._catalog)
        if self.current.record == scope.record and JUDGED_SCOPE.get(self._catalog) == scope.encode():
            return False
        self._apply(scope)
        return True

    def _apply(self, scope: Scope) -> int:
        """Apply the rules to all that is queued, and remember that. Returns how many URLs moved."""
        with self._catalog.transaction():
            moved = self._frontier.set_scope(scope)
            JUDGED_SCOPE.put(self._catalog, scope.encode())
        self.current = scope
        return moved
