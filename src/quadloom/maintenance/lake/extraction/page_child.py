"""Reads and transforms the pages of one source, in a process that a page may end: it holds nothing of value."""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from quadloom.documents.archives.files import is_archive, warc_files
from quadloom.documents.archives.pages import recorded_pages
from quadloom.documents.headers import with_header_links
from quadloom.documents.index import page_graph
from quadloom.documents.syntaxes.plugins import all_syntaxes
from quadloom.documents.transform import transform
from quadloom.errors import QuadloomError
from quadloom.maintenance.importing.imported_pages import RDF_SUFFIXES, read_own, read_rdf, suffix_of
from quadloom.maintenance.lake.extraction.messages import BatchAnswer, BatchRequest, ChildSetup
from quadloom.maintenance.lake.extraction.tables import links_of, page_of
from quadloom.maintenance.lake.tables import Row, finding_rows, quad_rows, signed_hash
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.model.url import canonical, fingerprint
from quadloom.process.channel import Channel, run

_FILE = 1 << 48  # positions of a WACZ: number of the file within it, and offset in that file
_MOST_BYTES = 16 << 20  # of the bodies of a batch
_YOUNG = 50_000  # objects made and not freed since the collector came last
_DATE = 1e9  # of pages without a date: the results of two runs are the same


class _Positioned(NamedTuple):
    position: int
    page: Page


class PageReader:
    """The pages of a source in batches, from any page on."""

    def __init__(self, setup: ChildSetup) -> None:
        self._setup = setup
        self._settings = setup.settings
        self._syntaxes = all_syntaxes(setup.settings).registry
        self._seen = set(setup.seen)
        self._new: set[int] = set()
        self._not_taken: Counter[str] = Counter()
        self._bad: list[Row] = []
        self._begins = [0, *accumulate(one.length for one in setup.source.ranges)]
        self._closing = ExitStack()
        self._last = -1
        self._pages = self._open(-1)

    def batch(self, request: BatchRequest) -> BatchAnswer:
        if request.after != self._last:
            self._closing.close()
            self._pages = self._open(request.after)
        self._last = -2  # no request follows a batch that was not answered
        self._not_taken.clear()
        self._new.clear()
        self._bad.clear()
        self._rows: dict[str, list[Row]] = {}
        nquads: list[bytes] = []
        counts: Counter[str] = Counter()
        last, size, is_last = request.after, 0, True
        skip = request.skip
        for number, (position, page) in enumerate(self._pages, 1):
            last = position
            size += len(page.body)
            if skip:
                row = (self._setup.source.name, self._recorded_at(position), page.url, "quarantined", skip)
                self._add("failures", [row])
                skip = ""
            elif self._is_wanted(page, counts):
                nquads.append(self._transform(position, page, counts))
            if number >= request.pages or size > _MOST_BYTES:
                is_last = False
                break
        self._add("failures", self._bad)
        self._last = last
        return BatchAnswer(
            self._rows,
            b"".join(nquads),
            last,
            is_last,
            dict(self._not_taken),
            dict(counts),
            frozenset(self._new),
        )

    def _is_wanted(self, page: Page, counts: Counter[str]) -> bool:
        if self._setup.options.skip_duplicates:
            content = signed_hash(page.body)
            if content in self._seen:
                counts["duplicates"] += 1
                return False
            self._seen.add(content)
            self._new.add(content)
        return True

    def _transform(self, position: int, page: Page, counts: Counter[str]) -> bytes:
        settings, options, name = self._settings, self._setup.options, self._setup.source.name
        try:
            said = transform(
                page.body,
                url=page.final_url,
                headers=page.headers,
                settings=settings,
                syntaxes=self._syntaxes,
                answers=(),
            )
            if any(header == "link" for header, _ in page.headers):
                said = with_header_links(said, page)
            index = settings.index
            nquads = b""
            if not said.facts.noindex:
                nquads = page_graph(said, page.final_url, index.links, index.schema_org).quads.nquads
            text = said.markdown if options.text == "markdown" else said.main_text if options.text == "main" else ""
        except Exception as error:  # noqa: BLE001  the error boundary: a page costs itself
            message = f"{type(error).__name__}: {error}"[:500]
            self._add("failures", [(name, self._recorded_at(position), page.url, "internal-error", message)])
            return b""
        key = fingerprint(canonical(page.url))
        counts["pages"] += 1
        counts["bytes"] += len(page.body)
        counts["quads"] += (quads := nquads.count(b"\n"))
        if options.parquet:
            self._add("pages", [page_of(page, said, quads, name, self._recorded_at(position))])
            self._add("quads", quad_rows(key, page.final_url, nquads))
            self._add("links", links_of(key, said))
            self._add("findings", finding_rows(key, (*page.findings, *said.findings)))
            if text:
                self._add("texts", [(key, text)])
        return nquads if options.nquads else b""

    def _recorded_at(self, position: int) -> int:
        """The position in the source, of which perhaps only some ranges were copied."""
        ranges = self._setup.source.ranges
        if not ranges:
            return position
        number = bisect_right(self._begins, position) - 1
        return ranges[number].offset + position - self._begins[number]

    def _add(self, table: str, rows: Iterator[Row] | list[Row]) -> None:
        self._rows.setdefault(table, []).extend(rows)

    def _note(self, finding: Finding) -> None:
        self._bad.append((self._setup.source.name, None, "", finding.code, finding.message))

    def _open(self, after: int) -> Iterator[_Positioned]:
        self._closing = ExitStack()
        try:
            yield from self._read(after)
        except (QuadloomError, OSError) as error:
            self._bad.append((self._setup.source.name, None, "", "import-file", f"was not read: {error}"))

    def _read(self, after: int) -> Iterator[_Positioned]:
        source, path, limits = self._setup.source, Path(self._setup.path), self._settings.limits
        if source.kind == "rdf":
            name, packing = suffix_of(path)
            dump = read_rdf(path, RDF_SUFFIXES[name], packing, default_graph=source.base, now=_DATE, report=self._note)
            yield from (_Positioned(n, item.page) for n, item in enumerate(dump) if n > after)
        elif source.kind == "folder":
            files = sorted(file for file in path.rglob("*") if file.is_file() and not is_archive(file))
            for number, file in enumerate(files[after + 1 :], after + 1):
                body = file.read_bytes()[: limits.body_bytes]
                url = source.base + file.relative_to(path).as_posix()
                yield _Positioned(number, Page(url, url, 200, (), body, _DATE, 0.0))
        else:
            files_of = self._closing.enter_context(warc_files(path))
            for number, file in enumerate(files_of):
                begin = number * _FILE
                if begin + _FILE <= after:
                    continue
                start = max(0, after - begin)
                for found in recorded_pages(file, limits, self._note, self._not_taken, start=start, own=read_own):
                    if begin + found.offset > after:
                        yield _Positioned(begin + found.offset, found.page)


def serve(channel: Channel) -> None:
    reader = PageReader(channel.receive(ChildSetup))
    # As in the workers of a crawl: nearly all that a page needs is freed with it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)
    while True:
        channel.send(reader.batch(channel.receive(BatchRequest)))


def main() -> None:
    run(serve)


if __name__ == "__main__":
    main()
