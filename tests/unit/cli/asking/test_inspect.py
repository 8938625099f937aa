"""`inspect --format`."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.cli.main import run


def test_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        "<h1>Whales</h1><nav>menu</nav><ul><li><a href=b>one</a> is large<li>two is not</ul>", encoding="utf-8"
    )
    assert run(["inspect", str(file), "--format", "markdown", "--url", "https://a.example/"]) == 0
    assert capsys.readouterr().out == "# Whales\n\n- [one](https://a.example/b) is large\n- two is not\n"
