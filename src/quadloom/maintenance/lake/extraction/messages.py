"""What an extraction is asked for, and what its processes say to each other."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from quadloom.maintenance.lake.tables import Row
from quadloom.settings import Settings

TextKind = Literal["none", "main", "markdown"]


class ByteRange(NamedTuple):
    """A record in a file."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


class Source(msgspec.Struct, frozen=True):
    """An input that becomes one part. `name`: as it was given. `ranges`: of an archive, only these records, in the
    order of the file; () = all. `base`: URL of a folder's files."""

    name: str
    kind: Literal["archive", "folder", "rdf"]
    base: str = ""
    ranges: tuple[ByteRange, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """What is written, the same for all parts."""

    parquet: bool = True
    nquads: bool = False
    text: TextKind = "none"
    skip_duplicates: bool = False


class PartSetup(msgspec.Struct, frozen=True):
    """What a process needs to do tasks: the number of a task is the place of its source."""

    target: str
    path: str
    sources: tuple[Source, ...]
    options: Options
    settings: Settings


class ChildSetup(msgspec.Struct, frozen=True):
    """`path`: the source on this machine. `seen`: hashes of bodies of which others are duplicates."""

    source: Source
    path: str
    options: Options
    settings: Settings
    seen: frozenset[int] = frozenset()


class BatchRequest(msgspec.Struct, frozen=True):
    """The next `pages` pages after the one at `after`, -1 = from the beginning. `skip`: the first of them has ended a
    process, and why: it is a failure, and is not transformed."""

    after: int
    pages: int
    skip: str = ""


class BatchAnswer(msgspec.Struct, frozen=True):
    """`rows`: by table. `last`: the position of the last page. `not_taken`: records without a page, by their kind."""

    rows: dict[str, list[Row]]
    nquads: bytes
    last: int
    is_last: bool
    not_taken: dict[str, int]
    counts: dict[str, int]
    seen: frozenset[int] = frozenset()
