"""Versions of a page and how they differ.

Only the present graph is in the quad store. Earlier versions are in the archive; a `VersionReader` transforms them
again. An archived page is as hostile as a new one, so a reader does not parse it in its own process
(`quadloom.crawling.workers.version_reader`).
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from quadloom.asking.changes.readable_changes import text_changes
from quadloom.model.outcome import ArchiveRef
from quadloom.model.quads import Quads
from quadloom.stores.protocols.quads import Difference
from quadloom.stores.quads.nquads import lines_of

MOST_SENTENCES = 200  # of a difference


class VersionGraph(msgspec.Struct, frozen=True):
    """The graph and the words of a version. If `failure` is not empty, they could not be found out and are empty."""

    quads: Quads
    failure: str = ""
    text: str = ""


class VersionDifference(Difference, frozen=True):
    """`reason`: why the difference is not known, if a version could not be transformed. Then it is empty."""

    reason: str = ""
    text_added: tuple[str, ...] = ()
    text_removed: tuple[str, ...] = ()


class VersionReader(Protocol):
    """Reads what archived versions of pages state."""

    def graph(self, ref: ArchiveRef) -> VersionGraph:
        """What a version states; its `failure` says why that is unknown. Raises `ArchiveDamaged`, and nothing for what
        the page does to its transformation."""
        ...


def difference(old: VersionGraph, new: VersionGraph) -> VersionDifference:
    """Statements and sentences that the newer version has and the older one has not, and the other way round."""
    reason = old.failure or new.failure
    if reason:
        return VersionDifference(reason=reason)
    before, after = set(lines_of(old.quads.nquads)), set(lines_of(new.quads.nquads))
    gone, come = text_changes(old.text, new.text)
    added, removed = tuple(sorted(after - before)), tuple(sorted(before - after))
    return VersionDifference(added, removed, text_added=come[:MOST_SENTENCES], text_removed=gone[:MOST_SENTENCES])
