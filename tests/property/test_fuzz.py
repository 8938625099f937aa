"""Fuzzers over detect and transform, WARC import, the guard of SPARQL and settings: seeded, a second each by default.

`QUADLOOM_FUZZ="60 7" pytest tests/property/test_fuzz.py` runs each for 60 seconds of CPU with seed 7. What one finds is
put into `tests/corpus/fuzz/TARGET/`, which is tried on every run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TARGETS = ("document", "warc", "query", "settings")
PROGRAM = Path(__file__).with_name("fuzzing.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("QUADLOOM_")}
    return subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_ends_it(target: str, tmp_path: Path) -> None:
    seconds, _, seed = os.environ.get("QUADLOOM_FUZZ", "1 1").partition(" ")
    file = tmp_path / "input"
    done = run(target, seed or "1", seconds, str(file))
    assert done.returncode == 0, f"{done.stderr[-3000:]}\ninput: {file.read_bytes()[:2000]!r}"
    assert int(done.stdout) > 20, "hardly anything was tried"


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_found_before_is_harmless(target: str, tmp_path: Path) -> None:
    done = run(target, "replay", str(tmp_path / "input"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 0, "there is no input to try"


def test_a_fuzzer_sees_a_defect(tmp_path: Path) -> None:
    """If the pipeline reports a defect of its own, the run fails."""
    code = "import sys; sys.argv = ['x', 'document', '1', '1', sys.argv[1]]; "
    code += "import fuzzing, quadloom.documents.pipeline as p; p.transform = lambda *a, **k: 1 / 0; fuzzing.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "input")],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROGRAM.parent,
    )
    assert done.returncode != 0 and "internal-error" in done.stderr
