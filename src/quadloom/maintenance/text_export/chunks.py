"""Pages in pieces for retrieval systems: Markdown by heading, as JSON Lines, with what each piece needs to be cited.

The id of a chunk is made of its page and content, so a chunk that has not changed has the id that it had. An export
since a date compares the versions of that time with those of today: it sends chunks that are new and the ids of those
that are gone, and nothing for the rest of a page.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec
import pyoxigraph as ox

from quadloom.asking.changes.history import history
from quadloom.asking.export.dump import DumpReport, packed
from quadloom.asking.export.selection import Selection, StoredPages
from quadloom.asking.things.matching import is_minor
from quadloom.asking.things.paths import RDF_TYPE
from quadloom.crawling.inspect.child import InspectTask, InspectWorker
from quadloom.errors import NothingFound
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.page import Page
from quadloom.model.timestamps import iso_time
from quadloom.planning.policy.page_row import gone_since
from quadloom.stores.opened import Stores

MOST_CHARACTERS = 2_000  # of a chunk: some 500 tokens
_MAX_DATA = 20_000  # characters of the statements about the main thing
_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"\s*(```|~~~)")
_json = msgspec.json.Encoder()


class Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`op`: put or delete; a deletion has id and page only. `path`: headings above the text, the page's title first.
    `data`: JSON-LD of the thing that the page is mainly about, in its first chunk."""

    op: str
    id: str
    page: str
    path: tuple[str, ...] = ()
    text: str = ""
    language: str = ""
    time: str = ""
    types: tuple[str, ...] = ()
    data: dict[str, object] | None = None
    warc: ArchiveRefNames | None = None


class ArchiveRefNames(msgspec.Struct, frozen=True):
    """As `ArchiveRef`, by names."""

    file: str
    offset: int
    length: int


def write_chunks(
    stores: Stores, stream: BinaryIO, packing: str, selection: Selection, progress: Callable[[int], None]
) -> DumpReport:
    """Write JSON Lines to a stream, which stays open: all chunks, or with `selection.since` what has changed since.
    The report counts pages, and chunks in place of statements."""
    pages = lines = 0
    worker = InspectWorker()
    try:
        with packed(stream, packing) as sink:
            for found in _pages(stores, selection, worker):
                for chunk in found:
                    sink.write(_json.encode(chunk) + b"\n")
                    lines += 1
                pages += 1
                progress(pages)
    finally:
        worker.close()
    return DumpReport(pages, lines)


def _pages(stores: Stores, selection: Selection, worker: InspectWorker) -> Iterator[list[Chunk]]:
    # Pages that are gone have not changed: they are looked for by their own date.
    everything = StoredPages(stores.catalog, stores.quads, stores.archive)
    wanted = msgspec.structs.replace(selection, since=0.0) if selection.since else selection
    for row in everything.selected(wanted):
        gone = gone_since(row)
        if selection.since and max(gone, row.changed_at) < selection.since:
            continue
        before = _chunks_before(stores, row, selection.since, worker) if selection.since else {}
        now = {} if gone else _chunks(stores, row, row.archive, worker)
        changed = [chunk for id, chunk in now.items() if id not in before]
        changed += [Chunk(op="delete", id=id, page=chunk.page) for id, chunk in before.items() if id not in now]
        if changed:
            yield changed


def _chunks_before(stores: Stores, row: PageRow, since: float, worker: InspectWorker) -> dict[str, Chunk]:
    try:
        visit = history(stores.catalog, row.href).at(since)
    except NothingFound:
        return {}  # the page is newer
    return _chunks(stores, row, visit.archive, worker)


def _chunks(stores: Stores, row: PageRow, ref: ArchiveRef | None, worker: InspectWorker) -> dict[str, Chunk]:
    """The chunks of one version, by id."""
    page = stores.archive.get(ref) if ref is not None else None
    if ref is None or not isinstance(page, Page):
        return {}
    sent = page.header("content-type") or None
    read = worker.transform(InspectTask(page.body, page.final_url, sent, page.headers, stores.settings))
    title = (read.transformed.facts.title if read.transformed else "") or row.title
    data = main_thing(read.nquads, page.final_url)
    types = tuple(str(one) for one in data["@type"]) if data and isinstance(data["@type"], list) else ()
    found: dict[str, Chunk] = {}
    for path, text in sections(read.markdown):
        first = data if not found else None
        content = _json.encode((page.final_url, title, path, text, first))
        chunk = Chunk(
            op="put",
            id=hashlib.sha256(content).hexdigest()[:32],
            page=page.final_url,
            path=(title, *path) if title else path,
            text=text,
            language=row.language,
            time=iso_time(page.fetched_at),
            types=types,
            data=first,
            warc=ArchiveRefNames(ref.file, ref.offset, ref.length),
        )
        found.setdefault(chunk.id, chunk)  # the same twice on a page is one chunk
    return found


def sections(markdown: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The text below each heading, with the headings above it; a long one in several parts, cut between paragraphs."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    in_code = False
    for line in [*markdown.splitlines(), "# "]:
        in_code ^= bool(_FENCE.match(line))
        heading = None if in_code else _HEADING.match(line)
        if heading is None and line != "# ":
            lines.append(line)
            continue
        names = tuple(name for _, name in path)
        yield from ((names, part) for part in _parts("\n".join(lines).strip()))
        lines = []
        if heading is not None:
            level = len(heading[1])
            path = [*((depth, name) for depth, name in path if depth < level), (level, heading[2])]


def _parts(text: str) -> Iterator[str]:
    part = ""
    for paragraph in text.split("\n\n"):
        if part and len(part) + len(paragraph) + 2 > MOST_CHARACTERS:
            yield part
            part = ""
        part = f"{part}\n\n{paragraph}" if part else paragraph
        while len(part) > MOST_CHARACTERS:
            end = part.rfind(" ", 1, MOST_CHARACTERS)
            end = end if end > 0 else MOST_CHARACTERS
            yield part[:end]
            part = part[end:].lstrip()
    if part:
        yield part


def main_thing(nquads: bytes, page: str) -> dict[str, object] | None:
    """Flat JSON-LD of the typed thing that a page says most about, its own part (`#it`) first; None if it has none."""
    things: dict[str, dict[str, list[object]]] = {}
    for quad in ox.parse(nquads, ox.RdfFormat.N_QUADS, lenient=True):
        if isinstance(quad.subject, ox.NamedNode):
            properties = things.setdefault(quad.subject.value, {})
            properties.setdefault(quad.predicate.value, []).append(_value(quad.object))
    typed = {
        iri: found
        for iri, found in things.items()
        if RDF_TYPE in found and not is_minor(iri, [_id(one) for one in found[RDF_TYPE]])
    }
    if not typed:
        return None
    iri = min(typed, key=lambda name: (not name.startswith(page), -sum(map(len, typed[name].values())), name))
    found = typed[iri]
    types = sorted(_id(one) for one in found.pop(RDF_TYPE))
    room, shown = _MAX_DATA, {}
    for name in sorted(found):
        values = sorted(found[name], key=_json.encode)
        room -= len(_json.encode(values))
        if room > 0:
            shown[name] = values
    return {"@id": iri, "@type": types, **shown}


def _id(value: object) -> str:
    return str(value.get("@id", "")) if isinstance(value, dict) else ""


def _value(term: object) -> object:
    if isinstance(term, ox.NamedNode):
        return {"@id": term.value}
    if isinstance(term, ox.Literal):
        if term.language:
            return {"@value": term.value, "@language": term.language}
        plain = term.datatype.value.endswith("#string")
        return {"@value": term.value} if plain else {"@value": term.value, "@type": term.datatype.value}
    return {"@id": str(term)}
