"""`quadloom check`: check the set-up and suggest fixes."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from quadloom.cli.session import Session, session
from quadloom.cli.words import size
from quadloom.crawling.cluster.beat import clock_words
from quadloom.crawling.run.control import ask
from quadloom.crawling.workers.services.command import program_of
from quadloom.documents.syntaxes.html.elements import native_state
from quadloom.documents.syntaxes.plugins import all_syntaxes, check_syntaxes
from quadloom.documents.syntaxes.xml.stylesheet_folder import SYNTAX as STYLESHEETS
from quadloom.documents.syntaxes.xml.stylesheet_folder import check_folder
from quadloom.errors import QuadloomError, SettingsError
from quadloom.maintenance.recovery.lost_database import refuse_lost_database
from quadloom.settings import without_password
from quadloom.stores.backends import describe_server, exists, probe_archive, probe_quads
from quadloom.stores.opened import places_of
from quadloom.warehouse import Warehouse

_ENGINES = ("pycurl", "selectolax", "lxml", "pyoxigraph", "tantivy", "ada-url", "msgspec", "isal")
_LOW_DISK = 1 << 30


class CheckResult(NamedTuple):
    """One line of the report; the fields are those of `--json`. `cure` says what to do if it is not ok."""

    what: str
    ok: bool
    detail: str
    cure: str = ""


def attempted(what: str, work: Callable[[], str]) -> CheckResult:
    """The result of a check that returns its detail, or raises an error with a cure."""
    try:
        return CheckResult(what, True, work())
    except QuadloomError as error:
        return CheckResult(what, False, error.message, error.hint)


def check() -> int:
    """Check versions, configuration, plug-ins, disk, name resolution and stores. Exit code 1 if something is wrong."""
    s = session()
    results = list(_checks(s))
    if s.json:
        s.emit([result._asdict() for result in results])
    else:
        for result in results:
            hint = f"\n        hint: {result.cure}" if result.cure and not result.ok else ""
            s.write(f"{'✓ ok  ' if result.ok else '✗ bad '} {result.what}: {result.detail}{hint}")
    return 0 if all(result.ok for result in results) else 1


def _checks(s: Session) -> Iterator[CheckResult]:
    version = sys.version_info
    yield CheckResult("python", version >= (3, 11), ".".join(map(str, version[:3])), "install Python 3.11 or newer")
    for name in _ENGINES:
        try:
            yield CheckResult(name, True, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield CheckResult(name, False, "not installed", "reinstall quadloom")
    # Optional: without it pages are read in Python, with the same results.
    yield CheckResult("native part", True, native_state())
    configuration = attempted("configuration", lambda: f"{len(s.loaded.origins)} values set")
    yield configuration
    if not configuration.ok:
        return
    yield CheckResult(
        "contact",
        bool(s.settings.crawl.contact),
        s.settings.crawl.contact or "none",
        "set crawl.contact, so that the owners of sites can reach you",
    )
    yield from _extensions(s)
    yield from _disk(s)
    yield attempted("name resolution", _resolve)
    yield from _servers(s)
    if s.settings.stores.is_shared:
        yield from _database(s)
    else:
        yield from _warehouse(s)


def _database(s: Session) -> Iterator[CheckResult]:
    try:
        server = describe_server(s.settings)
    except QuadloomError as error:
        yield CheckResult("database", False, error.message, error.hint)
        return
    yield CheckResult("database", True, server.detail)
    if server.clock_error:
        yield CheckResult("clock", False, clock_words(server.clock_error), "set it with NTP")
    if server.has_tables:
        yield from _warehouse(s)


def _extensions(s: Session) -> Iterator[CheckResult]:
    """Syntaxes, plug-ins, services and stylesheets as a worker would find them."""
    try:
        check_syntaxes(s.settings)
    except SettingsError as error:
        yield CheckResult("syntaxes", False, error.message, error.hint)
    assembled = all_syntaxes(s.settings)
    for finding in assembled.findings:
        yield CheckResult(f"plug-in {finding.syntax}", False, finding.message, finding.advice)
    for service in s.settings.service:
        for url in service.url.split():
            ok, detail = _reachable(url, service.timeout)
            yield CheckResult(f"service {url}", ok, detail, "start it, or correct its url in [[service]]")
        if service.command:
            program = program_of(service.command)
            yield CheckResult(
                f"command {service.command[0]}",
                program is not None,
                program or "there is no such program, or it is not executable",
                "install it, or give its full path in [[service]]",
            )
    folder = s.settings.transform.stylesheets
    if folder:
        yield CheckResult(
            "stylesheets", Path(folder).is_dir(), folder, "set transform.stylesheets to a folder of .xsl files"
        )
    if folder and Path(folder).is_dir():
        for sheet in check_folder(folder, assembled.registry.kinds(STYLESHEETS)):
            yield CheckResult(f"stylesheet {sheet.file}", not sheet.problem, sheet.problem or "compiles", sheet.advice)


def _reachable(url: str, seconds: float) -> tuple[bool, str]:
    """Whether something listens there. Nothing is sent, since a service could take any request for work."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=seconds):
            return True, "listens"
    except (OSError, ValueError) as error:
        return False, f"no connection: {error}"


def _disk(s: Session) -> Iterator[CheckResult]:
    """The disk of the warehouse, and those of folders that the settings place elsewhere."""
    places = places_of(s.warehouse, s.settings)
    indexes = (place for place in (places.quads, places.text, places.links) if place.parent != s.warehouse)
    for number, place in enumerate((s.warehouse, *map(Path, s.settings.stores.directories), *indexes)):
        what = f" {place}" if number else ""
        folder = place if place.exists() else place.absolute().parent
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        yield CheckResult(
            f"disk{what}",
            free > _LOW_DISK,
            f"{size(free)} free at {folder}",
            "free some space, or add another disk to stores.directories",
        )
        yield CheckResult(
            f"writable{what}",
            os.access(folder, os.W_OK),
            str(folder),
            "change its permissions, or choose another directory",
        )


def _resolve() -> str:
    try:
        socket.getaddrinfo("localhost", 80)
    except OSError as error:
        raise SettingsError(str(error), hint="check /etc/resolv.conf and /etc/hosts") from None
    return "localhost resolves"


def _servers(s: Session) -> Iterator[CheckResult]:
    """Write, read and remove something small in each remote store. Works before there is a warehouse."""
    stores = s.settings.stores

    def quads() -> str:
        probe_quads(s.settings)
        return f"{without_password(stores.quads)} answers queries and updates"

    def archive() -> str:
        probe_archive(s.settings)
        return f"{without_password(stores.archive)} writes, reads ranges, lists and removes"

    if stores.quads.startswith("sparql+"):
        yield attempted("stores.quads", quads)
    if stores.archive.startswith("s3:"):
        yield attempted("stores.archive", archive)


def _warehouse(s: Session) -> Iterator[CheckResult]:
    def none_yet() -> str:
        refuse_lost_database(s.warehouse, s.settings)
        return f"none at {s.warehouse} yet"

    if not exists(s.warehouse, s.settings):
        yield attempted("warehouse", none_yet)
        return
    yield CheckResult("crawl", True, "not running" if ask(s.warehouse, "status") is None else "running")
    try:
        with s.read() as warehouse:
            quads = len(warehouse.stores.quads)
            yield CheckResult("stores", True, f"{quads:,} quads, {len(warehouse.stores.text):,} documents")
            if quads or warehouse.stores.places.quads.is_dir():  # workers with stores of their own have them elsewhere
                yield attempted("queries", lambda: _query(warehouse))
    except QuadloomError as error:
        yield CheckResult("stores", False, error.message, error.hint)


def _query(warehouse: Warehouse) -> str:
    """With too little memory no query has an answer."""
    warehouse.ask.sparql("ASK { ?s ?p ?o }").read()
    return "answered within limits.query_bytes and limits.query_seconds"
