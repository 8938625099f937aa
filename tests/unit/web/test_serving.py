"""`quadloom serve` as a command: what it refuses to start with, and how tokens are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.cli.main import run
from quadloom.web.tokens import FILE, Tokens


def test_listening_elsewhere_needs_a_token(
    warehouse_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quadloom.toml").write_text(f'[web]\ntoken_file = "{tmp_path / "none"}"\n')
    code = run(["-w", str(warehouse_path), "--config", str(tmp_path / "quadloom.toml"), "serve", "--host", "0.0.0.0"])
    assert code == 3
    assert "--new-token" in capsys.readouterr().err


def test_a_new_token_is_printed_once_and_stored_hashed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-w", str(tmp_path), "serve", "--new-token"]) == 0
    token = capsys.readouterr().out.strip()
    assert len(token) >= 43 and token not in (tmp_path / FILE).read_text()
    assert Tokens(tmp_path / FILE).accepts(token)


def test_nothing_to_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-w", str(tmp_path / "none"), "serve"]) == 6
    assert "quadloom crawl" in capsys.readouterr().err


def test_urls_are_for_crawling(warehouse_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-w", str(warehouse_path), "serve", "https://example.org/"]) == 2
    assert "--crawl" in capsys.readouterr().err
