"""`crawl --until-input-ends`: a crawl that ends by itself ends cleanly, though its input is still open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_crawl_that_ends_before_its_input_does_not_abort(tmp_path: Path) -> None:
    """The guard refuses the only URL, so the crawl ends at once, while a thread still waits for the end of input."""
    command = [sys.executable, "-m", "quadloom", "-w", str(tmp_path / "w"), "crawl", "--until-input-ends"]
    child = subprocess.Popen(
        [*command, "--contact", "a@b.example", "http://127.0.0.1:9/"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stderr is not None and child.stdin is not None
    said = child.stderr.read().decode()  # ends with the process; its input is open until then
    child.stderr.close()
    assert child.wait() == 1, said
    assert "no page was read" in said
    assert "Fatal" not in said
    child.stdin.close()
