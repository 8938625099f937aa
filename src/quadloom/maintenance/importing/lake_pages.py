"""The folder of a lake as pages: one for each row of `pages`, with its quads as N-Triples for its body."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quadloom.errors import UsageError
from quadloom.maintenance.importing.imported_pages import ImportedPage
from quadloom.maintenance.lake.place import DirectoryLake, read_layout, read_manifest
from quadloom.maintenance.lake.tables import arrow
from quadloom.model.page import Page
from quadloom.model.url import resolve

_QUADS = ["page", "subject", "predicate", "object", "object_kind", "language", "datatype"]
_PAGES = ["page", "url", "final_url", "status", "kind", "title", "language", "fetched_at", "outcome"]
_STRING = "http://www.w3.org/2001/XMLSchema#string"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_READ = frozenset(("new", "changed", "unchanged"))


def is_lake(path: Path) -> bool:
    return (path / "lake.json").is_file()


def read_lake(folder: Path) -> Iterator[ImportedPage]:
    """Pages part by part, those with a web address. The quads of one part are in memory."""
    place = DirectoryLake(folder)
    layout = read_layout(place)
    if layout is None:
        raise UsageError(f"{folder} is not the folder of a lake", hint="give one that `quadloom bulk` has written")
    for part in range(layout.parts):
        files = read_manifest(place, part).files
        quads = _table(folder, [file.name for file in files.get("quads", ())], _QUADS)
        lines: dict[int, list[str]] = defaultdict(list)
        for batch in quads.to_batches(max_chunksize=10_000) if quads is not None else ():
            for page, *terms in zip(*(batch.column(name).to_pylist() for name in _QUADS), strict=True):
                lines[page].append(_line(*terms))
        pages = _table(folder, [file.name for file in files.get("pages", ())], _PAGES)
        for row in pages.to_pylist() if pages is not None else ():
            if row["outcome"] in _READ and resolve(row["final_url"]) is not None:
                yield _page(row, lines.pop(row["page"], []))


def _table(folder: Path, names: list[str], columns: list[str]) -> Any:
    """None = there is no row."""
    pyarrow = arrow()
    if not names:
        return None
    tables = [pyarrow.parquet.read_table(folder / name, columns=columns, partitioning=None) for name in names]
    return pyarrow.concat_tables(tables)


def _page(row: dict[str, Any], lines: list[str]) -> ImportedPage:
    at: datetime | None = row["fetched_at"]
    page = Page(
        row["url"],
        row["final_url"],
        row["status"] or 200,
        (("content-type", "application/n-triples"),),
        "".join(sorted(lines)).encode(),
        at.replace(tzinfo=UTC).timestamp() if at else 0.0,
        0.0,
    )
    return ImportedPage(page, kind=row["kind"], title=row["title"] or "", language=row["language"] or "")


def _line(subject: str, predicate: str, value: str, kind: str, language: str | None, datatype: str | None) -> str:
    if kind == "iri":
        value = f"<{value}>"
    elif kind == "literal":
        suffix = f"@{language}" if language else "" if datatype in (None, _STRING) else f"^^<{datatype}>"
        value = f'"{value.translate(_ESCAPES)}"{suffix}'
    subject = subject if subject.startswith(("_:", "<<")) else f"<{subject}>"
    return f"{subject} <{predicate}> {value} .\n"
