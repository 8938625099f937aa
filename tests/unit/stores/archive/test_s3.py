"""The archive on S3: what a crash at each step of an upload leaves, many writers, outages, and what is refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from quadloom.errors import ArchiveDamaged, SettingsError, StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Page
from quadloom.settings import GuardSettings, Settings, StoreSettings
from quadloom.stores.archive.s3 import S3Archive
from quadloom.stores.archive.s3_bucket import PART_BYTES, S3Address, S3Bucket, address_of
from quadloom.stores.archive.s3_tails import Tails
from quadloom.stores.archive.warc_record import encode
from quadloom.stores.backends import open_archive
from servers import free_port, new_bucket
from waiting import wait_until

obstore = pytest.importorskip("obstore", reason="needs the package obstore: pip install 'quadloom[cluster]'")

FILE_BYTES = 3000  # two or three pages
BATCHES = 12


def page(number: int) -> Page:
    body = hashlib.shake_128(str(number).encode()).digest(900)
    return Page(f"http://a.example/{number}", f"http://a.example/{number}", 200, (), body, 1.0 + number, 0.1)


@pytest.fixture
def address() -> S3Address:
    return new_bucket()


def warc_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.warc.gz*"))


def write(address: S3Address, folder: Path, step: str, times: int) -> None:
    """The child of the crash test: tells each reference after its sync, and ends without warning at a step.
    `shared-…`: the same steps where records count when they are in the bucket."""
    shared, step = step.startswith("shared"), step.removeprefix("shared-")
    left = times

    def reached(name: str) -> None:
        nonlocal left
        left -= name == step
        if left == 0:
            os._exit(86)

    archive = S3Archive(S3Bucket(address), folder, file_bytes=FILE_BYTES, shared=shared, reached=reached)
    for number in range(BATCHES):
        (ref,) = archive.put([encode(page(number))])
        archive.sync()
        os.write(1, b"%d %s\n" % (number, msgspec.json.encode(ref)))  # whole, or not at all
    archive.close()


STEPS = ["sealed", "uploaded", "verified", "dropped"]


def refs_told_before_a_crash(address: S3Address, folder: Path, step: str, times: int) -> dict[int, ArchiveRef]:
    """Run `write` as a process of its own: number of the page → where it was said to be."""
    arguments = [msgspec.json.encode(address).decode(), str(folder), step, str(times)]
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 86, done.stderr[-2000:]
    told = [line.partition(" ") for line in done.stdout.splitlines()]
    return {int(number): msgspec.json.decode(ref, type=ArchiveRef) for number, _, ref in told}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("step", [*STEPS, *(f"shared-{step}" for step in STEPS)])
def test_a_crash_at_each_step_loses_nothing(address: S3Address, tmp_path: Path, step: str, times: int) -> None:
    refs = refs_told_before_a_crash(address, tmp_path, step, times)
    assert refs
    archive = S3Archive(S3Bucket(address), tmp_path, file_bytes=FILE_BYTES)
    assert all(archive.get(ref) == page(number) for number, ref in refs.items())
    (new,) = archive.put([encode(page(100))])
    assert new.file not in {ref.file for ref in refs.values()}
    archive.close()
    assert warc_files(tmp_path) == []
    reader = S3Archive(S3Bucket(address), tmp_path / "elsewhere", read_only=True)
    scanned = dict(reader.scan())
    assert {**{ref: page(number) for number, ref in refs.items()}, new: page(100)}.items() <= scanned.items()
    files = reader.files()  # one may have got no record before the crash
    assert {ref.file for ref in scanned} == {file for file, size in files.items() if size}
    assert all(name.endswith(".warc.gz") for name in S3Bucket(address).files()), "no tail is left of an ended file"


@pytest.mark.parametrize("step", ["shared-shared", "shared-sealed", "shared-uploaded", "shared-verified"])
def test_what_many_machines_were_told_of_survives_the_machine(address: S3Address, tmp_path: Path, step: str) -> None:
    """Killed, and its disk never seen again: all that was synced is read by the others."""
    refs = refs_told_before_a_crash(address, tmp_path / "lost", step, 2)
    assert refs
    heir = S3Archive(S3Bucket(address), tmp_path / "heir", shared=True)
    assert {number: heir.get(ref) for number, ref in refs.items()} == {number: page(number) for number in refs}
    assert {(ref, page(number)) for number, ref in refs.items()} <= set(heir.scan())
    assert heir.size() >= sum(ref.length for ref in refs.values())
    writer = next(iter(refs.values())).file.partition("/")[0]
    again = S3Archive(S3Bucket(address), tmp_path / "new disk", writer=writer, shared=True)
    (new,) = again.put([encode(page(100))])
    assert new.file not in {ref.file for ref in refs.values()}, "a name is never used for other bytes"
    again.close()
    heir.close()


def test_a_tail_goes_when_its_file_is_there_and_who_reads_follows(address: S3Address, tmp_path: Path) -> None:
    writer = S3Archive(S3Bucket(address), tmp_path / "writer", shared=True)
    reader = S3Archive(S3Bucket(address), tmp_path / "reader", read_only=True)
    refs = []
    for number in range(4):
        refs += writer.put([encode(page(2 * number)), encode(page(2 * number + 1))])
        writer.sync()
    assert len(S3Bucket(address).files()) == 4, "one object for each batch"
    assert [reader.get(ref) for ref in refs[:5]] == [page(number) for number in range(5)]
    assert reader.files() == {}, "it is still being written"
    writer.seal()
    assert list(S3Bucket(address).files()) == [refs[0].file]
    assert [reader.get(ref) for ref in refs] == [page(number) for number in range(8)]
    writer.close()


def test_a_worker_waits_for_a_bucket_that_comes_back(address: S3Address, tmp_path: Path) -> None:
    archive = S3Archive(S3Bucket(address), tmp_path, shared=True)
    archive._tails = _Flaky(S3Bucket(address), failures=1)
    (ref,) = archive.put([encode(page(1))])
    archive.sync()
    assert S3Archive(S3Bucket(address), tmp_path / "reader", read_only=True).get(ref) == page(1)
    archive.close()


def test_nothing_is_acknowledged_that_is_not_in_the_bucket(address: S3Address, tmp_path: Path) -> None:
    now = iter(range(0, 1_000_000, 100))
    archive = S3Archive(S3Bucket(address), tmp_path, shared=True, clock=lambda: float(next(now)))
    archive._tails = _Flaky(S3Bucket(address), failures=1)
    (ref,) = archive.put([encode(page(1))])
    with pytest.raises(StoreError, match="away"):
        archive.sync()
    reader = S3Archive(S3Bucket(address), tmp_path / "reader", read_only=True)
    with pytest.raises(ArchiveDamaged, match="yet"):
        reader.get(ref)
    archive.sync()
    assert reader.get(ref) == page(1)
    archive.close()


class _Flaky(Tails):
    """A bucket that is away for so many attempts."""

    def __init__(self, bucket: S3Bucket, *, failures: int) -> None:
        super().__init__(bucket)
        self._failures = failures

    def put(self, file: str, start: int, data: bytes) -> None:
        if self._failures:
            self._failures -= 1
            raise StoreError("away")
        super().put(file, start, data)


def test_where_the_frontier_is_shared_the_archive_is(address: S3Address, tmp_path: Path) -> None:
    """One machine's frontier is as durable as its disk; a database of many wants its records where many can read."""
    for frontier, objects in (("sqlite:", 0), ("postgresql://db/crawl", 1)):
        stores = {"archive_endpoint": address.endpoint, "archive_region": address.region, "frontier": frontier}
        archive = open_archive(tmp_path / frontier[:6], settings(f"s3://{address.bucket}/x", **stores), writable=True)
        archive.put([encode(page(1))])
        archive.sync()
        found = S3Bucket(msgspec.structs.replace(address, prefix="x")).files()
        assert len([name for name in found if ".tail/" in name]) == objects
        archive.close()


def test_numbers_go_on_where_the_bucket_ends(address: S3Address, tmp_path: Path) -> None:
    names = []
    for number in range(3):
        archive = S3Archive(S3Bucket(address), tmp_path)
        names += [ref.file for ref in archive.put([encode(page(number))])]
        archive.close()
    assert [name[-16:] for name in names] == ["00000001.warc.gz", "00000002.warc.gz", "00000003.warc.gz"]


def test_many_writers_share_a_bucket(address: S3Address, tmp_path: Path) -> None:
    archives = [S3Archive(S3Bucket(address), tmp_path / name) for name in ("one", "two")]
    refs = [archive.put([encode(page(number))])[0] for number, archive in enumerate(archives)]
    for archive in archives:
        archive.sync()
    with pytest.raises(ArchiveDamaged, match="yet"):
        archives[0].get(refs[1])
    for archive in archives:
        archive.close()
    assert [archive.get(ref) for archive, ref in zip(archives, reversed(refs), strict=True)] == [page(1), page(0)]
    assert len({ref.file for ref in refs}) == 2
    assert archives[0].size() == archives[1].size() == sum(S3Bucket(address).files().values())


def test_a_reader_beside_the_writer_sees_what_is_not_uploaded(address: S3Address, tmp_path: Path) -> None:
    writer = S3Archive(S3Bucket(address), tmp_path)
    (ref,) = writer.put([encode(page(1))])
    writer.sync()
    reader = S3Archive(S3Bucket(address), tmp_path, read_only=True)
    assert reader.get(ref) == page(1)
    writer.close()
    assert reader.get(ref) == page(1)
    with pytest.raises(StoreError, match="read-only"):
        reader.put([encode(page(2))])
    reader.close()


def test_another_warehouse_under_the_same_name_is_not_overwritten(address: S3Address, tmp_path: Path) -> None:
    first = S3Archive(S3Bucket(address), tmp_path / "one", writer="same")
    second = S3Archive(S3Bucket(address), tmp_path / "two", writer="same")
    (ref,) = first.put([encode(page(1))])
    second.put([encode(page(2))])
    first.close()
    with pytest.raises(StoreError, match="differs from") as caught:
        second.close()
    assert "archive_writer" in caught.value.hint
    assert first.get(ref) == page(1)
    assert len(warc_files(tmp_path / "two")) == 1


def test_an_outage_delays_uploads_and_loses_nothing(address: S3Address, tmp_path: Path) -> None:
    archive = S3Archive(S3Bucket(address), tmp_path, file_bytes=FILE_BYTES)
    working, archive._bucket = archive._bucket, _Unreachable()  # the server goes away
    refs = [archive.put([encode(page(number))])[0] for number in range(BATCHES)]
    archive.sync()
    assert [archive.get(ref) for ref in refs] == [page(number) for number in range(BATCHES)]
    with pytest.raises(StoreError, match="unreachable"):
        archive.close()
    assert len(warc_files(tmp_path)) > 3
    again = S3Archive(working, tmp_path, file_bytes=FILE_BYTES)
    again.close()
    assert warc_files(tmp_path) == []
    assert [again.get(ref) for ref in refs] == [page(number) for number in range(BATCHES)]


def test_an_outage_that_lasts_stops_the_crawl(address: S3Address, tmp_path: Path) -> None:
    now = 1000.0
    archive = S3Archive(S3Bucket(address), tmp_path, file_bytes=FILE_BYTES, clock=lambda: now)
    archive._bucket = _Unreachable()
    tried = threading.Event()
    archive._reached = lambda _step: tried.set()
    archive.put([encode(page(number)) for number in range(4)])
    archive.sync()
    assert tried.wait(10)
    wait_until(lambda: archive._failure is not None)
    now = 1000.0 + 3599.0
    archive.sync()
    now += 1.0
    with pytest.raises(StoreError, match="unreachable"):
        archive.sync()
    with pytest.raises(StoreError, match="unreachable"):
        archive.close()


class _Unreachable(S3Bucket):
    def __init__(self) -> None:
        return

    def upload(self, path: Path, key: str) -> None:
        raise StoreError("unreachable")


def test_a_file_is_uploaded_when_it_is_old(address: S3Address, tmp_path: Path) -> None:
    now = 1000.0
    archive = S3Archive(S3Bucket(address), tmp_path, upload_seconds=60.0, clock=lambda: now)
    (first,) = archive.put([encode(page(1))])
    archive.sync()
    now = 1059.0
    assert archive.put([encode(page(2))])[0].file == first.file
    archive.sync()
    now = 1060.0
    archive.sync()
    (later,) = archive.put([encode(page(3))])
    archive.sync()
    assert later.file != first.file
    archive.close()
    assert set(archive.files()) == {first.file, later.file}


def test_large_files_go_in_parts_and_are_verified(address: S3Address, tmp_path: Path) -> None:
    bucket, path = S3Bucket(address), tmp_path / "large"
    path.write_bytes(os.urandom(1 << 20) * (2 * PART_BYTES >> 20) + b"tail")
    bucket.upload(path, "w/large")
    bucket.verify(path, "w/large")
    assert bucket.read("w/large", 2 * PART_BYTES, 100) == b"tail"
    bucket.download("w/large", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()
    with path.open("r+b") as file:
        file.seek(PART_BYTES)
        file.write(b"flip")
    with pytest.raises(StoreError, match="differs from"):
        bucket.verify(path, "w/large")


def test_an_object_with_another_kind_of_tag_is_read_back(address: S3Address, tmp_path: Path) -> None:
    """As with a server's own encryption: here because the parts were of another size."""
    bucket, path = S3Bucket(address), tmp_path / "file"
    path.write_bytes(os.urandom(6 << 20))
    obstore.put(bucket._store, "w/file", path, chunk_size=5 << 20, use_multipart=True)
    bucket.verify(path, "w/file")
    path.write_bytes(bytes(6 << 20))
    with pytest.raises(StoreError, match="differs from"):
        bucket.verify(path, "w/file")


def test_a_damaged_object_is_found(address: S3Address, tmp_path: Path) -> None:
    archive = S3Archive(S3Bucket(address), tmp_path)
    (ref,) = archive.put([encode(page(1))])
    archive.close()
    bucket = S3Bucket(address)
    data = bytearray(bucket.read(ref.file, 0, 1 << 20))
    data[ref.offset + 30] ^= 0xFF
    obstore.put(bucket._store, ref.file, bytes(data))
    with pytest.raises(ArchiveDamaged):
        archive.get(ref)


def settings(archive: str, allow: tuple[str, ...] = (), /, **stores: str) -> Settings:
    return Settings(stores=StoreSettings(archive=archive, **stores), guard=GuardSettings(allow=list(allow)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "stores", "words"),
    [
        ("s3:", {}, "no address"),
        ("s3://", {}, "no address"),
        ("s3://key:secret@bucket/x", {}, "not a bucket"),
        ("s3://bucket/x", {"archive_endpoint": "http://minio.example:9000"}, "unencrypted"),
        ("s3://bucket/x", {"archive_endpoint": "http://10.0.0.7:9000"}, "unencrypted"),
    ],
)
def test_addresses_that_are_refused(url: str, stores: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        open_archive(tmp_path, settings(url, **stores), writable=True)
    assert caught.value.hint


def test_a_trusted_network_may_be_plain() -> None:
    chosen = settings("s3://bucket/a/b/", ("10.0.0.0/8",), archive_endpoint="http://10.0.0.7:9000")
    assert address_of(chosen) == S3Address(bucket="bucket", prefix="a/b", endpoint="http://10.0.0.7:9000")


def test_a_name_that_is_no_folder_is_refused(address: S3Address, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be a folder"):
        S3Archive(S3Bucket(address), tmp_path, writer="../up")


def test_a_bucket_that_is_not_there_is_told_at_the_start(address: S3Address, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no-such-bucket"):
        S3Archive(S3Bucket(msgspec.structs.replace(address, bucket="no-such-bucket")), tmp_path)


def test_the_package_is_asked_for_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SettingsError, match="obstore") as caught:
        S3Bucket(S3Address(bucket="b", endpoint=f"http://127.0.0.1:{free_port()}"))
    assert "quadloom[cluster]" in caught.value.hint


if __name__ == "__main__":
    write(msgspec.json.decode(sys.argv[1], type=S3Address), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
