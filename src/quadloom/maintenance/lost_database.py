"""A warehouse whose database is lost: its archive has every page, and an import reads it into a new warehouse."""

from __future__ import annotations

import shlex
from pathlib import Path

from quadloom.errors import StoreError
from quadloom.settings import Settings
from quadloom.stores.backends import exists
from quadloom.stores.sqlite.state import DATABASE
from quadloom.stores.stores import places_of


def way_out(path: Path, settings: Settings) -> str:
    """What to do, as a hint. The queue and the schedule of the pages are in the database alone."""
    shared = settings.stores.archive.removeprefix("warc://") if settings.stores.archive.startswith("warc://") else ""
    folders = [Path(shared)] if shared else [path / "archive", *map(Path, settings.stores.directories)]
    sources = [f"{shlex.quote(str(folder))}/*.warc.gz" for folder in folders if any(folder.glob("*.warc.gz*"))]
    backup = f"restore {DATABASE} from a backup"
    return f"{backup}, or read the archive: `quadloom -w NEW import {' '.join(sources)}`" if sources else backup


def refuse_lost_database(path: Path, settings: Settings) -> None:
    """Raise `StoreError` if there is no database beside the files that it described: a new, empty one would make them
    look as if no page had them."""
    if exists(path, settings):
        return
    folders = ((path / "archive", "*.warc.gz*"), (places_of(path, settings).quads, "*.sst"))
    left = [folder for folder, file in folders if any(folder.glob(file))]
    if left:
        raise lost_database(
            f"the database {path / DATABASE} is missing, but there are files in {left[0]}", path, settings
        )


def lost_database(message: str, path: Path, settings: Settings) -> StoreError:
    return StoreError(message, hint=way_out(path, settings))
