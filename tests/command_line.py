"""Commands in the process of the test: as `quadloom …` in a shell, without the cost of an interpreter for each.

Use a real process if the test is about processes: signals, locks, kills, what is printed while it runs.
"""

from __future__ import annotations

import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from quadloom.cli.main import run


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """The environment without settings of the user's own."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("QUADLOOM_")}
    return {**inherited, "HOME": str(home), **more}


def quadloom(*arguments: str, cwd: Path, **environment: str) -> CompletedProcess[str]:
    """Run a command in `cwd`, which is also the home directory. Returns its exit code and what it printed."""
    out, err = _Stream(), _Stream()
    with (
        patch.dict(os.environ, clean_environment(cwd, **environment), clear=True),
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = run(list(arguments))
    return CompletedProcess(["quadloom", *arguments], code, out.text(), err.text())


class _Stream(io.TextIOWrapper):
    """As a file: some commands write bytes."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self._bytes.getvalue().decode()
