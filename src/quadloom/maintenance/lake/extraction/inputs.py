"""What an extraction reads: files, folders and addresses as sources, each a part of its own."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from quadloom.documents.archives.files import is_archive
from quadloom.errors import UsageError
from quadloom.maintenance.importing.imported_pages import suffix_of
from quadloom.maintenance.lake.extraction.messages import Source
from quadloom.maintenance.lake.extraction.remote import copy_ranges, download, is_remote
from quadloom.maintenance.lake.extraction.selection import RecordSelection, is_index, selected
from quadloom.settings import Settings

COMMON_CRAWL = "https://data.commoncrawl.org/"
_EVERYTHING = RecordSelection()
_PATHS = re.compile(r"\.paths(?:\.gz)?$")


def sources_of(
    names: Iterable[str],
    base: str = "",
    selection: RecordSelection = _EVERYTHING,
    archives: str = "",
) -> list[Source]:
    """The sources that these paths and addresses name, in their order. Of a folder, each archive is a source, and all
    other files together are one; `base` is the URL of that folder [default: its own path]. Of an index, each archive
    with the records of the `selection` is one; `archives`: folder or address before the names of its archives [default:
    the folder of the index if they are there, else Common Crawl]. Raises `UsageError` for a path that does not exist,
    or a file that is no archive, no RDF and no index."""
    found: list[Source] = []
    for name in names:
        path = Path(name)
        if is_remote(name):
            if not is_archive(Path(name)):
                raise UsageError(f"{name} is not the address of an archive", hint="download it, and give its path")
            found.append(Source(name, "archive"))
        elif _PATHS.search(name) and path.is_file():
            found += [Source((archives or COMMON_CRAWL) + entry, "archive") for entry in _lines(path)]
        elif is_index(name) and path.exists():
            found += _beside(path, selected(path, selection, archives), archives)
        elif path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file())
            packed = [file for file in files if is_archive(file)]
            found += [Source(str(file.absolute()), "archive") for file in packed]
            if len(packed) < len(files):
                found.append(Source(str(path.absolute()), "folder", base or f"{path.absolute().as_uri()}/"))
        elif not path.is_file():
            raise UsageError(f"there is no file or folder {name}", hint="give WARC, ARC, WACZ or RDF files, or folders")
        elif suffix_of(path)[0] == "warc":
            found.append(Source(str(path.absolute()), "archive"))
        else:
            found.append(Source(str(path.absolute()), "rdf", base))
    if not found:
        raise UsageError("there is nothing to read", hint="for example: `quadloom bulk crawl.warc.gz --to tables`")
    return found


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [line.strip() for line in text.splitlines() if line.strip()]


def _beside(index: Path, sources: list[Source], archives: str) -> list[Source]:
    """Archives that lie in the folder of their index are read there."""
    if archives:
        return sources
    here = index.absolute().parent
    is_here = [(here / source.name).is_file() for source in sources]
    prefix = f"{here}/" if all(is_here) else COMMON_CRAWL
    return [replace(source, name=prefix + source.name) for source in sources]


@contextmanager
def local_copy(source: Source, settings: Settings, folder: Path) -> Iterator[Path]:
    """The source as a file or folder of this machine, with nothing but its ranges if it has some."""
    if not source.ranges and not is_remote(source.name):
        yield Path(source.name)
        return
    copy = folder / source.name.rpartition("/")[2]
    if is_remote(source.name):
        download(source.name, copy, source.ranges, settings)
    else:
        copy_ranges(Path(source.name), copy, source.ranges)
    yield copy
    copy.unlink()
