"""The demo ends with commands that work when typed as they stand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quadloom.cli import demo


def test_the_environment_is_named_when_the_shell_does_not_find_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / ".venv/bin"
    folder.mkdir(parents=True)
    (folder / "activate").touch()
    (folder / "quadloom").touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert [command for command, _ in demo.activation()] == [". .venv/bin/activate"]
    monkeypatch.setenv("PATH", os.fspath(folder))
    assert list(demo.activation()) == []
