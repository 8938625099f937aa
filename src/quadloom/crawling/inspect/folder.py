"""A folder of files as the site that they will be: read without a server and without a warehouse, for an audit in CI.

`about/index.html` answers at `about/`, and every file at its own path and without `.html`, as static hosts serve them.
An address of the site that no file answers is gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import msgspec
import pyoxigraph as ox

from quadloom.asking.audit.across_pages import found_across
from quadloom.asking.audit.report import PageFindings
from quadloom.crawling.inspect.child import InspectTask, InspectWorker
from quadloom.errors import NothingFound, UrlError
from quadloom.model.finding import Finding
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.url import Url, host_of
from quadloom.settings import Settings

_READ = frozenset((".html", ".htm", ".xhtml", ".xml", ".json", ".jsonld", ".ttl", ".rdf", ".txt"))
_SKIPPED = frozenset((".git", "node_modules", ".venv"))
_CANONICAL = re.compile(rb"""<link[^>]+rel=["']?canonical["']?[^>]*href=["']?(https?://[^/"'\s>]+)""", re.IGNORECASE)
_UNNAMED = "https://site.example/"
_FORMAT = ox.QueryResultsFormat.JSON


class FolderAudit(msgspec.Struct):
    """The pages of a folder with their findings. `files`: the file of each page, by its URL."""

    pages: list[PageFindings]
    files: dict[str, Path]
    graphs: dict[str, bytes]

    def graph(self, name: str) -> bytes:
        """The N-Quads of a page."""
        return self.graphs.get(name, b"")

    def body(self, url: str) -> bytes:
        path = self.files.get(url)
        return path.read_bytes() if path is not None else b""


class _Files:
    """The pages of the folder, and the addresses of its site that no file answers."""

    def __init__(self, base: str) -> None:
        self._host = host_of(base)
        self._rows: dict[int, PageRow] = {}
        self.answered: set[str] = set()

    def add(self, row: PageRow) -> None:
        self._rows[row.fingerprint] = row

    def page(self, fingerprint: int) -> PageRow | None:
        return self._rows.get(fingerprint)

    def pages(self, fingerprints: Sequence[int]) -> dict[int, PageRow]:
        return {number: self._rows[number] for number in fingerprints if number in self._rows}

    def miss(self, url: str) -> bool:
        """Whether an address is one of the site, and nothing answers there; it then is a page that is gone."""
        if not url.startswith(("http://", "https://")) or host_of(url) != self._host or self.answers(url):
            return False
        if (row := _row(url, Outcome.GONE)) is not None:
            self.add(msgspec.structs.replace(row, reason="no file of the folder answers there"))
        return True

    def answers(self, url: str) -> bool:
        return urlsplit(url).path in self.answered


def audit_folder(folder: Path, settings: Settings, base: str = "") -> FolderAudit:
    """Read all files of a folder. `base`: the address at which it will be published; without it, that of rel=canonical
    on its first page. Raises `NothingFound` for a folder without pages."""
    paths = sorted(_files(folder))
    base = base or _base_of(folder)
    base = base if base.endswith("/") else f"{base}/"
    known = _Files(base)
    for path in paths:
        known.answered |= _addresses(urlsplit(base).path, path.relative_to(folder))
    store, pages, files = ox.Store(), list[PageFindings](), dict[str, Path]()
    graphs: dict[str, bytes] = {}
    worker = InspectWorker()
    try:
        for path in (path for path in paths if path.suffix.lower() in _READ):
            url = _url(base, path.relative_to(folder))
            seen = worker.transform(InspectTask(path.read_bytes(), url, None, (), settings))
            row = _row(url, Outcome.NEW)
            if row is None:
                continue
            findings: tuple[Finding, ...]
            if seen.transformed is None:
                findings = (Finding("quarantined", f"{path}: {seen.failure}", "error"),)
                links: list[str] = []
            else:
                done = seen.transformed
                row = msgspec.structs.replace(row, kind=done.kind, audit=done.audit)
                findings = (*done.findings, *((Finding("noindex", "", "info", "index"),) if done.noindex else ()))
                store.bulk_load(seen.nquads, format=ox.RdfFormat.N_QUADS, lenient=True)
                links = [link.target for link in done.links]
            row = msgspec.structs.replace(row, findings=findings)
            known.add(row)
            files[row.href] = path
            graphs[row.href] = seen.nquads
            dead = [target for target in dict.fromkeys(links) if known.miss(target)]
            pages.append(PageFindings(row, (*findings, *map(_dead_link, dead))))
    finally:
        worker.close()
    if not pages:
        raise NothingFound(f"{folder} holds no page", hint="name the folder that your site was built into")
    for quad in store.quads_for_pattern(None, None, None, None):
        if isinstance(quad.object, ox.NamedNode):
            known.miss(quad.object.value)
    return FolderAudit(list(_with_across(pages, store, known, settings)), files, graphs)


def _with_across(
    pages: list[PageFindings], store: ox.Store, known: _Files, settings: Settings
) -> Iterator[PageFindings]:
    across = found_across(_asked(store), known, settings.audit)
    by_page = {Url.parse(url).fingerprint: findings for url, findings in across.items()}
    for page in pages:
        yield PageFindings(page.row, (*page.findings, *by_page.get(page.row.fingerprint, ())))


def _asked(store: ox.Store) -> Callable[[str], Iterator[bytes]]:
    def ask(query: str) -> Iterator[bytes]:
        answer = store.query(query)
        assert isinstance(answer, ox.QuerySolutions)
        yield answer.serialize(format=_FORMAT) or b""

    return ask


def _dead_link(target: str) -> Finding:
    return Finding(
        "broken-link",
        "the link leads to an address of the site that no file answers",
        "error",
        "index",
        advice="correct the address, or add the page",
        syntax="html",
        path=f"link to {urlsplit(target).path.rpartition('/')[0]}/",
        found=target[:200],
        expected="an address that answers",
    )


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        yield from (Path(parent, name) for name in names)


def _base_of(folder: Path) -> str:
    index = folder / "index.html"
    found = _CANONICAL.search(index.read_bytes()) if index.is_file() else None
    return found[1].decode("ascii", "ignore") if found else _UNNAMED


def _url(base: str, path: Path) -> str:
    address = quote(path.as_posix())
    if path.name in ("index.html", "index.htm"):
        address = address.rpartition("/")[0] + "/" if "/" in address else ""
    return urljoin(base, address)


def _addresses(root: str, path: Path) -> set[str]:
    """The paths at which static hosts serve a file."""
    whole = root + quote(path.as_posix())
    found = {whole, root + path.as_posix()}
    if path.name in ("index.html", "index.htm"):
        parent = whole.rpartition("/")[0]
        found |= {f"{parent}/", parent}
    elif path.suffix in (".html", ".htm"):
        found.add(whole.removesuffix(path.suffix))
    return found


def _row(url: str, outcome: Outcome) -> PageRow | None:
    try:
        parsed = Url.parse(url)
    except UrlError:
        return None
    return PageRow(
        fingerprint=parsed.fingerprint, key=parsed.key, href=parsed.href, host=host_of(parsed.href), outcome=outcome
    )
