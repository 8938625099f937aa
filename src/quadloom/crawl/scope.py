"""Rules that a person added to the scope while a warehouse lives; they rest in the catalog beside the seeds.

`[crawl]` in the configuration says how a crawl begins; these say what was learned since. Both hold together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.errors import NothingFound
from quadloom.scheduling.scope import Scope
from quadloom.settings import CrawlSettings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier

_JUDGED_BY = NamedValue("scope-judged-by", bytes)  # the scope that was last applied to everything queued


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


def judge(scope: Scope, frontier: Frontier, catalog: Catalog) -> int:
    """Apply it to all that is queued, and remember that. Returns how many URLs moved."""
    with catalog.transaction():
        moved = frontier.set_scope(scope)
        _JUDGED_BY.put(catalog, scope.encode())
    return moved


def is_judged_by(scope: Scope, catalog: Catalog) -> bool:
    """Whether all that is queued was judged by this scope last, also by an earlier process."""
    return _JUDGED_BY.get(catalog) == scope.encode()
