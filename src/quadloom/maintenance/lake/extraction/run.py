"""Extract the data of archives: one task for each source, by local processes or on Ray.

What is in the folder afterwards is a lake with a part for each source (`quadloom.maintenance.lake.place`), and

    extraction.json   the sources and options, to continue an interrupted run
    manifest.json     what was counted, by part and in all, with the digests of all files; written at the end
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from quadloom.errors import UsageError
from quadloom.maintenance.lake.extraction.messages import Options, PartSetup, Source
from quadloom.maintenance.lake.extraction.part import UNFINISHED
from quadloom.maintenance.lake.place import (
    DirectoryLake,
    LakeLayout,
    LakePlace,
    PartManifest,
    place_of,
    read_layout,
    read_manifest,
    write_layout,
)
from quadloom.maintenance.lake.tables import EXTRACTED, arrow
from quadloom.model.wire import decode, encode
from quadloom.process.bulk_tasks import BulkJob, Runner
from quadloom.settings import Settings

_JOB = "extraction.json"
MANIFEST = "manifest.json"
_WORKER = "quadloom.maintenance.lake.extraction.part:worker"


class _Begun(msgspec.Struct, frozen=True):
    sources: tuple[Source, ...]
    options: Options


class ExtractionReport(msgspec.Struct, frozen=True):
    """What was counted in all parts. `not_taken`: records without a page, by their kind. `parts` have the digests."""

    counts: dict[str, int]
    not_taken: dict[str, int]
    parts: tuple[PartManifest, ...]

    @property
    def failures(self) -> int:
        return self.counts.get("rows of failures", 0)

    @property
    def not_fetched(self) -> list[str]:
        """Why sources could not be fetched; a resumed run tries them again."""
        return [part.error for part in self.parts if part.error]


def extract(
    sources: Sequence[Source],
    target: str,
    options: Options,
    settings: Settings,
    runner: Runner,
    *,
    resume: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> ExtractionReport:
    """Write the tables of these sources into a folder or bucket. `resume`: continue an interrupted run; parts that are
    complete stay. `progress` gets the parts that are done, and how many there are. Raises `UsageError` if there is
    something else at the target."""
    if options.parquet:
        arrow()
    path = Path.cwd()
    place = place_of(path, settings, target)
    begun = _Begun(tuple(sources), options)
    _begin(place, begun, resume=resume)
    done = {number: read_manifest(place, number) for number in range(len(sources))} if resume else {}
    done = {number: manifest for number, manifest in done.items() if manifest.generation}
    setup = encode(PartSetup(target, str(path), begun.sources, options, settings))
    left = [f"{number:05d}" for number in range(len(sources)) if number not in done]
    progress(len(done), len(sources))
    for result in runner(BulkJob("bulk", _WORKER, setup), left):
        done[int(result.task)] = decode(result.data, PartManifest)
        progress(len(done), len(sources))
    parts = tuple(done[number] for number in range(len(sources)))
    counts: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
        others.update(part.not_taken)
    report = ExtractionReport(dict(sorted(counts.items())), dict(sorted(others.items())), parts)
    if isinstance(place, DirectoryLake):
        shutil.rmtree(place.folder / UNFINISHED, ignore_errors=True)
    place.write(MANIFEST, msgspec.json.format(msgspec.json.encode(report)))
    return report


def _begin(place: LakePlace, begun: _Begun, *, resume: bool) -> None:
    data = place.read(_JOB)
    if data is None:
        if read_layout(place) is not None or (isinstance(place, DirectoryLake) and _has_files(place.folder)):
            raise UsageError("there is something else in that folder", hint="give a new or empty folder: --to DIR")
        place.write(_JOB, msgspec.json.format(msgspec.json.encode(begun)))
        write_layout(place, LakeLayout(len(begun.sources), tables=tuple(EXTRACTED)))
    elif not resume:
        raise UsageError(
            "that folder has the tables of an earlier run", hint="to continue it: --resume; else give another folder"
        )
    elif msgspec.json.decode(data, type=_Begun) != begun:
        raise UsageError(
            "the interrupted run had other inputs or options", hint="give the same ones, or another folder"
        )
    elif read_layout(place) is None:
        write_layout(place, LakeLayout(len(begun.sources), tables=tuple(EXTRACTED)))


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
