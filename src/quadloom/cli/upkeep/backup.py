"""`quadloom backup` and `restore`: copies of a warehouse, and a warehouse from a copy."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from quadloom.cli.progress import Progress
from quadloom.cli.session import session
from quadloom.cli.words import counted, size
from quadloom.errors import StoreError, UsageError
from quadloom.maintenance.recovery.backup import back_up, backups, restore_files
from quadloom.maintenance.recovery.places import open_place
from quadloom.model.timestamps import iso_time
from quadloom.stores.backends import exists
from quadloom.warehouse import Warehouse


def backup(
    place: str,
    /,
    *,
    keep: int = 0,
    list_: Annotated[bool, Parameter(name="--list", negative="")] = False,
) -> None:
    """Copy the warehouse to a directory or an S3 bucket, also while a crawl writes to it.

    Each backup holds the database as it was at one moment, and the archive. What an earlier backup to the same place
    has copied is not copied again. Quads, text and links are not copied: `quadloom restore` makes them from the
    archive. Every new piece is read back and compared. If backup is killed, the next one uses what was copied.

    Parameters
    ----------
    place
        a directory on another disk, or s3://bucket/prefix
    keep
        remove all but the newest backups: so many stay; 0 = all stay
    list_
        only show the backups in this place
    """
    s = session()
    target = open_place(place, s.settings)
    if list_:
        s.records(
            backups(target),
            ("made at", "pages", "size"),
            lambda one: (iso_time(one.made_at), one.pages, size(one.length)),
            as_json=lambda one: {"at": iso_time(one.made_at), "pages": one.pages, "bytes": one.length},
        )
        return
    if keep < 0:
        raise UsageError("--keep is a number of backups, 1 or more", hint="0 keeps all of them")
    if not exists(s.warehouse, s.settings):
        raise StoreError(f"there is no warehouse at {s.warehouse}", hint="name one with -w")
    with Progress(s, "backup", unit="bytes") as progress:
        done = back_up(s.warehouse, s.settings, target, keep=keep, progress=progress.add)
    removed = f"; {counted(done.removed, 'older backup')} removed" if done.removed else ""
    s.report(
        done,
        f"backup {done.name}: {counted(done.pages, 'page')}, {size(done.bytes)}, of which {size(done.written)} were new"
        + removed,
    )


def restore(place: str, /, *, at: str = "") -> int:
    """Make a warehouse from a backup, in a new folder (-w), and rebuild its quads, text and links.

    Every piece is compared with its SHA-256. Nothing is written over: the folder must be empty. If restore is killed,
    remove the folder and run it again; if that happens while it rebuilds the indexes, `quadloom rebuild` goes on.

    Parameters
    ----------
    place
        the directory or bucket that `quadloom backup` wrote to
    at
        the time of the backup, or its beginning, such as 2026-11-19; the newest by default
    """
    s = session()
    with Progress(s, "restore", unit="bytes") as progress:
        manifest = restore_files(open_place(place, s.settings), s.warehouse, at=at, progress=progress.add)
    with (
        Warehouse.repair(s.warehouse, settings=s.settings) as warehouse,
        Progress(s, "rebuild", total=manifest.pages) as progress,
    ):
        done = warehouse.maintenance.rebuild(links=False, progress=progress.show)
    found = {"at": iso_time(manifest.made_at), "pages": manifest.pages, "unreadable": done.unreadable_records}
    s.report(found, f"{counted(manifest.pages, 'page')} restored to {s.warehouse}, as of {iso_time(manifest.made_at)}")
    if done.unreadable_records:
        s.say(f"{done.unreadable_records} records of the archive cannot be read; their pages will be visited again")
    return 1 if done.unreadable_records else 0
