"""A warehouse whose database is lost: its archive has every page, and `quadloom recover` reads it again."""

from __future__ import annotations

import shlex
from pathlib import Path

from quadloom.errors import StoreError
from quadloom.settings import Settings
from quadloom.stores.backends import DATABASE, exists
from quadloom.stores.opened import places_of


def way_out(path: Path, settings: Settings) -> str:
    """What to do, as a hint."""
    backup = f"restore {DATABASE} from a backup"
    if not settings.stores.archive.startswith("warc:") or any(_archived(path, settings)):
        return f"{backup}, or recover it from the archive: `quadloom -w {shlex.quote(str(path))} recover`"
    return backup


def refuse_lost_database(path: Path, settings: Settings) -> None:
    """Raise `StoreError` if there is no database beside the files that it described: a new, empty one would make them
    look as if no page had them."""
    if exists(path, settings):
        return
    left = [*_archived(path, settings), *_with(places_of(path, settings).quads, "*.sst")]
    if left:
        raise lost_database(
            f"the database {path / DATABASE} is missing, but there are files in {left[0]}", path, settings
        )


def lost_database(message: str, path: Path, settings: Settings) -> StoreError:
    return StoreError(message, hint=way_out(path, settings))


def _archived(path: Path, settings: Settings) -> list[Path]:
    """The folders that have files of the archive."""
    shared = settings.stores.archive.removeprefix("warc:").removeprefix("//")
    folders = [Path(shared)] if shared else [path / "archive", *map(Path, settings.stores.directories)]
    return [folder for place in folders for folder in _with(place, "**/*.warc.gz*" if shared else "*.warc.gz*")]


def _with(folder: Path, files: str) -> list[Path]:
    return [folder] if any(folder.glob(files)) else []
