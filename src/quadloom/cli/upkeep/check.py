"""`quadloom check`: check the set-up and suggest fixes."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from quadloom.cli.session import Session, session
from quadloom.crawling.run.control import ask
from quadloom.crawling.workers.services.command import program_of
from quadloom.documents.syntaxes.html.elements import native_state
from quadloom.documents.syntaxes.plugins import all_syntaxes, check_syntaxes
from quadloom.documents.syntaxes.xml.stylesheet_folder import SYNTAX as STYLESHEETS
from quadloom.documents.syntaxes.xml.stylesheet_folder import check_folder
from quadloom.errors import QuadloomError, SettingsError
from quadloom.maintenance.lost_database import refuse_lost_database
from quadloom.settings import without_password
from quadloom.stores.archive.s3_bucket import S3Bucket, address_of
from quadloom.stores.backends import exists
from quadloom.stores.opened import places_of
from quadloom.stores.postgres.state import described
from quadloom.stores.quads.sparql_client import SparqlClient, servers_of
from quadloom.warehouse import Warehouse

_ENGINES = ("pycurl", "selectolax", "lxml", "pyoxigraph", "tantivy", "ada-url", "msgspec", "isal")
_LOW_DISK = 1 << 30


class CheckResult(NamedTuple):
    """One line of the report; the fields are those of `--json`. `cure` says what to do if it is not ok."""

    what: str
    ok: bool
    detail: str
    cure: str


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
            yield CheckResult(name, True, importlib.metadata.version(name), "")
        except importlib.metadata.PackageNotFoundError:
            yield CheckResult(name, False, "not installed", "reinstall quadloom")
    # Optional: without it pages are read in Python, with the same results.
    yield CheckResult("native part", True, native_state(), "")
    try:
        yield CheckResult("configuration", True, f"{len(s.loaded.origins)} values set", "")
    except QuadloomError as error:
        yield CheckResult("configuration", False, error.message, error.hint)
        return
    yield CheckResult(
        "contact",
        bool(s.settings.crawl.contact),
        s.settings.crawl.contact or "none",
        "set crawl.contact: sites want to know who visits",
    )
    yield from _extensions(s)
    yield from _disk(s)
    yield from _names()
    yield from _servers(s)
    if s.is_cluster:
        yield from _database(s)
    else:
        yield from _warehouse(s)


def _database(s: Session) -> Iterator[CheckResult]:
    try:
        detail, made = described(s.settings)
    except QuadloomError as error:
        yield CheckResult("database", False, error.message, error.hint)
        return
    yield CheckResult("database", True, detail, "")
    if made:
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
                program or "there is no such program, or it may not be run",
                "install it, or give its whole path in [[service]]",
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
    """Whether something listens there. Nothing is sent: a service might take any request for work."""
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
            f"{free >> 20} MiB free at {folder}",
            "free some space, or add another disk to stores.directories",
        )
        yield CheckResult(
            f"writable{what}",
            os.access(folder, os.W_OK),
            str(folder),
            "change its permissions, or choose another directory",
        )


def _names() -> Iterator[CheckResult]:
    try:
        socket.getaddrinfo("localhost", 80)
        yield CheckResult("name resolution", True, "localhost resolves", "")
    except OSError as error:
        yield CheckResult("name resolution", False, str(error), "check /etc/resolv.conf and /etc/hosts")


def _servers(s: Session) -> Iterator[CheckResult]:
    """Whether remote stores do what is asked of them: something small is written, read and removed. Works before there
    is a warehouse."""
    stores = s.settings.stores
    if stores.quads.startswith("sparql+"):
        yield _tried("stores.quads", stores.quads, "answers queries and updates", lambda: _probe_quads(s))
    if stores.archive.startswith("s3:"):
        yield _tried("stores.archive", stores.archive, "writes, reads ranges, lists and removes", lambda: _probe_s3(s))


def _tried(name: str, url: str, success: str, probe: Callable[[], None]) -> CheckResult:
    try:
        probe()
    except QuadloomError as error:
        return CheckResult(name, False, error.message, error.hint)
    return CheckResult(name, True, f"{without_password(url)} {success}", "")


def _probe_quads(s: Session) -> None:
    for server in servers_of(s.settings):
        with closing(SparqlClient(server, attempts=1)) as client:
            client.probe()


def _probe_s3(s: Session) -> None:
    S3Bucket(address_of(s.settings), patient=False).probe()


def _warehouse(s: Session) -> Iterator[CheckResult]:
    if not exists(s.warehouse, s.settings):
        try:
            refuse_lost_database(s.warehouse, s.settings)
            yield CheckResult("warehouse", True, f"none at {s.warehouse} yet", "")
        except QuadloomError as error:
            yield CheckResult("warehouse", False, error.message, error.hint)
        return
    running = ask(s.warehouse, "status") is not None
    yield CheckResult("crawl", True, "running" if running else "not running", "")
    try:
        with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
            quads = len(warehouse.stores.quads)
            yield CheckResult("stores", True, f"{quads} quads, {len(warehouse.stores.text)} documents", "")
            if quads or warehouse.stores.places.quads.is_dir():  # workers with stores of their own have them elsewhere
                yield _queries(warehouse)
    except QuadloomError as error:
        yield CheckResult("stores", False, error.message, error.hint)


def _queries(warehouse: Warehouse) -> CheckResult:
    """Whether a query is answered within the limits: with little memory no query is."""
    try:
        warehouse.ask.sparql("ASK { ?s ?p ?o }").read()
    except QuadloomError as error:
        return CheckResult("queries", False, error.message, error.hint)
    return CheckResult("queries", True, "answered within limits.query_bytes and limits.query_seconds", "")
