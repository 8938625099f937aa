"""The catalog as dictionaries: the reference of the contract suite and a test double."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from msgspec.structs import replace

from quadloom.model.outcome import ArchiveRef, PageRow, Settlement
from quadloom.model.phase import Owed, waiting_states
from quadloom.stores.protocols.catalog import (
    FIRST_UNINDEXED,
    IndexedPage,
    PageSummary,
    UnindexedPlace,
    VisitKey,
    VisitRow,
)
from quadloom.stores.sql.catalog_rows import count_names, repointed, visit_row, visits_of, waiting_counts
from quadloom_lab.memory.frontier import MemoryFrontier


class JoinedStore(Protocol):
    """Another store in the same transactions."""

    def snapshot(self) -> object: ...

    def restore(self, snapshot: object) -> None: ...


class MemoryCatalog:
    """Shares its transactions with `frontier`, as the durable backends do."""

    def __init__(self, frontier: MemoryFrontier) -> None:
        self._pages: dict[int, PageRow] = {}
        self.values = MemoryValues()
        self.visits = MemoryVisits()
        self.backlog = MemoryBacklog(self._pages)
        self._inside = False
        self._joined: list[JoinedStore] = [frontier]

    def join(self, store: JoinedStore) -> None:
        """Changes of `store` inside a transaction are rolled back with it."""
        self._joined.append(store)

    def transaction(self) -> AbstractContextManager[None]:
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._inside:
            yield
            return
        dictionaries = (self._pages, self.values.stored, self.visits.stored, self.backlog.leases)
        before = copy.deepcopy(dictionaries)
        others = [(store, store.snapshot()) for store in self._joined]
        self._inside = True
        try:
            yield
        except BaseException:
            for dictionary, content in zip(dictionaries, before, strict=True):
                dictionary.clear()  # type: ignore[attr-defined]
                dictionary.update(content)  # type: ignore[attr-defined]
            for store, snapshot in others:
                store.restore(snapshot)
            raise
        finally:
            self._inside = False

    def record(self, settlements: Sequence[Settlement], now: float) -> None:
        for page in (settlement.page for settlement in settlements):
            if page is None:
                continue
            old = self._pages.get(page.fingerprint)
            if old is None or old.fetched_at <= page.fetched_at:
                marks = (old.indexed_quads, old.indexed_text) if old else (b"", b"")
                self._pages[page.fingerprint] = replace(page, indexed_quads=marks[0], indexed_text=marks[1])
        for page in visits_of(settlements):
            self.visits.stored.setdefault(page.fingerprint, {})[page.fetched_at] = visit_row(page)

    def page(self, fingerprint: int) -> PageRow | None:
        return self._pages.get(fingerprint)

    def pages(self, fingerprints: Sequence[int], *, lock: bool = False) -> dict[int, PageRow]:
        return {key: self._pages[key] for key in fingerprints if key in self._pages}

    def summaries(self, fingerprints: Sequence[int]) -> dict[int, PageSummary]:
        names = PageSummary.__struct_fields__
        return {
            key: PageSummary(**{name: getattr(row, name) for name in names})
            for key, row in self.pages(fingerprints).items()
        }

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        keys = [key for key in sorted(self._pages) if key > after and host in ("", self._pages[key].host)]
        return [self._pages[key] for key in keys[:limit]]

    def fingerprints_of(self, kinds: Sequence[str]) -> list[int]:
        return [key for key, page in self._pages.items() if page.kind in kinds]

    def hosts(self) -> list[str]:
        return sorted({page.host for page in self._pages.values()})

    def amend(self, pages: Sequence[PageRow]) -> None:
        for page in pages:
            old = self._pages.get(page.fingerprint)
            if old is not None and old.fetched_at == page.fetched_at:
                self._pages[page.fingerprint] = replace(
                    page, indexed_quads=old.indexed_quads, indexed_text=old.indexed_text, owed=old.owed
                )

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        for key in fingerprints:
            page = self._pages.get(key)
            if page is not None:
                self._pages[key] = repointed(page, moved)
            for at, visit in self.visits.stored.get(key, {}).items():
                if visit.archive is not None and visit.archive in moved:
                    self.visits.stored[key][at] = replace(visit, archive=moved[visit.archive])

    def forget(self, fingerprints: Sequence[int]) -> None:
        for key in fingerprints:
            for rows in (self._pages, self.visits.stored, self.backlog.leases):
                rows.pop(key, None)

    def unindexed(self, limit: int, after: UnindexedPlace = FIRST_UNINDEXED) -> list[PageRow]:
        behind = [
            page
            for page in self._pages.values()
            if (page.indexed_quads, page.indexed_text) != (page.quads_digest, page.text_digest)
            and (page.fetched_at, page.fingerprint) > after
        ]
        return sorted(behind, key=lambda page: (page.fetched_at, page.fingerprint))[:limit]

    def mark_indexed(self, pages: Sequence[IndexedPage]) -> None:
        for key, quads, text in pages:
            if key in self._pages:
                page = replace(self._pages[key], indexed_quads=quads, indexed_text=text)
                done = (page.quads_digest, page.text_digest) == (quads, text)
                self._pages[key] = replace(page, owed=page.owed & ~Owed.INDEX) if done else page

    def counts(self) -> dict[str, int]:
        counter: Counter[str] = Counter()
        for page in self._pages.values():
            counter.update(count_names(str(page.outcome), page.kind, page.status))
        return dict(sorted(counter.items()))


class MemoryVisits:
    def __init__(self) -> None:
        self.stored: dict[int, dict[float, VisitRow]] = {}

    def of(self, fingerprint: int) -> list[VisitRow]:
        visits = self.stored.get(fingerprint, {})
        return [visits[time] for time in sorted(visits, reverse=True)]

    def forget(self, visits: Sequence[VisitKey]) -> None:
        for key, fetched_at in visits:
            self.stored.get(key, {}).pop(fetched_at, None)


class MemoryBacklog:
    def __init__(self, pages: dict[int, PageRow]) -> None:
        self._pages = pages
        self.leases: dict[int, str] = {}

    def add(self, phase: Owed, *, host: str = "") -> int:
        marked = [
            page
            for page in self._pages.values()
            if (page.quads_digest or page.text_digest) and not page.owed & Owed.TRANSFORM and host in ("", page.host)
        ]
        self._pages.update((page.fingerprint, replace(page, owed=page.owed | phase)) for page in marked)
        return len(marked)

    def remove(self, phase: Owed, visits: Sequence[VisitKey]) -> None:
        for key, fetched_at in visits:
            page = self._pages.get(key)
            if page is not None and page.fetched_at == fetched_at:
                self._pages[key] = replace(page, owed=page.owed & ~phase)

    def counts(self) -> dict[Owed, int]:
        return waiting_counts((int(page.owed), 1) for page in self._pages.values())

    def lease(self, phase: Owed, limit: int, owner: str) -> list[PageRow]:
        ready = waiting_states(phase)
        free = [page for key, page in self._pages.items() if int(page.owed) in ready and key not in self.leases]
        found = sorted(free, key=lambda page: (page.fetched_at, page.fingerprint))[:limit]
        self.leases.update((page.fingerprint, owner) for page in found)
        return found

    def release(self, owner: str, fingerprints: Sequence[int] | None = None) -> None:
        for key in list(self.leases if fingerprints is None else fingerprints):
            if self.leases.get(key) == owner:
                del self.leases[key]

    def owners(self) -> list[str]:
        return sorted(set(self.leases.values()))


class MemoryValues:
    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}

    def get(self, name: str, *, lock: bool = False) -> bytes | None:
        return self.stored.get(name)

    def put(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.stored.pop(name, None)
        else:
            self.stored[name] = value

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.stored if name.startswith(prefix))
