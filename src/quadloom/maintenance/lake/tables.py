"""The four tables: their columns, and rows from what the stores hold.

`page` is the fingerprint of a page's URL in all of them, so tables are joined by it; a link's `target` is one, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from xxhash import xxh3_64_intdigest

from quadloom.errors import UsageError
from quadloom.model.finding import Finding
from quadloom.model.outcome import PageRow
from quadloom.model.url import site_of
from quadloom.stores.shards import shard_of

Row = tuple[object, ...]
_S, _I, _T = "string", "int64", "timestamp"
COLUMNS: dict[str, dict[str, str]] = {
    "quads": {
        "subject": _S, "predicate": _S, "object": _S, "object_kind": _S, "language": _S, "datatype": _S, "graph": _S,
        "page": _I,
    },
    "pages": {
        "page": _I, "url": _S, "final_url": _S, "host": _S, "site": _S, "shard": _I, "status": _I, "outcome": _S,
        "kind": _S, "media_type": _S, "language": _S, "title": _S, "fetched_at": _T, "first_seen": _T, "changed_at": _T,
        "visits": _I, "changes": _I, "failures": _I, "depth": _I, "found_on": _I, "body_bytes": _I, "quads": _I,
        "links": _I, "reason": _S, "archive_file": _S, "archive_offset": _I, "archive_length": _I, "content": _I,
        "version": _I,
    },
    "links": {"page": _I, "target": _I},
    "findings": {
        "page": _I, "code": _S, "severity": _S, "phase": _S, "message": _S, "syntax": _S, "path": _S, "type": _S,
        "line": _I, "since": _T,
    },
}  # fmt: skip
EXTRACTED: dict[str, dict[str, str]] = {
    **COLUMNS,
    "pages": {**COLUMNS["pages"], "syntaxes": "strings"},
    "links": {**COLUMNS["links"], "url": _S, "kind": _S, "rel": _S, "anchor": _S},
    "texts": {"page": _I, "text": _S},
    "failures": {"source": _S, "position": _I, "url": _S, "code": _S, "message": _S},
}
"""The tables of archives (`quadloom.maintenance.lake.extraction`): what a link says, texts, what could not be read."""
SORTED_BY = {"quads": ("predicate", "subject"), "pages": ("host", "url"), "links": ("page",), "findings": ("code",)}
"""The order of rows within a row group: equal values side by side pack well, and readers skip groups by them."""

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_SIGNS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_SIGNED = 1 << 63


def arrow() -> Any:
    """The package pyarrow with its Parquet part, or a `UsageError` that says how to get it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise UsageError("a lake needs the package pyarrow", hint="pip install 'quadloom[lake]'") from None
    return pyarrow


def schema(table: str) -> Any:
    return schema_of(COLUMNS.get(table) or EXTRACTED[table])


def schema_of(columns: Mapping[str, str]) -> Any:
    """The Arrow schema of columns, by name and kind."""
    pyarrow = arrow()
    kinds = {
        _S: pyarrow.string(),
        _I: pyarrow.int64(),
        _T: pyarrow.timestamp("us"),
        "strings": pyarrow.list_(pyarrow.string()),
    }
    return pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])


def content_of(row: PageRow) -> int:
    """Differs if the page's statements or links may differ."""
    return signed_hash(b"\0".join((row.indexed_quads, row.body_digest, row.graph.encode())))


def version_of(row: PageRow) -> int:
    """Differs if anything in the lake about the page may differ."""
    told = (row.fetched_at, row.status, row.outcome, row.visits, row.failures, len(row.findings), content_of(row))
    return signed_hash(repr(told).encode())


def page_row(row: PageRow) -> Row:
    ref = row.archive
    return (
        row.fingerprint,
        row.href,
        row.graph,
        row.host,
        site_of(row.host),
        shard_of(row.host),
        row.status,
        str(row.outcome),
        row.kind,
        row.media_type,
        row.language,
        row.title,
        _moment(row.fetched_at),
        _moment(row.first_seen),
        _moment(row.changed_at),
        row.visits,
        row.changes,
        row.failures,
        row.depth,
        row.via,
        row.body_bytes,
        row.quads,
        row.links,
        row.reason,
        ref.file if ref else None,
        ref.offset if ref else None,
        ref.length if ref else None,
        content_of(row),
        version_of(row),
    )


def finding_rows(page: int, findings: Iterable[Finding]) -> Iterator[Row]:
    for found in findings:
        yield (
            page,
            found.code,
            found.severity,
            found.phase,
            found.message,
            found.syntax,
            found.path,
            found.type,
            found.line,
            _moment(found.since),
        )


def quad_rows(page: int, graph: str, nquads: bytes) -> Iterator[Row]:
    """Rows of the N-Quads of one graph, as a store returns them. Splitting takes a tenth of the time of a parser."""
    tail = len(f" <{graph}> .")
    for line in nquads.decode().split("\n"):
        if line:
            subject, predicate, object_ = line[:-tail].split(" ", 2)
            name = subject[1:-1] if subject[0] == "<" else subject
            yield (name, predicate[1:-1], *_object(object_), graph, page)


def _object(text: str) -> tuple[str, str, str | None, str | None]:
    """(value, kind, language, datatype)"""
    if text[0] == '"':
        end = text.rindex('"')
        value = text[1:end]
        if "\\" in value:
            value = _ESCAPE.sub(_unescaped, value)
        rest = text[end + 1 :]
        if rest.startswith("@"):
            return value, "literal", rest[1:], None
        return value, "literal", None, rest[3:-1] if rest else "http://www.w3.org/2001/XMLSchema#string"
    if text[0] == "<" and text[1] != "<":
        return text[1:-1], "iri", None, None
    return text, "blank" if text.startswith("_:") else "other", None, None


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _SIGNS.get(found[3], found[3])


def _moment(at: float) -> datetime | None:
    """In UTC, without a zone: DuckDB would need another package to hand out times with one."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None) if at else None


def signed_hash(data: bytes) -> int:
    """A hash that fits a signed column."""
    return xxh3_64_intdigest(data) - _SIGNED


def table_of(name: str, rows: Sequence[Row]) -> Any:
    """An Arrow table of these rows, in their order within a row group."""
    pyarrow, wanted = arrow(), schema(name)
    columns = zip(*rows, strict=True) if rows else ((),) * len(wanted)
    arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, wanted, strict=True)]
    table = pyarrow.Table.from_arrays(arrays, schema=wanted)
    return table.sort_by([(column, "ascending") for column in SORTED_BY[name]])
