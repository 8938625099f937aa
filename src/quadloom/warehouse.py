"""A warehouse: all stores of one directory as one thing.

`Warehouse.open(path)` owns it (one process at a time, may write); `Warehouse.read(path)` looks at it while another
process may be crawling. Which backends it has is decided in one table, `BACKENDS`, by the URLs in `[stores]`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from quadloom.asking.questions import Questions
from quadloom.errors import StoreError, UsageError
from quadloom.export.dump import Dumped, export_to, parse_format
from quadloom.export.reading import read_pages
from quadloom.export.selection import Selection
from quadloom.model.event import Event, EventKind
from quadloom.model.outcome import Settlement
from quadloom.model.url import Url
from quadloom.run.control import ControlServer, Request, Value
from quadloom.run.crawl import Crawl
from quadloom.run.importing import ImportReport, import_pages
from quadloom.run.loading import document_loader
from quadloom.run.meter import Report
from quadloom.run.opened import Opened
from quadloom.run.replay import Replayed, replay_unindexed
from quadloom.run.seeding import seed_discoveries
from quadloom.run.upkeep import Verified, rebuild, verify
from quadloom.scheduling.scope import Scope
from quadloom.settings import Settings
from quadloom.settings_loading import load
from quadloom.stores.frontier_policy import FrontierPolicy
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.oxigraph_quads import OxigraphQuads
from quadloom.stores.protocols import Archive, Bus, Catalog, Frontier, QuadStore, TextIndex
from quadloom.stores.sqlite_catalog import SqliteCatalog
from quadloom.stores.sqlite_database import SqliteDatabase, WarehouseLock
from quadloom.stores.sqlite_frontier import SqliteFrontier
from quadloom.stores.sqlite_schema import SCHEMA
from quadloom.stores.tantivy_text import TantivyText
from quadloom.stores.warc_archive import WarcArchive

DATABASE = "quadloom.db"


class Warehouse(Questions):
    """Use as a context manager. Attributes are the seams: `frontier`, `catalog`, `archive`, `quads`, `text`, `bus`."""

    def __init__(self, path: Path, settings: Settings, *, writable: bool) -> None:
        self.path = path
        self.settings = settings
        self.writable = writable
        self.loader = document_loader(settings)
        self._closing = contextlib.ExitStack()
        self.bus: Bus = MemoryBus()
        if writable:
            self._lock = WarehouseLock(path)
            self._closing.callback(self._lock.release)
        try:
            self._open()
        except BaseException:
            self._closing.close()
            raise

    @classmethod
    def open(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Own the warehouse, creating it where there is none. Raises `WarehouseLocked` where another process does."""
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe = path / ".writable"
            probe.touch()
            probe.unlink()
        except FileExistsError:
            raise UsageError(f"{path} is a file, not a directory", hint="name a directory with -w") from None
        except OSError as error:
            raise StoreError(
                f"cannot write to {path}: {error.strerror}",
                hint="choose another directory with -w, or change its permissions",
            ) from None
        return cls(path, settings or Settings(), writable=True)

    @classmethod
    def read(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Look at a warehouse, also while a crawl runs on it."""
        return cls(Path(path), settings or Settings(), writable=False)

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._closing.close()

    def _open(self) -> None:
        now = time.time()
        file = self.path / DATABASE
        self._database = SqliteDatabase.open(file, SCHEMA) if self.writable else SqliteDatabase.read_only(file)
        self._closing.callback(self._database.close)
        self.catalog: Catalog = SqliteCatalog(self._database)
        self.scope = self._scope([])
        self.frontier: Frontier = SqliteFrontier(
            self._database, FrontierPolicy.from_settings(self.settings), now=now, scope=self.scope
        )
        self.archive: Archive = WarcArchive(
            [self.path / "archive", *(Path(folder) for folder in self.settings.stores.directories)],
            file_bytes=self.settings.stores.archive_file_bytes,
            read_only=not self.writable,
        )
        self._open_indexes()
        self._closing.callback(self.frontier.close)
        self._closing.callback(self.archive.close)
        self._closing.callback(lambda: self.quads.close())
        self._closing.callback(lambda: self.text.close())

    def _open_indexes(self) -> None:
        quads, text = self.path / "quads", self.path / "text"
        self.quads: QuadStore = OxigraphQuads(quads) if self.writable else OxigraphQuads.read_only(quads)
        self.text: TextIndex = TantivyText(text) if self.writable else TantivyText.read_only(text)

    def crawl(self, urls: Sequence[str] = (), *, forever: bool = False, **limits: int | float | str) -> Running:
        """A crawl that runs while it is iterated; leaving the loop pauses it safely.

        `limits` are settings of `[crawl]`: `max_pages=500`, `scope="host"`, `max_depth=3` …
        """
        known = {field.name for field in msgspec.structs.fields(type(self.settings.crawl))}
        unknown = sorted(set(limits) - known)
        if unknown:
            raise UsageError(
                f"crawl() does not take {unknown[0]!r}", hint=f"settings of [crawl] are {', '.join(sorted(known))}"
            )
        crawl = msgspec.structs.replace(self.settings.crawl, **limits)
        self.settings = msgspec.structs.replace(self.settings, crawl=crawl)
        return self.start(urls, forever=forever)

    def start(self, seeds: Sequence[str], *, forever: bool = False) -> Running:
        """Queue the seeds, bring the indexes up to date, and return a crawl that runs while it is iterated."""
        self.add_seeds(seeds)
        return Running(self, forever=forever)

    def add_seeds(self, urls: Sequence[str]) -> dict[str, Value]:
        """Widen the scope to these URLs and queue them."""
        found = seed_discoveries(urls)
        known = self.seeds()
        fresh = [item.href for item in found if item.href not in known]
        if fresh:
            self.catalog.put("seeds", msgspec.json.encode([*known, *fresh]))
            self.scope = self._scope([*known, *fresh])
            self.frontier.set_scope(self.scope)
        report = self.frontier.add(found, time.time())
        return {"new": report.new, "known": report.known, "refused": report.refused}

    def seeds(self) -> list[str]:
        return msgspec.json.decode(self.catalog.get("seeds") or b"[]", type=list[str])

    def opened(self) -> Opened:
        return Opened(
            frontier=self.frontier,
            catalog=self.catalog,
            archive=self.archive,
            quads=self.quads,
            text=self.text,
            bus=self.bus,
            quads_path=self.path / "quads",
        )

    def verify(self) -> Verified:
        """Compare archive, quads and text with the catalog, page by page."""
        return verify(self.opened(), self.settings)

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "",
        selection: Selection | None = None,
        progress: Callable[[int], None] = lambda _pages: None,
    ) -> Dumped:
        """Write the warehouse, or a part of it, to a file (format by suffix: `out.nq.gz`) or a binary stream."""
        chosen = selection or Selection()
        if not isinstance(target, str | Path):
            return export_to(self, target, format or "nq", chosen, time.time(), progress)
        name = Path(target).name
        parse_format(format or name.partition(".")[2] or "nq")
        with Path(target).open("wb") as stream:
            return export_to(self, stream, format or name.partition(".")[2] or "nq", chosen, time.time(), progress)

    def import_(
        self, *paths: str | Path, graph: str = "", progress: Callable[[int], None] = lambda _pages: None
    ) -> ImportReport:
        """Read WARC files and RDF dumps through the same phases as a crawl. `graph`: for statements without one."""
        pages = (
            page
            for path in paths
            for page in read_pages(Path(path), self.settings.limits, default_graph=graph, now=time.time())
        )
        return import_pages(self.opened(), self.settings, pages, self.loader, time.time, progress)

    def rebuild(self, *, progress: Callable[[int], None] = lambda _done: None) -> int:
        """Make quads and text anew from the archive; swapped in when complete. Returns the number of pages."""
        fresh = {name: self.path / f"{name}.new" for name in ("quads", "text")}
        for folder in fresh.values():
            shutil.rmtree(folder, ignore_errors=True)
        quads, text = OxigraphQuads(fresh["quads"]), TantivyText(fresh["text"])
        try:
            pages = rebuild(self.opened(), self.settings, quads, text, progress=progress)
        finally:
            quads.close()
            text.close()
        self.quads.close()
        self.text.close()
        del quads, text
        for name, folder in fresh.items():
            shutil.rmtree(self.path / name, ignore_errors=True)
            folder.rename(self.path / name)
        self._open_indexes()
        return pages

    def summary(self) -> dict[str, Value]:
        """Frontier states, pages by outcome, sizes: what `status` prints of a warehouse at rest."""
        stats = self.frontier.stats(time.time())
        counts = self.catalog.counts()
        by = {
            kind: {name.partition(":")[2]: count for name, count in counts.items() if name.startswith(f"{kind}:")}
            for kind in ("outcome", "kind", "status")
        }
        return {
            "warehouse": str(self.path),
            "running": False,
            "state": "stopped",
            "frontier": {**msgspec.structs.asdict(stats), "total": stats.total},
            "outcomes": {**by["outcome"]},
            "kinds": {**by["kind"]},
            "statuses": {**by["status"]},
            "quads": len(self.quads),
            "documents": len(self.text),
            "rates": {},
            "sizes": {
                "database": _size(self.path / DATABASE),
                "archive": self.archive.size(),
                "quads": _size(self.path / "quads"),
                "text": _size(self.path / "text"),
            },
        }

    @property
    def contact(self) -> str:
        return (self.catalog.get("contact") or b"").decode()

    def remember_contact(self, contact: str) -> None:
        self.catalog.put("contact", contact.encode())

    def is_private(self, urls: Sequence[str]) -> bool:
        """Whether all these are inside what `guard.allow` opens: then no stranger is visited."""
        networks = [ipaddress.ip_network(block, strict=False) for block in self.settings.guard.allow]
        return bool(urls or self.seeds()) and all(self._is_inside(url, networks) for url in (urls or self.seeds()))

    def _is_inside(self, url: str, networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
        name = Url.parse(url).host.rpartition(":")[0] or Url.parse(url).host
        for pattern, address in self.settings.guard.hosts.items():
            if name == pattern or (pattern.startswith("*.") and name.endswith(pattern[1:])):
                name = address
        try:
            address_of = ipaddress.ip_address("127.0.0.1" if name == "localhost" else name.strip("[]"))
        except ValueError:
            return False
        return any(address_of in network for network in networks)

    def _scope(self, seeds: list[str]) -> Scope:
        stored = self.catalog.get("seeds")
        known = seeds or (msgspec.json.decode(stored, type=list[str]) if stored else [])
        return Scope.from_settings(self.settings.crawl, known)


class Running:
    """A crawl on a warehouse, answering control requests. Iterate to run it."""

    def __init__(self, warehouse: Warehouse, *, forever: bool = False) -> None:
        self._warehouse = warehouse
        self._events = 0
        self.replayed: Replayed = replay_unindexed(warehouse.opened(), warehouse.settings, time.time())
        settings = warehouse.settings
        if not settings.crawl.contact and warehouse.contact:
            crawl = msgspec.structs.replace(settings.crawl, contact=warehouse.contact)
            settings = msgspec.structs.replace(settings, crawl=crawl)
        self.crawl = Crawl(warehouse.opened(), settings, forever=forever, notice=self._notice)

    def __iter__(self) -> Iterator[Settlement]:
        control = ControlServer(self._warehouse.path, lambda request: self.crawl.call(lambda: self._handle(request)))
        try:
            for settlement in self.crawl:
                self._published(settlement)
                yield settlement
        finally:
            control.close()

    def stop(self) -> None:
        self.crawl.stop()

    def report(self) -> Report:
        return self.crawl.report()

    def _handle(self, request: Request) -> Value:
        """Runs in the crawl's own thread, between two steps: nothing here needs a lock."""
        if request.verb == "status":
            report = msgspec.to_builtins(self.crawl.report())
            return report if isinstance(report, dict) else {}
        if request.verb in ("pause", "resume"):
            self.crawl.paused = request.verb == "pause"
            self._notice("paused" if self.crawl.paused else "resumed", "")
            return "paused" if self.crawl.paused else "running"
        if request.verb == "stop":
            self.crawl.stop()
            return "stopping"
        if request.verb == "events":
            after = request.arguments.get("after")
            return [_event(event) for event in self._warehouse.bus.recent(after if isinstance(after, int) else 0)]
        if request.verb == "seeds":
            urls = request.arguments.get("urls")
            counts = self._warehouse.add_seeds([str(url) for url in urls] if isinstance(urls, list) else [])
            self.crawl.scope_changed()
            return counts
        raise UsageError(
            f"a running crawl does not know {request.verb!r}", hint="both sides must be of the same version"
        )

    def _published(self, settlement: Settlement) -> None:
        page = settlement.page
        data: dict[str, str | int | float | bool | list[str]] = {"outcome": str(settlement.outcome)}
        if page is not None:
            data |= {"status": page.status, "kind": page.kind, "quads": page.quads, "title": page.title}
        self._publish("settled", settlement.visit.href, data)

    def _notice(self, kind: EventKind, text: str) -> None:
        self._publish(kind, text, {})

    def _publish(self, kind: EventKind, subject: str, data: dict[str, str | int | float | bool | list[str]]) -> None:
        # Milliseconds, so that ids go on growing when the next crawl begins: listeners resume by them.
        self._events = max(self._events + 1, int(time.time() * 1000))
        self._warehouse.bus.publish(Event(self._events, kind, time.time(), subject, data))


def _event(event: Event) -> Value:
    data: dict[str, Value] = {name: [*value] if isinstance(value, list) else value for name, value in event.data.items()}
    return {"id": event.id, "kind": event.kind, "at": event.at, "subject": event.subject, "data": data}


def open_warehouse(path: str | Path, *, settings: Settings | None = None) -> Warehouse:
    """`quadloom.open(path)`: own a warehouse; settings come from quadloom.toml and the environment where not given."""
    return Warehouse.open(path, settings=settings or load().settings)


def _size(path: Path) -> int:
    if path.is_file():
        return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
