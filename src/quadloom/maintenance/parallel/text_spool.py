"""Text documents on their way from the tasks of a rebuild to the indexes of their shards.

An index has one writer, and a file of the archive has pages of many shards. So the tasks of files write their documents
here, apart by group of shards; then each group is the task of one process, which fills its indexes from nothing.

    rebuild.spool/<task>/07    documents of group 7, in the directory that all machines mount
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from quadloom.maintenance.batches import read_records, write_record
from quadloom.model.text import TextDocument
from quadloom.model.url import host_of
from quadloom.process.durable import make_folder, sync, sync_tree
from quadloom.stores.backends import fresh_text_shards
from quadloom.stores.shards import SHARDS, shard_of

GROUPS = 16  # of shards: so many processes can fill indexes at once
_FOLDER = "rebuild.spool"
_COMMIT = 5000  # documents in memory; a commit costs some milliseconds for each shard


class TextSpool:
    """A `TextWriter` for one task. What it has written counts when it is closed without an error (`done`)."""

    def __init__(self, directory: Path, task: str) -> None:
        self._folder = directory / _FOLDER / quote(task, safe="")
        self._part = self._folder.with_name(f"{self._folder.name}.{os.getpid()}.part")
        shutil.rmtree(self._part, ignore_errors=True)
        make_folder(self._part)
        self._files: dict[int, BinaryIO] = {}

    def put(self, documents: Sequence[TextDocument]) -> None:
        for document in documents:
            group = shard_of(host_of(document.id)) * GROUPS // SHARDS
            if group not in self._files:
                self._files[group] = (self._part / f"{group:02d}").open("wb")
            write_record(self._files[group], document)

    def remove(self, ids: Sequence[str]) -> None:
        """The indexes begin empty."""

    def commit(self) -> None:
        """All documents count together, when the task is done."""

    def done(self) -> None:
        """The task is complete; a second try of it replaces what the first one left."""
        self._close_files()
        sync_tree(self._part)  # a resumed rebuild trusts what it finds here
        shutil.rmtree(self._folder, ignore_errors=True)
        self._part.replace(self._folder)
        sync(self._folder.parent)

    def close(self) -> None:
        self._close_files()
        shutil.rmtree(self._part, ignore_errors=True)

    def _close_files(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}


def fill_indexes(directory: Path, group: int) -> int:
    """Fill the indexes of a group of shards from nothing and show them to readers. Returns the number of documents."""
    count = 0
    with closing(fresh_text_shards(directory)) as index:
        for document in _documents(directory, group):
            index.put([document])
            count += 1
            if count % _COMMIT == 0:
                index.commit()
        index.commit()
        index.publish(range(group * SHARDS // GROUPS, (group + 1) * SHARDS // GROUPS))
    return count


def discard_spool(directory: Path) -> None:
    shutil.rmtree(directory / _FOLDER, ignore_errors=True)


def _documents(directory: Path, group: int) -> Iterator[TextDocument]:
    for path in sorted((directory / _FOLDER).glob(f"*/{group:02d}")):
        if not path.parent.name.endswith(".part"):
            with path.open("rb") as file:
                yield from read_records(file, TextDocument)
