"""Checksums of files that are written once."""

from __future__ import annotations

from pathlib import Path

from quadloom.process.checksums import FILE, changed_files, note_files, set_aside


def test_changed_files_are_found_and_set_aside(tmp_path: Path) -> None:
    (tmp_path / "shard").mkdir()
    names = ["000001.sst", "shard/a.store", "000002.edges"]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "meta.json").write_bytes(b"{}")
    note_files(tmp_path)
    assert changed_files(tmp_path) == []
    (tmp_path / "meta.json").write_bytes(b"[]")  # engines write it again and again
    (tmp_path / names[0]).unlink()  # merged into another
    (tmp_path / names[1]).write_bytes(b"shard/b.store")
    (tmp_path / names[2]).write_bytes(b"short")
    note_files(tmp_path)
    assert changed_files(tmp_path) == [names[1]], "of the same size: it is the file that was noted; others are new"
    set_aside(tmp_path)
    assert changed_files(tmp_path) == []
    assert (tmp_path / "shard/a.store.damaged").exists()
    (tmp_path / names[1]).write_bytes(b"shard/c.store")
    note_files(tmp_path)
    assert changed_files(tmp_path) == []


def test_a_damaged_note_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.sst").write_bytes(b"a")
    note_files(tmp_path)
    for damage in (b"\xff", b"{", b'{"a.sst": 1}'):
        (tmp_path / FILE).write_bytes(damage)
        assert changed_files(tmp_path) == []
    note_files(tmp_path)
    (tmp_path / "a.sst").write_bytes(b"b")
    assert changed_files(tmp_path) == ["a.sst"]
