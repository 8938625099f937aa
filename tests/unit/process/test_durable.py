"""Files that take their name when they are complete, and folders whose parents are synced."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from quadloom.process.durable import make_folder, replacing, write_file


def test_a_file_takes_its_name_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out.nq"
    target.write_bytes(b"the old one")
    target.chmod(0o640)
    with replacing(target) as stream:
        stream.write(b"half")
        stream.flush()
        assert target.read_bytes() == b"the old one"
    assert target.read_bytes() == b"half" and target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out.nq"]


def test_a_whole_file_replaces_the_old_one(tmp_path: Path) -> None:
    for data in (b"the old one", b"new"):
        write_file(tmp_path / "journal", data)
        assert (tmp_path / "journal").read_bytes() == data and os.listdir(tmp_path) == ["journal"]


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.nq"
    target.write_bytes(b"the old one")
    with pytest.raises(ZeroDivisionError), replacing(target) as stream:
        stream.write(b"half")
        raise ZeroDivisionError
    assert target.read_bytes() == b"the old one" and os.listdir(tmp_path) == ["out.nq"]


def test_links_stay_links_and_pipes_are_written_at_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replacing(tmp_path / "link") as stream:
        stream.write(b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"x"
    os.mkfifo(tmp_path / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with replacing(tmp_path / "pipe") as stream:
        stream.write(b"through")
    reader.join(10)
    assert received == [b"through"]


def test_parents_of_new_folders_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (synced.append(os.readlink(f"/proc/self/fd/{handle}")), real(handle))
    )
    make_folder(tmp_path / "a" / "b")
    assert synced == [str(tmp_path), str(tmp_path / "a")]
    make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2
