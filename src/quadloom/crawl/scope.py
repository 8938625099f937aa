"""Rules that a person added to the scope while a warehouse lives; they rest in the catalog beside the seeds.

`[crawl]` in the configuration says how a crawl begins; these say what was learned since. Both hold together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.errors import NothingFound
from quadloom.scheduling.scope import Scope
from quadloom.settings import CrawlSettings
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier

_NAME = "scope"
_JUDGED_BY = "scope-judged-by"  # catalog value: the scope that was last applied to all that is queued


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


class ScopeChange(msgspec.Struct, frozen=True):
    """Control request `scope`."""

    rules: ScopeEdits
    remove: bool = False


def read_edits(catalog: Catalog) -> ScopeEdits:
    stored = catalog.get(_NAME)
    return msgspec.json.decode(stored, type=ScopeEdits) if stored else ScopeEdits()


def write_edits(catalog: Catalog, edits: ScopeEdits) -> None:
    catalog.put(_NAME, msgspec.json.encode(edits))


def scope_of(crawl: CrawlSettings, seeds: Sequence[str], edits: ScopeEdits) -> Scope:
    """Configuration, seeds and edits as one. Raises `SettingsError` for a pattern that cannot be read."""
    both = msgspec.structs.replace(
        crawl, include=[*crawl.include, *edits.include], exclude=[*crawl.exclude, *edits.exclude]
    )
    return Scope.from_settings(both, seeds, edits.host)


def judge(scope: Scope, frontier: Frontier, catalog: Catalog) -> int:
    """Apply it to all that is queued, and remember that. Returns how many URLs moved."""
    with catalog.transaction():
        moved = frontier.set_scope(scope)
        catalog.put(_JUDGED_BY, scope.encode())
    return moved


def is_judged_by(scope: Scope, catalog: Catalog) -> bool:
    """Whether all that is queued was judged by this scope last, also by an earlier process."""
    return catalog.get(_JUDGED_BY) == scope.encode()
