"""What an extraction reads: files, folders and addresses as sources, each a part of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from quadloom.documents.archives.files import is_archive
from quadloom.errors import UsageError
from quadloom.maintenance.importing.imported_pages import suffix_of
from quadloom.maintenance.lake.extraction.messages import Source
from quadloom.settings import Settings


def sources_of(names: Iterable[str], base: str = "") -> list[Source]:
    """The sources that these paths name, in their order. Of a folder, each archive is a source, and all other files
    together are one; `base` is the URL of that folder [default: its own path]. Raises `UsageError` for a path that does
    not exist, or a file that is no archive and no RDF."""
    found: list[Source] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file())
            archives = [file for file in files if is_archive(file)]
            found += [Source(str(file.absolute()), "archive") for file in archives]
            if len(archives) < len(files):
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


@contextmanager
def local_copy(source: Source, _settings: Settings, _folder: Path) -> Iterator[Path]:
    """The source as a file or folder of this machine."""
    yield Path(source.name)
