"""Which files are archives of the web, and the WARC files within a WACZ."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from quadloom.errors import UsageError

_ARCHIVE = re.compile(r"\.(?:(?:warc|wet|wat)(?:\.(?:gz|zst|lz4))?|arc(?:\.gz)?|wacz)$", re.IGNORECASE)
_MOST_RATIO = 1100  # no deflated member unpacks to more than 1032 times its size


def is_archive(path: Path) -> bool:
    """Whether the name is that of a WARC, ARC or WACZ file; WET and WAT files are WARC files."""
    return _ARCHIVE.search(path.name) is not None


@contextmanager
def warc_files(path: Path) -> Iterator[Iterator[Path]]:
    """The file itself, or the WARC files in a WACZ, each unpacked until the next one is asked for. Raises `UsageError`
    if it is no WACZ."""
    if path.suffix.lower() != ".wacz":
        yield iter((path,))
        return
    try:
        with zipfile.ZipFile(path) as opened, tempfile.TemporaryDirectory(prefix="quadloom-wacz-") as folder:
            yield _members(opened, Path(folder))
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise UsageError(f"{path.name} is not a WACZ file: {error}", hint="fetch the file again") from None


def _members(opened: zipfile.ZipFile, folder: Path) -> Iterator[Path]:
    for member in sorted(opened.infolist(), key=lambda one: one.filename):
        name = PurePosixPath(member.filename)
        if member.is_dir() or name.parts[:1] != ("archive",) or not is_archive(Path(name.name)):
            continue
        if member.file_size > _MOST_RATIO * member.compress_size:
            raise UsageError(f"{name} has an impossible size", hint="fetch the file again")
        target = folder / name.name
        with opened.open(member) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        yield target
        target.unlink()
