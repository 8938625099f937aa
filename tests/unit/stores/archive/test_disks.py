"""Several directories of one archive: a full or failing one is left out, named, and used again when it has room."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quadloom.errors import DiskFull, StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Page
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.archive.warc_record import encode
from quadloom.stores.protocols.archive import DiskState


class Disks:
    """Real directories whose writes and syncs fail as the test says, through the real calls of the system."""

    def __init__(self, folder: Path, count: int) -> None:
        self.paths = [folder / f"disk{number}" for number in range(count)]
        self.writing: dict[Path, int] = {}  # directory → error number
        self.syncing: dict[Path, int] = {}
        self._write, self._sync = os.pwrite, os.fsync

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self._refuse(descriptor, self.writing)
        return self._write(descriptor, data, offset)

    def fsync(self, descriptor: int) -> None:
        self._refuse(descriptor, self.syncing)
        self._sync(descriptor)

    @staticmethod
    def _refuse(descriptor: int, errors: dict[Path, int]) -> None:
        file = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        for directory, number in errors.items():
            if file.is_relative_to(directory) and file.suffix == ".open":
                raise OSError(number, os.strerror(number))

    def files(self, number: int) -> list[str]:
        return sorted(path.name for path in self.paths[number].glob("quadloom-*"))


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Disks]:
    def make(count: int) -> Disks:
        made = Disks(tmp_path, count)
        monkeypatch.setattr(os, "pwrite", made.pwrite)
        monkeypatch.setattr(os, "fsync", made.fsync)
        return made

    return make


class Written:
    """An archive, and every page that it has acknowledged."""

    def __init__(self, disks: Disks, file_bytes: int = 1 << 30) -> None:
        self.now = 1000.0
        self.archive = WarcArchive(disks.paths, file_bytes=file_bytes, clock=lambda: self.now)
        self.pages: dict[ArchiveRef, Page] = {}
        self.number = 0

    def put(self, count: int = 3) -> None:
        pages = [
            Page(f"http://a.example/{self.number + n}", "", 200, (), os.urandom(2000), 1.0, 0.1) for n in range(count)
        ]
        self.number += count
        refs = self.archive.put([encode(page) for page in pages])
        self.archive.sync()
        self.pages.update(zip(refs, pages, strict=True))

    def check(self) -> None:
        assert all(self.archive.get(ref) == page for ref, page in self.pages.items())

    def problems(self) -> list[str]:
        return [disk.problem for disk in self.archive.disks()]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS])
def test_what_a_directory_refuses_goes_to_the_next(disks: Callable[[int], Disks], number: int) -> None:
    made = disks(3)
    written = Written(made)
    written.put()
    made.writing[made.paths[0]] = number
    written.put()
    written.put()
    written.check()
    assert len(written.pages) == 9
    assert made.files(0) == ["quadloom-00000001.warc.gz"], "its file has ended"
    assert len(made.files(1)) == 1
    assert made.files(2) == []
    assert written.problems()[1:] == ["", ""]
    assert written.problems()[0]
    assert [ref.file for ref, _ in written.archive.scan()] == [ref.file for ref in written.pages]


def test_it_is_used_again_when_it_has_room(disks: Callable[[int], Disks]) -> None:
    made = disks(2)
    written = Written(made, file_bytes=4000)
    written.put(1)
    made.writing[made.paths[0]] = errno.ENOSPC
    for _ in range(6):
        written.put(2)
    assert len(made.files(0)) == 1
    assert written.problems() == ["no room left", ""]
    made.writing.clear()
    for _ in range(6):
        written.put(2)
    assert len(made.files(0)) > 1
    assert written.problems() == ["", ""]
    written.check()


def test_only_when_none_has_room_an_error_is_raised(disks: Callable[[int], Disks]) -> None:
    made = disks(3)
    written = Written(made)
    written.put()
    made.writing = dict.fromkeys(made.paths, errno.ENOSPC)
    for _ in range(3):
        with pytest.raises(DiskFull):
            written.put()
    assert sum(len(made.files(number)) for number in range(3)) == 1, "no empty files are left behind"
    made.writing.clear()
    written.put()
    written.check()
    written.archive.close()
    again = Written(made)
    assert [ref for ref, _ in again.archive.scan()] == list(written.pages)


def test_a_batch_that_fails_in_the_middle_of_a_directory_is_whole_elsewhere(disks: Callable[[int], Disks]) -> None:
    """The first file takes a part of the batch, the second disk refuses, the third takes the rest."""
    made = disks(3)
    written = Written(made, file_bytes=5000)
    made.writing[made.paths[1]] = errno.EIO
    written.put(8)
    written.check()
    assert {ref.file for ref in written.pages} == {ref.file for ref, _ in written.archive.scan()}
    assert made.files(1) == []


def test_a_failed_sync_takes_back_what_was_not_durable(disks: Callable[[int], Disks]) -> None:
    made = disks(2)
    written = Written(made)
    written.put()
    made.syncing[made.paths[0]] = errno.EIO
    with pytest.raises(StoreError):
        written.put()
    assert "disk0" in written.problems()[0]
    written.put()
    written.check()
    assert len(made.files(1)) == 1
    assert [ref for ref, _ in written.archive.scan()] == list(written.pages), "nothing that was not acknowledged"


def test_a_directory_that_cannot_be_made_is_left_out_at_the_start(disks: Callable[[int], Disks]) -> None:
    made = disks(2)
    made.paths[1].write_text("a file is in its place")
    written = Written(made)
    written.put()
    written.check()
    assert written.problems()[0] == ""
    assert "disk1" in written.problems()[1]


def test_without_any_directory_it_does_not_open(disks: Callable[[int], Disks]) -> None:
    made = disks(1)
    made.paths[0].write_text("a file is in its place")
    with pytest.raises(StoreError):
        Written(made)


def test_a_directory_that_is_missing_is_named_and_its_numbers_are_not_used_again(
    disks: Callable[[int], Disks],
) -> None:
    made = disks(2)
    written = Written(made, file_bytes=4000)
    for _ in range(6):
        written.put(2)
    written.archive.close()
    names = {ref.file for ref in written.pages}
    alone = WarcArchive(made.paths[:1], file_bytes=4000)
    assert alone.disks() == (
        DiskState(str(made.paths[0])),
        DiskState(str(made.paths[1]), configured=False),
    )
    record = encode(Page("http://a.example/x", "", 200, (), b"x", 1.0, 0.1))
    (ref,) = alone.put([record])
    assert ref.file not in names
    assert WarcArchive(made.paths[:1], read_only=True).disks()[1].configured is False
    alone.close()


def test_an_archive_with_one_directory_writes_nothing_but_its_files(disks: Callable[[int], Disks]) -> None:
    made = disks(1)
    written = Written(made)
    written.put()
    assert [path.name for path in made.paths[0].iterdir()] == ["quadloom-00000001.warc.gz.open"]
