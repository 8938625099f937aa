"""`quadloom check`: check the set-up and suggest fixes."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from quadloom.cli.session import Session, session
from quadloom.crawl.control import ask
from quadloom.errors import QuadloomError
from quadloom.phases.loaders import all_syntaxes
from quadloom.settings import without_password
from quadloom.stores.postgres.state import described
from quadloom.stores.state import exists
from quadloom.warehouse import Warehouse

_ENGINES = ("pycurl", "selectolax", "lxml", "pyoxigraph", "tantivy", "ada-url", "msgspec", "isal")
_LOW_DISK = 1 << 30


def check() -> int:
    """Check versions, configuration, plug-ins, disk, name resolution and stores. Exit code 1 if something is wrong."""
    s = session()
    results = list(_checks(s))
    if s.json:
        s.emit([{"what": what, "ok": ok, "detail": detail, "cure": cure} for what, ok, detail, cure in results])
    else:
        for what, ok, detail, cure in results:
            s.write(
                f"{'✓ ok  ' if ok else '✗ bad '} {what}: {detail}"
                + (f"\n        hint: {cure}" if cure and not ok else "")
            )
    return 0 if all(ok for _, ok, _, _ in results) else 1


def _checks(s: Session) -> Iterator[tuple[str, bool, str, str]]:
    version = sys.version_info
    yield "python", version >= (3, 11), ".".join(map(str, version[:3])), "install Python 3.11 or newer"
    for name in _ENGINES:
        try:
            yield name, True, importlib.metadata.version(name), ""
        except importlib.metadata.PackageNotFoundError:
            yield name, False, "not installed", "reinstall quadloom"
    try:
        yield "configuration", True, f"{len(s.loaded.origins)} values set", ""
    except QuadloomError as error:
        yield "configuration", False, error.message, error.hint
        return
    yield (
        "contact",
        bool(s.settings.crawl.contact),
        s.settings.crawl.contact or "none",
        "set crawl.contact: sites want to know who visits",
    )
    yield from _extensions(s)
    yield from _disk(s)
    yield from _names()
    yield from _servers(s)
    if s.settings.stores.frontier.startswith("postgresql:"):
        yield from _database(s)
    else:
        yield from _warehouse(s)


def _database(s: Session) -> Iterator[tuple[str, bool, str, str]]:
    try:
        detail, made = described(s.settings)
    except QuadloomError as error:
        yield "database", False, error.message, error.hint
        return
    yield "database", True, detail, ""
    if made:
        yield from _warehouse(s)


def _extensions(s: Session) -> Iterator[tuple[str, bool, str, str]]:
    """Plug-ins, services and stylesheets as a worker would find them."""
    for finding in all_syntaxes(s.settings).findings:
        yield f"plug-in {finding.syntax}", False, finding.message, finding.advice
    for service in s.settings.service:
        for url in service.url.split():
            ok, detail = _reachable(url, service.timeout)
            yield f"service {url}", ok, detail, "start it, or correct its url in [[service]]"
    folder = s.settings.transform.stylesheets
    if folder:
        yield "stylesheets", Path(folder).is_dir(), folder, "set transform.stylesheets to a folder of .xsl files"


def _reachable(url: str, seconds: float) -> tuple[bool, str]:
    """Whether something listens there. Nothing is sent: a service might take any request for work."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=seconds):
            return True, "listens"
    except (OSError, ValueError) as error:
        return False, f"no connection: {error}"


def _disk(s: Session) -> Iterator[tuple[str, bool, str, str]]:
    folder = s.warehouse if s.warehouse.exists() else s.warehouse.absolute().parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    yield (
        "disk",
        free > _LOW_DISK,
        f"{free >> 20} MiB free at {folder}",
        "free some space, or add another disk to stores.directories",
    )
    yield (
        "writable",
        os.access(folder, os.W_OK),
        str(folder),
        "change its permissions, or choose another directory with -w",
    )


def _names() -> Iterator[tuple[str, bool, str, str]]:
    try:
        socket.getaddrinfo("localhost", 80)
        yield "name resolution", True, "localhost resolves", ""
    except OSError as error:
        yield "name resolution", False, str(error), "check /etc/resolv.conf and /etc/hosts"


def _servers(s: Session) -> Iterator[tuple[str, bool, str, str]]:
    """Whether something listens at the addresses of remote stores; works before there is a warehouse."""
    stores = s.settings.stores
    quads = stores.quads.removeprefix("sparql+") if stores.quads.startswith("sparql+") else ""
    bucket = stores.archive_endpoint if stores.archive.startswith("s3:") else ""
    for name, url in (("stores.quads", quads), ("stores.archive_endpoint", bucket)):
        if url:
            ok, detail = _reachable(url, s.settings.limits.connect_seconds)
            yield name, ok, f"{without_password(url)} {detail}", f"start the server, or correct {name}"


def _warehouse(s: Session) -> Iterator[tuple[str, bool, str, str]]:
    if not exists(s.warehouse, s.settings):
        yield "warehouse", True, f"none at {s.warehouse} yet", ""
        return
    running = ask(s.warehouse, "status") is not None
    yield "crawl", True, "running" if running else "not running", ""
    try:
        with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
            yield "stores", True, f"{len(warehouse.quads)} quads, {len(warehouse.text)} documents", ""
    except QuadloomError as error:
        yield "stores", False, error.message, error.hint
