"""Citations: a value with the page that states it, the time of the visit and the archived record with its digests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from quadloom.asking.entity import Value, describe_entity
from quadloom.asking.things.paths import canonical, parse_path, words
from quadloom.asking.urls import page_of
from quadloom.errors import NothingFound
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.timestamps import day, iso_time
from quadloom.stores.archive.warc_record import record_fields
from quadloom.stores.opened import Stores

_MOST_VALUES = 50
_MOST_SOURCES = 20  # of one value
_TEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\~{}", "^": r"\^{}"}
)


class CitedRecord(msgspec.Struct, frozen=True):
    """An archived record. `id` and `payload_digest` as in its header; `sha256`: of its bytes as they are stored."""

    file: str
    offset: int
    length: int
    id: str
    payload_digest: str
    sha256: str


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """One value as one page states it; without `property`, the page itself. `visited`: when the record was fetched;
    `seen`: the last visit, which found the same. `archived`: address of the archived copy, if the site has one."""

    thing: str
    label: str = ""
    property: str = ""
    value: Value | None = None
    page: str
    title: str = ""
    visited: str = ""
    seen: str = ""
    record: CitedRecord | None = None
    archived: str = ""


def cite(stores: Stores, iri: str, property: str = "", *, public_url: str = "") -> list[Citation]:
    """Citations of a thing's values; of a page that was read, without a property, the page. Raises `NothingFound`."""
    row = page_of(stores.catalog, iri)
    if row is not None and not property and iri in (row.href, row.graph):
        return [_citation(stores, row, Citation(thing=iri, page=row.graph), public_url)]
    wanted = parse_path(property)[0] if property else ""
    entity = describe_entity(stores.quads, iri)
    found = [
        Citation(thing=entity.iri, label=entity.label, property=item.iri, value=statement.value, page=page)
        for item in entity.properties
        if not wanted or canonical(item.iri) == wanted
        for statement in item.statements[:_MOST_VALUES]
        for page in statement.sources[:_MOST_SOURCES]
    ]
    if not found:
        raise NothingFound(f"no page states {property} of {iri}", hint=f"`quadloom show {iri}` lists what is stated")
    rows = {page: page_of(stores.catalog, page) for page in dict.fromkeys(one.page for one in found)}
    cited = {
        page: _citation(stores, row, Citation(thing="", page=page), public_url) for page, row in rows.items() if row
    }
    return [_with_page(one, cited.get(one.page)) for one in found]


def _with_page(one: Citation, page: Citation | None) -> Citation:
    if page is None:
        return one
    return msgspec.structs.replace(
        one, title=page.title, visited=page.visited, seen=page.seen, record=page.record, archived=page.archived
    )


def _citation(stores: Stores, row: PageRow, one: Citation, public_url: str) -> Citation:
    """With what is known about the page and its newest record."""
    fetched = row.fetched_at
    for visit in stores.catalog.visits.of(row.fingerprint):
        if row.archive is not None and visit.archive == row.archive:
            fetched = visit.fetched_at
    stamp = re.sub(r"\D", "", iso_time(fetched))
    copy = f"{public_url.rstrip('/')}/memento/{stamp}/{row.href}"
    return msgspec.structs.replace(
        one,
        title=row.title,
        visited=iso_time(fetched),
        seen=iso_time(row.fetched_at),
        record=_record(stores, row.archive) if row.archive else None,
        archived=copy if public_url and row.archive else "",
    )


def _record(stores: Stores, ref: ArchiveRef) -> CitedRecord:
    member = stores.archive.record(ref).member
    fields = record_fields(member)
    return CitedRecord(
        ref.file,
        ref.offset,
        ref.length,
        fields.get("warc-record-id", "").strip("<>"),
        fields.get("warc-payload-digest", ""),
        hashlib.sha256(member).hexdigest(),
    )


def _statement(one: Citation) -> str:
    """For people: `Ada Yamada, birth date: 1952-07-21`."""
    return f"{one.label or one.thing}, {words(one.property)}: {one.value.text}" if one.value else ""


def _as_text(citations: Sequence[Citation]) -> str:
    return "".join(
        ". ".join(
            filter(
                None,
                (
                    _statement(one),
                    f"“{one.title}”" if one.title else "",
                    f"<{one.page}>, read {one.visited or 'at an unknown time'}",
                    _evidence(one),
                    f"Archived copy: {one.archived}" if one.archived else "",
                ),
            )
        )
        + ".\n"
        for one in citations
    )


def _evidence(one: Citation) -> str:
    if one.record is None:
        return ""
    found = one.record
    place = f"{found.file}@{found.offset}+{found.length}"
    return f"WARC record {found.id} ({place}), payload {found.payload_digest}, record sha256:{found.sha256}"


def _as_json(citations: Sequence[Citation]) -> str:
    return msgspec.json.format(msgspec.json.encode(citations), indent=2).decode() + "\n"


def _as_bibtex(citations: Sequence[Citation]) -> str:
    return "\n".join(_bibtex_entry(key, found) for key, found in _by_page(citations))


def _bibtex_entry(key: str, found: list[Citation]) -> str:
    one = found[0]
    fields = {
        "title": one.title or one.page,
        "howpublished": urlsplit(one.page).hostname or "",
        "year": one.visited[:4],
        "urldate": one.visited[:10],
        "note": _note(found),
    }
    lines = [f"  {name} = {{{_plain(value).translate(_TEX)}}},\n" for name, value in fields.items() if value]
    url = _plain(one.page).replace("{", "%7B").replace("}", "%7D")
    return f"@misc{{{key},\n{''.join(lines)}  url = {{{url}}}\n}}\n"


def _as_csl(citations: Sequence[Citation]) -> str:
    """The JSON of the Citation Style Language, as Zotero and pandoc read it."""
    entries = []
    for key, found in _by_page(citations):
        one = found[0]
        entry: dict[str, object] = {"id": key, "type": "webpage", "title": one.title or one.page, "URL": one.page}
        if one.visited:
            entry["accessed"] = {"date-parts": [[int(part) for part in one.visited[:10].split("-")]]}
        if one.record:
            entry["archive_location"] = f"{one.record.file}@{one.record.offset}+{one.record.length}"
        entries.append({**entry, "container-title": urlsplit(one.page).hostname or "", "note": _note(found)})
    return msgspec.json.format(msgspec.json.encode(entries), indent=2).decode() + "\n"


def _note(found: Iterable[Citation]) -> str:
    several = list(found)
    return ". ".join([*filter(None, (_statement(one) for one in several)), _evidence(several[0])])


def _by_page(citations: Sequence[Citation]) -> list[tuple[str, list[Citation]]]:
    """One entry for each page, under a key that stays the same."""
    pages: dict[str, list[Citation]] = {}
    for one in citations:
        pages.setdefault(one.page, []).append(one)
    return [(_key(page, found[0].visited), found) for page, found in pages.items()]


def _key(page: str, visited: str) -> str:
    site = re.sub(r"[^a-z0-9]+", "-", (urlsplit(page).hostname or "page").lower()).strip("-")
    return f"{site}-{visited[:10] or day(0)}-{hashlib.sha256(page.encode()).hexdigest()[:8]}"


def _plain(text: str) -> str:
    return " ".join(text.split())


FORMATS: dict[str, Callable[[Sequence[Citation]], str]] = {
    "text": _as_text,
    "json": _as_json,
    "bibtex": _as_bibtex,
    "csl": _as_csl,
}
