"""Commands of other packages: registered by an entry point, and named if their package is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quadloom.cli.main import PLUG_INS
from unit import ROOT


def _run(*arguments: str, path: list[Path]) -> subprocess.CompletedProcess[str]:
    """`quadloom` with exactly these folders on the path; an installed lab is hidden."""
    code = f"""
import importlib.metadata as metadata, sys
every = metadata.entry_points
def only(*, group):
    if group != {PLUG_INS!r}:
        return every(group=group)
    found = metadata.distributions(path={[str(folder) for folder in path]!r})
    return [entry for one in found for entry in one.entry_points if entry.group == group]
metadata.entry_points = only
from quadloom.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def _register(folder: Path, target: str) -> Path:
    """A folder with the metadata that installing a package would write."""
    info = folder / "some_lab-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-lab\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{PLUG_INS}]\nlab = {target}\n")
    return folder


@pytest.mark.parametrize("command", ["bench", "simulate"])
def test_without_the_lab_its_commands_say_what_to_install(command: str) -> None:
    done = _run(command, path=[ROOT / "src"])
    assert done.returncode == 2
    assert "lab, which is not installed" in done.stderr
    assert "pip install -e lab" in done.stderr
    assert command not in _run("--help", path=[ROOT / "src"]).stdout


def test_with_the_lab_they_are_listed_and_run(tmp_path: Path) -> None:
    path = [ROOT / "src", ROOT / "lab", _register(tmp_path, "quadloom_lab.commands:COMMANDS")]
    shown = _run("--help", path=path).stdout
    assert "bench" in shown and "simulate" in shown
    assert "CPU-ms per page" in _run("bench", "pipeline", "--help", path=path).stdout


def test_a_package_that_has_gone_does_not_stop_other_commands(tmp_path: Path) -> None:
    path = [ROOT / "src", _register(tmp_path, "no_such_lab.commands:COMMANDS")]
    done = _run("--version", path=path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_lab_registers_its_commands() -> None:
    assert f'[project.entry-points."{PLUG_INS}"]' in (ROOT / "lab/pyproject.toml").read_text(encoding="utf-8")
