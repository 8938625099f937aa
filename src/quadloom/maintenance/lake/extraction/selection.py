"""Which records of which archives, by an index: CDXJ, or the columnar index of Common Crawl as Parquet files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from quadloom.errors import UsageError
from quadloom.maintenance.lake.extraction.messages import ByteRange, Source
from quadloom.maintenance.lake.tables import arrow
from quadloom.model.url import host_of

_INDEX = re.compile(r"\.(?:cdxj?(?:\.gz)?|parquet)$", re.IGNORECASE)
_COLUMNS = {
    "host": "url_host_name", "mime": "content_mime_detected", "languages": "content_languages",
    "status": "fetch_status", "filename": "warc_filename", "offset": "warc_record_offset",
    "length": "warc_record_length",
}  # fmt: skip


class RecordSelection(msgspec.Struct, frozen=True):
    """Records of pages that fit everything that is given; () = any. A domain includes the hosts below it; a record of
    several languages fits if it has one of these (codes as in the index, such as `eng`)."""

    domains: tuple[str, ...] = ()
    mimes: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    status: int = 200

    def takes(self, entry: IndexEntry) -> bool:
        host = entry.host or host_of(entry.url)
        mime = entry.mime_detected or entry.mime
        return (
            (not self.domains or any(host == name or host.endswith(f".{name}") for name in self.domains))
            and (not self.mimes or mime in self.mimes)
            and (not self.languages or not set(self.languages).isdisjoint((entry.languages or "").split(",")))
            and entry.status == self.status
        )


class IndexEntry(msgspec.Struct, frozen=True, rename={"mime_detected": "mime-detected"}):
    """One record. Both kinds of index write numbers as texts or as numbers."""

    filename: str
    offset: int
    length: int
    status: int = 0
    url: str = ""
    host: str = ""
    mime: str = ""
    mime_detected: str = ""
    languages: str | None = ""


def is_index(name: str) -> bool:
    return _INDEX.search(name) is not None


def selected(index: Path, selection: RecordSelection, prefix: str) -> list[Source]:
    """The archives of an index, each with the records that are selected. `prefix`: folder or address before the names
    of archives. Raises `UsageError` if the index cannot be read, or nothing is selected."""
    ranges: dict[str, list[ByteRange]] = {}
    entries = _of_parquet(index) if index.suffix.lower() == ".parquet" else _of_cdxj(index)
    for entry in entries:
        if selection.takes(entry) and entry.length > 0:
            ranges.setdefault(entry.filename, []).append(ByteRange(entry.offset, entry.length))
    if not ranges:
        raise UsageError(f"{index.name} has no record that fits", hint="leave out --domain, --mime or --language")
    strange = next((name for name in ranges if name.startswith("/") or ".." in name.split("/")), None)
    if strange is not None:
        raise UsageError(f"{index.name} names a file outside of its archives: {strange}", hint="repair the index")
    return [Source(prefix + name, "archive", ranges=tuple(sorted(ranges[name]))) for name in sorted(ranges)]


def _of_cdxj(path: Path) -> Iterator[IndexEntry]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("!") or not line.strip():
                continue
            try:
                yield msgspec.convert(msgspec.json.decode(line[line.index("{") :]), IndexEntry, strict=False)
            except (ValueError, msgspec.DecodeError) as error:
                if '"status"' in line and '"offset"' in line and '"filename"' in line and "-" in line:
                    continue  # revisits have "-" for what they do not know
                raise UsageError(f"{path.name}, line {number}: {error}", hint="is it a CDXJ file?") from None


def _of_parquet(path: Path) -> Iterable[IndexEntry]:
    arrow()
    from pyarrow import dataset

    for batch in dataset.dataset(str(path), format="parquet").to_batches(columns=list(_COLUMNS.values())):
        columns = [batch.column(name).to_pylist() for name in _COLUMNS.values()]
        for values in zip(*columns, strict=True):
            entry = dict(zip(_COLUMNS, values, strict=True))
            yield msgspec.convert({name: value for name, value in entry.items() if value is not None}, IndexEntry)
